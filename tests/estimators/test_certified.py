"""Weights that were set by hand: their model keeps no proof of others."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from tests.cases.regression import friedman
from widemargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load_model,
    save_model,
)

X, TARGET = friedman(60)
LABELS = (np.median(TARGET) < TARGET).astype(int) + (np.quantile(TARGET, 0.8) < TARGET)
MACHINES = [
    LinearSVC(),
    LinearSVR(),
    SVC(kernel="linear"),
    SVC(),
    SVC(rank=10),
    SVR(),
    NuSVC(nu=0.2),
    NuSVR(),
    OneClassSVM(),
]
on_machines = pytest.mark.parametrize("machine", MACHINES, ids=str)


def saved(machine, path):
    save_model(machine, path)
    return load_model(path).meta


def fitted(machine):
    is_regression = type(machine).__name__.endswith("SVR")
    return clone(machine).fit(X, TARGET if is_regression else LABELS)


@on_machines
def test_a_model_as_it_was_fitted_keeps_its_certificate(machine, tmp_path):
    for one in (fitted(machine), pickle.loads(pickle.dumps(fitted(machine)))):
        meta = saved(one, tmp_path / "a.wm")
        assert meta["dual_gap"] == one.dual_gap_
        assert meta["status"] == "solved"
    one.intercept_ = one.intercept_.copy()
    assert saved(one, tmp_path / "a.wm") == meta


@on_machines
def test_another_intercept_has_no_certificate(machine, tmp_path):
    one = fitted(machine)
    meta = saved(one, tmp_path / "a.wm")
    one.intercept_ = one.intercept_ + 1.0
    changed = saved(one, tmp_path / "a.wm")
    assert meta.keys() - changed.keys() == {"dual_gap", "status"}
    one.fit(X, TARGET if "SVR" in str(machine) else LABELS)
    assert saved(one, tmp_path / "a.wm") == meta


@pytest.mark.parametrize("machine", [LinearSVC(), LinearSVR()], ids=str)
def test_other_weights_have_no_certificate(machine, tmp_path):
    one = fitted(machine)
    one.coef_ = one.coef_ * 0.0
    assert not {"dual_gap", "status"} & saved(one, tmp_path / "a.wm").keys()
    one = fitted(machine)
    one.coef_[..., 2] = 0.0  # in place
    assert not {"dual_gap", "status"} & saved(one, tmp_path / "a.wm").keys()
    assert np.all([solution.w[2] != 0.0 for solution in one.solutions_])


@pytest.mark.parametrize(
    "machine", [SVC(), SVR(), NuSVC(nu=0.2), OneClassSVM()], ids=str
)
def test_other_dual_variables_have_no_certificate(machine, tmp_path):
    for name in ("dual_coef_", "offset_"):
        one = fitted(machine)
        if name in vars(one):
            setattr(one, name, getattr(one, name) * 0.5)
            assert not {"dual_gap", "status"} & saved(one, tmp_path / "a.wm").keys()


def test_the_best_of_a_search_keeps_its_certificate(tmp_path):
    search = LinearSVCCV().fit(X, LABELS)
    assert saved(search, tmp_path / "a.wm")["dual_gap"] == search.dual_gap_
