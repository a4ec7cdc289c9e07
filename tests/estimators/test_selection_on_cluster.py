"""Model selection of linear machines on a cluster: the scores of rows in memory."""

import os
import signal
import time

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from tests.cases.clusters import cluster, mixture, process_ids, relative
from widemargin import (
    SVCCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVRCV,
    linear_svc_path,
    linear_svr_path,
    svc_path,
)
from widemargin.data.distributed import crew as crew_module
from widemargin.data.distributed import log as log_module
from widemargin.data.distributed import rows as rows_module
from widemargin.data.distributed.crew import Crew
from widemargin.estimators.selection_on_cluster import There, folded, opened
from widemargin.estimators.training import limits_of

pytestmark = pytest.mark.dask
GRID = {"Cs": [0.001, 0.1, 10.0], "tol": 1e-9}


@pytest.fixture(scope="module")
def client():
    with cluster(3) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return mixture(900)


def there(*vectors, rows=200):
    """The same in partitions."""
    return [da.from_array(v, chunks=(rows, -1)[: v.ndim]) for v in vectors]


def weights(m):
    return np.random.default_rng(0).integers(1, 4, m).astype(float)


CASES = [
    {},
    {"loss": "hinge", "cv": 3, "Cs": [0.01, 1.0]},
    {"class_weight": "balanced", "scoring": "balanced_accuracy", "cv": KFold(4)},
]


@pytest.mark.parametrize("given", CASES)
def test_scores_of_classes_are_those_of_rows_in_memory(client, data, given):
    w = weights(900)
    here = LinearSVCCV(**GRID | given).fit(*data, w)
    found = LinearSVCCV(**GRID | given).fit(*there(*data, w))
    np.testing.assert_allclose(found.scores_, here.scores_, rtol=1e-12)
    assert np.ptp(here.scores_.mean(axis=0)) > 0.0
    assert found.path_.max() <= 1e-9
    assert found.C_ == here.C_
    assert relative(found, here) <= 1e-6
    assert found.dual_gap_ <= 1e-9


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_several_classes_named_by_words(client, data, scheme):
    X, y = data
    words = np.array(["u", "v", "w"])[(y > 0).astype(int) + (X[:, 0] > 1)]
    svc = {"multi_class": scheme, "cv": 3, **GRID}
    here = LinearSVCCV(**svc).fit(X, words)
    found = LinearSVCCV(**svc).fit(*there(X, words))
    np.testing.assert_allclose(found.scores_, here.scores_, rtol=1e-12)
    assert found.classes_.tolist() == ["u", "v", "w"]
    labels = found.predict(*there(X))
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), here.predict(X))


@pytest.mark.parametrize("scoring", [None, "neg_root_mean_squared_error"])
def test_scores_of_regressions_are_those_of_rows_in_memory(client, data, scoring):
    X, w = data[0], weights(900)
    target = X @ np.arange(5) + np.random.default_rng(1).normal(size=900)
    options = {"epsilons": [0.0, 0.5], "cv": 3, "scoring": scoring, **GRID}
    loss = "squared_epsilon_insensitive"
    here = LinearSVRCV(loss=loss, **options).fit(X, target, w)
    found = LinearSVRCV(loss=loss, **options).fit(*there(X, target, w))
    np.testing.assert_allclose(found.scores_, here.scores_, rtol=1e-7)
    assert (found.C_, found.epsilon_) == (here.C_, here.epsilon_)
    np.testing.assert_allclose(found.coef_, here.coef_, rtol=1e-7)


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_folds_that_are_too_many_are_refused_as_in_memory(client, data):
    X, t = data[0][:12], np.arange(12.0)
    y = np.repeat([0, 1], [7, 5])
    for kind, target, cv in (
        (LinearSVRCV, t, 12),  # R^2 of one row is not a number
        (LinearSVRCV, t, 13),
        (LinearSVCCV, y, 8),
    ):
        said = []
        for given in ((X, target), there(X, target)):
            with pytest.raises(ValueError, match=r"NaN|at most (12|7)") as error:
                kind(Cs=[1.0], cv=cv).fit(*given[:2])
            said.append(str(error.value))
        assert said[0] == said[1]


@pytest.mark.parametrize("n_folds", [2, 5])
@pytest.mark.parametrize("order", ["mixed", "sorted", "backwards"])
def test_folds_are_those_of_scikit_learn(client, n_folds, order):
    rng = np.random.default_rng(3)
    y = rng.choice(4, 700, p=[0.05, 0.6, 0.05, 0.3])
    y = {"mixed": y, "sorted": np.sort(y), "backwards": np.sort(y)[::-1]}[order]
    X, machine = rng.normal(size=(700, 2)), LinearSVC()
    for splitter in (StratifiedKFold(n_folds), KFold(n_folds)):
        expected = np.empty(700, int)
        for fold, (_, test) in enumerate(splitter.split(X, y)):
            expected[test] = fold
        with opened(
            machine,
            type(machine).__name__,
            *there(X, y, rows=90),
            None,
            limits_of(machine),
        ) as rows:
            if order != "mixed" and type(splitter) is KFold:
                with pytest.raises(ValueError, match="must hold all classes. Got no"):
                    folded(rows, splitter, "A")
                continue
            found, held = folded(rows, splitter, "A")
            np.testing.assert_array_equal(np.asarray(found.state.fold), expected)
            assert held == np.bincount(expected).tolist()


def test_rows_are_loaded_once_and_nothing_of_length_m_comes_here(client, monkeypatch):
    made = []

    class Counting(Crew):
        def __init__(self, *given):
            super().__init__(*given)
            self.most = 0
            made.append(self)

        def add(self, data, timeout=None):
            before = self.shipped["got"]
            value = super().add(data, timeout)
            self.most = max(self.most, len(data) + self.shipped["got"] - before)
            return value

    monkeypatch.setattr(rows_module, "Crew", Counting)
    X, y = mixture(48_000)
    LinearSVCCV(Cs=[0.1, 1.0], cv=3).fit(*there(X, y, rows=6000))
    assert len(made) == 1
    # One byte a row would be 48,000 bytes.
    assert made[0].most <= 12_000


def kill(client, crew):
    """Kill a worker."""
    os.kill(process_ids(client)[sorted(crew._hosts)[0]], signal.SIGKILL)


def dismiss(client, crew):
    """End one of two workers that are threads of this process."""
    client.cluster.scale(1)
    while len(client.nthreads()) > 1:
        time.sleep(0.01)


@pytest.mark.parametrize("lose", [dismiss, pytest.param(kill, marks=pytest.mark.full)])
def test_a_lost_worker_changes_no_bit_of_a_search(data, monkeypatch, lose):
    """Lanes go on from their copies, in the fold that is trained."""
    counts, crews = [], []
    monkeypatch.setattr(crew_module, "COPIED_AFTER", 10)
    monkeypatch.setattr(crew_module, "COPIED_SECONDS", 0.0)
    monkeypatch.setattr(crew_module, "COPIED_TIMES", 0.0)
    add = Crew.add

    def counted(self, entry, timeout=None):
        counts[-1] += 1
        crews.append(self)
        if len(counts) == 2 and counts[1] == round(0.6 * counts[0]):
            lose(client, self)
        return add(self, entry, timeout)

    monkeypatch.setattr(Crew, "add", counted)
    X, y = data
    given, found = there(X, (y > 0) + 2 * (X[:, 0] > 1)), []
    with cluster(2, processes=lose is kill) as client:
        for _ in range(2):
            counts.append(0)
            search = LinearSVCCV(Cs=[0.1], cv=3, multi_class="ovo", tol=1e-9)
            found.append(search.fit(*given))
    assert crews[0].restored == 0 < crews[-1].restored
    assert 0 < crews[-1].replayed <= 11
    one, other = found
    np.testing.assert_array_equal(other.scores_, one.scores_)
    np.testing.assert_array_equal(other.path_, one.path_)
    np.testing.assert_array_equal(other.coef_, one.coef_)


def lose_two(monkeypatch, at):
    """End two of three workers, and copies, before that request of the first fit.

    Returns the counts of requests by crew. The log has room for few requests.
    """
    counts = {}
    monkeypatch.setattr(crew_module, "COPIED_AFTER", 10)
    monkeypatch.setattr(crew_module, "COPIED_SECONDS", 0.0)
    monkeypatch.setattr(crew_module, "COPIED_TIMES", 0.0)
    monkeypatch.setattr(log_module, "MOST_BYTES", 5000)
    add = Crew.add

    def counted(self, entry, timeout=None):
        counts[self] = counts.get(self, 0) + 1
        if len(counts) == 1 and counts[self] == at:
            assert self._log.first > 0
            self._client.cluster.scale(1)
            while len(self._client.nthreads()) > 1:
                time.sleep(0.01)
        return add(self, entry, timeout)

    monkeypatch.setattr(Crew, "add", counted)
    return counts


@pytest.fixture
def trained(monkeypatch):
    """The C of all machines that are trained to their ends."""
    found, train = [], There.train

    def kept(self, machine, *given):
        ended = train(self, machine, *given)
        found.append(machine.C)
        return ended

    monkeypatch.setattr(There, "train", kept)
    return found


@pytest.mark.parametrize("place", [0.4, pytest.param(0.95, marks=pytest.mark.full)])
def test_a_search_goes_on_where_rows_are_lost_with_their_copies(
    data, monkeypatch, trained, place
):
    """In a fold, and in the last fit: what is scored is not trained again."""
    found, at = [], None
    for _ in range(2):
        search = LinearSVCCV(Cs=[0.01, 1.0], loss="hinge", cv=2, tol=1e-9)
        with monkeypatch.context() as patch, cluster(3):
            counts = lose_two(patch, at)
            if at is None:
                found.append(search.fit(*there(*data)))
                at = round(place * sum(counts.values()))
            else:
                with pytest.warns(RuntimeWarning, match="loaded again") as told:
                    found.append(search.fit(*there(*data)))
                again = [one for one in told if "loaded again" in str(one.message)]
                assert [one.filename for one in again] == [__file__]
    assert len(counts) == 2
    assert trained == 2 * [0.01, 1.0, 0.01, 1.0, found[0].C_]
    one, other = found
    np.testing.assert_array_equal(other.scores_, one.scores_)
    assert other.path_.max() <= 1e-9
    assert other.C_ == one.C_
    assert relative(other, one) <= 1e-4
    assert other.dual_gap_ <= 1e-9


@pytest.mark.full
def test_a_path_goes_on_where_rows_are_lost_with_their_copies(
    data, monkeypatch, trained
):
    options = {"Cs": [0.01, 0.1, 1.0], "loss": "hinge", "tol": 1e-9}
    whole = linear_svc_path(*data, **options)[1]
    with cluster(3):
        counts = lose_two(monkeypatch, 100)
        with pytest.warns(RuntimeWarning, match="loaded again"):
            found = linear_svc_path(*there(*data), **options)[1]
    assert len(counts) == 2
    assert trained == options["Cs"]
    for one, other in zip(found, whole, strict=True):
        assert relative(one, other) <= 1e-4


@pytest.mark.parametrize("path", [linear_svc_path, linear_svr_path])
def test_paths_begin_where_the_smaller_C_ended(client, data, path):
    options = {"Cs": [0.9, 1.0], "tol": 1e-9}
    _, here, _ = path(*data, **options)
    _, found, gaps = path(*there(*data), **options)
    for one, other in zip(found, here, strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-8)
    assert gaps.max() <= 1e-9
    alone = path(*there(*data), Cs=[1.0], tol=1e-9)[1][0]
    assert found[1].n_iter_ < alone.n_iter_


def test_limits_keep_what_is_finished(client, data, monkeypatch):
    given = there(*data)
    with pytest.warns(ConvergenceWarning, match="fits did not reach the relative gap"):
        LinearSVCCV(Cs=[1.0], tol=1e-15, max_iter=2, cv=2, refit=False).fit(*given)
    for limit in (0.6, 2.0, 6.0):  # a busy machine may take longer to load the rows
        with pytest.raises((ValueError, TimeoutError)) as error:
            LinearSVCCV(tol=1e-15, loss="hinge", time_limit=limit).fit(*given)
        if error.type is ValueError:
            break
    assert "ended the search of LinearSVCCV before one" in str(error.value)
    score = LinearSVC.model_.fget
    seen = []

    def pressed(self):
        seen.append(self.C)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return score(self)

    monkeypatch.setattr(LinearSVC, "model_", property(pressed))
    clf = LinearSVCCV(Cs=[0.1, 1.0], cv=2)
    said = "of LinearSVCCV: scores_ and path_ have 2 of 4 fits and there is no model"
    with pytest.raises(KeyboardInterrupt, match=said):
        clf.fit(*given)
    assert np.isfinite(clf.scores_).tolist() == [[True, True], [False, False]]
    assert not hasattr(clf, "best_estimator_")


def test_what_a_cluster_does_not_select_is_refused(client, data):
    given = there(*data)
    for options, message in [
        ({"cv": GroupKFold(3)}, "an int or a KFold or StratifiedKFold where X is on a"),
        ({"cv": KFold(3, shuffle=True)}, "folds without shuffle where X is on a"),
        ({"cv": [([0], [1])]}, "an int or a KFold or StratifiedKFold where X is on a"),
        ({"scoring": "roc_auc"}, "a score of labels, as 'balanced_accuracy', where"),
        ({"scoring": lambda *_: 1.0}, "a name or None where X is on a cluster"),
        ({"calibrate": "sigmoid"}, "None where X is on a cluster"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            LinearSVCCV(**options).fit(*given)
    for options, message in [
        (
            {"scoring": "neg_median_absolute_error"},
            "None or one of 'r2', 'neg_mean_squared_error'",
        ),
        ({"cv": StratifiedKFold(3)}, "an int or a KFold where X is on a cluster"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            LinearSVRCV(**options).fit(*given)
    with pytest.raises(ValueError, match="takes X, y and sample_weight where X is on"):
        LinearSVCCV().fit(*given, groups=np.ones(900))
    with pytest.raises(ValueError, match="scale_in_folds takes no Dask collection"):
        LinearSVCCV().scale_in_folds().fit(*given)
    with pytest.raises(ValueError, match=r"'y' parameter of LinearSVCCV.fit must hold"):
        LinearSVCCV().fit(*there(data[0], np.zeros(900)))
    with pytest.raises((ValueError, TypeError), match=r"of LinearSVRCV.fit must"):
        LinearSVRCV().fit(*there(data[0], np.full(900, "a")))
    bad = data[0].copy()
    bad[412, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in partition 2, at its row 12, column 3"):
        LinearSVCCV().fit(*there(bad, data[1]))
    with pytest.raises(TypeError, match="SVCCV takes no Dask collection"):
        SVCCV().fit(*given)
    with pytest.raises(TypeError, match="on a cluster linear_svc_path and linear_svr"):
        svc_path(*given)
