"""Rows of K that a byte each stands for: the bits of rows in float32."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from tests.cases.kernels import on_every_simd
from tests.cases.many import many
from widemargin import SVC, SVCCV, Kernel, _core
from widemargin.estimators import engine_choice
from widemargin.kernels.grouped import may_be_coded
from widemargin.numerics import linalg
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.batch import solve_many

MEMORY = 1 << 28
# Features, the share of them that is missing, and whether rows can be coded.
CASES = {
    "a table of all distances": (15, 0.1, True),
    "of even distances": (31, 0.0, True),
    "more distances than it has": (16, 0.1, False),
    "more even distances": (32, 0.0, False),
}


def one_hot(features, missing, m=1100, seed=0):
    """Rows with a one for the value, of five, of each feature; and a label of each."""
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 5, (m, features))
    label = (value[:, :6].sum(axis=1) + rng.normal(size=m) > 12.0).astype(int)
    has = rng.random((m, features)) >= missing
    i, j = np.nonzero(has)
    columns = 5 * j + value[i, j]
    X = sparse.csr_array((np.ones(len(i)), (i, columns)), shape=(m, 5 * features))
    return X, label


def answers(X, label, C=300.0, loss="hinge"):
    """Those of a chain of two C, with a tenth of the rows held out."""
    chain = [((0, 1), -1, 1.0), ((0, 1), 0, 3.0)]
    kernel = Kernel("rbf", gamma=2.0 / X.shape[1])
    problems = many(X, label, kernel, C, loss, groups=chain)
    for t in range(2):
        problems.C[t * len(label) :][::10] = 0.0
    return solve_many(problems, Limits(tol=1e-4), MEMORY, 1)


@on_every_simd
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("case", CASES)
def test_steps_have_the_same_bits(case, loss, simd, monkeypatch):
    features, missing, are_coded = CASES[case]
    X, label = one_hot(features, missing)
    evaluations = []

    def solve_batch(*asked):
        found = core(*asked, simd=simd)
        evaluations.append(found[0])
        return found

    core = _core.solve_batch
    monkeypatch.setattr(_core, "solve_batch", solve_batch)
    coded = answers(X, label, loss=loss)
    monkeypatch.setattr(linalg, "holds_ones", lambda *_: False)
    plain = answers(X, label, loss=loss)
    for one, other in zip(coded, plain, strict=True):
        assert one.status == "solved"
        assert one.w.tolist() == other.w.tolist()
        assert (one.b, one.certificate) == (other.b, other.certificate)
        assert one.extras["steps"] == other.extras["steps"]
    # More of them are made together.
    is_slow = simd == _core.simd_levels()[0]
    assert (_core.codes(simd) == 0) == is_slow
    assert (evaluations[0] != evaluations[1]) == (are_coded and not is_slow)


@pytest.mark.parametrize("classes", [2, 3])
def test_threads_change_no_bit(classes, monkeypatch):
    X, _ = one_hot(12, 0.1)
    y = np.random.default_rng(1).integers(0, classes, X.shape[0])
    search = SVCCV(Cs=[0.1, 10.0, 1e3], gammas=[0.05], cv=3, refit=False)
    one, two = (clone(search).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.path_.tolist() == two.path_.tolist()
    assert one.scores_.tolist() == two.scores_.tolist()
    monkeypatch.setattr(linalg, "holds_ones", lambda *_: False)
    plain = search.fit(X, y)
    assert one.path_.tolist() == plain.path_.tolist()
    assert one.scores_.tolist() == plain.scores_.tolist()


def test_rows_without_entries_and_of_one_kind():
    X, label = one_hot(10, 0.2)
    X = sparse.vstack([X, sparse.csr_array((40, X.shape[1])), X[[3] * 30]]).tocsr()
    label = np.append(label, np.arange(70) % 2)
    for one in answers(X, label):
        assert one.status == "solved"


def test_rows_that_may_be_coded_are_told():
    kernel = Kernel("rbf", gamma=1.0)
    for features, missing, are_coded in CASES.values():
        X, _ = one_hot(features, missing)
        assert may_be_coded(X, kernel) == (are_coded and _core.codes() > 0)
        assert not may_be_coded(X, Kernel("poly", gamma=1.0))
        assert not may_be_coded(2.0 * X, kernel)
        assert not may_be_coded(X.toarray(), kernel)


def test_larger_problems_of_coded_rows_are_solved_at_once(monkeypatch):
    X, label = one_hot(10, 0.0, m=300)
    monkeypatch.setattr(engine_choice, "MOST_ROWS_ALONE", 100)
    monkeypatch.setattr(engine_choice, "_has_few_vectors", lambda _: False)
    coded = "batch" if _core.codes() else "irwls"
    assert solver_of(SVC(C=1.0), X, label) == coded
    assert solver_of(SVC(C=1.0), 0.5 * X, label) == "irwls"
    assert solver_of(SVC(C=1.0, intercept="penalized"), X, label) == "irwls"


def solver_of(clf, X, y):
    return clf.fit(X, y).solutions_[0].solver
