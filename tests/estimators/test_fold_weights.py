"""Folds of searches, of rows of which some have no weight."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from widemargin import SVCCV, SVRCV, LinearSVCCV, LinearSVRCV, load_model
from widemargin.cli import main

KINDS = [SVCCV, LinearSVCCV, SVRCV, LinearSVRCV]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
TARGET = X[:, 0] + 0.5 * RNG.normal(size=200)
WEIGHTS = np.where(RNG.random(200) > 0.3, 1.0 + RNG.integers(0, 2, 200), 0.0)
KNOWN = WEIGHTS > 0.0


def targets(kind):
    return TARGET > 0.0 if is_classifier(kind()) else TARGET


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_weight_are_in_no_fold(kind, cv):
    search, y = kind(Cs=[0.1, 1.0], cv=cv, tol=1e-8), targets(kind)
    if is_classifier(search):
        search.set_params(calibrate="sigmoid")
    scores = search.fit(X, y, sample_weight=WEIGHTS).scores_
    found = search.predict_proba(X) if is_classifier(search) else 0.0
    search.fit(X[KNOWN], y[KNOWN], sample_weight=WEIGHTS[KNOWN])
    np.testing.assert_allclose(scores, search.scores_, rtol=1e-4)
    if is_classifier(search):
        np.testing.assert_allclose(found, search.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_weight_may_be_as_many_as_a_fold(kind):
    y = targets(kind)
    weights = np.where(np.arange(200) < 100, 0.0, 1.0)
    scores = kind(Cs=[1.0], cv=4).fit(X, y, sample_weight=weights).scores_
    some = kind(Cs=[1.0], cv=4).fit(X[100:], y[100:])
    np.testing.assert_allclose(scores, some.scores_, rtol=1e-3)


def test_more_folds_than_rows_with_a_weight_are_refused():
    weights = np.where(np.arange(200) < 3, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"be at most 3, the number of rows .* Got 4"):
        LinearSVRCV(Cs=[1.0], cv=4).fit(X, TARGET, sample_weight=weights)


def test_groups_that_our_folds_take_no_note_of_are_cut_too():
    search, y = LinearSVCCV(Cs=[1.0], cv=3), targets(LinearSVCCV)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's: they are ignored
        search.fit(X, y, sample_weight=WEIGHTS, groups=np.arange(200) % 5)
    scores = search.scores_
    search.fit(X[KNOWN], y[KNOWN], sample_weight=WEIGHTS[KNOWN])
    np.testing.assert_array_equal(scores, search.scores_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_splitter_numbers_all_rows(kind):
    class Seen(KFold):
        def split(self, X, y=None, groups=None):
            sizes.append(len(X))
            return super().split(X, y, groups)

    sizes = []
    fit = kind(Cs=[1.0], cv=Seen(3)).fit
    fit(X, targets(kind), sample_weight=WEIGHTS)
    assert sizes == [200]


def test_rows_without_a_weight_are_in_no_fold_of_the_command_line(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    y = np.where(TARGET > 0.0, 1.0, -1.0)
    for name, some in (("all", slice(None)), ("known", KNOWN)):
        np.save("X.npy", X[some])
        np.save("y.npy", y[some])
        np.save("w.npy", WEIGHTS[some])
        words = f"train X.npy {name}.wm --label y.npy --weight w.npy --probability"
        assert main([*words.split(), "--C", "1", "--cv", "4"]) == 0
    found = [load_model(f"{name}.wm").calibration for name in ("all", "known")]
    np.testing.assert_allclose(found[0].first, found[1].first, rtol=1e-3)
