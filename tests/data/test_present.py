"""Sparse rows of far more columns than entries, as a mistaken or hashed index makes."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load_model,
    save_model,
)
from widemargin.cli import main
from widemargin.data.memory import as_rows
from widemargin.data.present import PresentRows, present
from widemargin.estimators import checks

M, FEW, MANY = 60, 40, 3 * 2**31
PLACES = np.sort(np.random.default_rng(1).choice(MANY, FEW, replace=False))
NARROW = sparse.random_array((M, FEW), density=0.1, rng=2, format="csr")
NARROW.sort_indices()


def with_places(X, places=PLACES, n=MANY):
    """The rows with their columns at other places among many."""
    return sparse.csr_array((X.data, places[X.indices], X.indptr), (X.shape[0], n))


WIDE = with_places(NARROW)
TWO = np.where(np.arange(M) % 3 == 0, 1, -1)
THREE = np.arange(M) % 3
MACHINES = [
    (SVC(gamma=0.5), TWO),
    (SVC(gamma=0.5, solver="irwls"), TWO),
    (SVC(kernel="laplacian", gamma=0.5), THREE),
    (SVC(kernel="poly", gamma=0.5), THREE),
    (BudgetSVC(gamma=0.5, budget=10), TWO),
    (NuSVC(gamma=0.5, nu=0.3), TWO),
    (SVR(gamma=0.5), THREE),
    (NuSVR(gamma=0.5), THREE),
    (OneClassSVM(gamma=0.5), None),
    (EnclosingBall(kernel="rbf", gamma=0.5), None),
    (SVCCV(Cs=[1.0, 2.0], gammas=[0.5], cv=2), TWO),
    (SVRCV(Cs=[1.0, 2.0], gammas=[0.5], cv=2), THREE),
]


def values(machine, X):
    name = "predict" if isinstance(machine, SVR | SVRCV) else "decision_function"
    return getattr(machine, name)(X)


@pytest.mark.parametrize(("machine", "y"), MACHINES, ids=lambda x: str(x)[:30])
def test_columns_without_entries_change_no_kernel(machine, y, tmp_path):
    few = type(machine)(**machine.get_params()).fit(NARROW, y)
    many = machine.fit(WIDE, y)
    np.testing.assert_allclose(values(many, WIDE), values(few, NARROW), atol=1e-5)
    assert many.n_features_in_ == MANY
    if hasattr(many, "support_vectors_"):
        taken = WIDE[many.support_]
        assert many.support_vectors_.shape == taken.shape
        assert abs(many.support_vectors_ - taken).nnz == 0
    if not isinstance(machine, EnclosingBall):
        save_model(many, tmp_path / "m.wm")
        loaded = load_model(tmp_path / "m.wm")
        assert loaded.n_features == MANY
        found = loaded.decision_function(WIDE)
        np.testing.assert_array_equal(found, values(many, WIDE))


@pytest.mark.parametrize("gamma", ["scale", "auto", "mean_distance"])
def test_gamma_by_name_counts_all_columns(gamma):
    n = 2 * PresentRows(WIDE).shape[1]
    dense = np.zeros((M, n))
    dense[:, :FEW] = NARROW.toarray()
    other = with_places(NARROW, np.arange(FEW), n)
    weights = 1.0 + np.arange(M) % 2
    for given in (None, weights):
        rows = PresentRows(other)
        assert rows.shape[1] < rows.n_all == n
        kernel = SVC(gamma=gamma).fit(dense, TWO, given).kernel_
        unresolved = type(kernel)("rbf", gamma)
        found = unresolved.resolved(rows, given).gamma
        assert found == pytest.approx(kernel.gamma, rel=1e-12)


def test_a_row_has_the_same_bits_beside_any_others():
    machine = SVC(gamma=0.5).fit(WIDE, THREE)
    whole = machine.decision_function(WIDE)
    for i in (0, 7, M - 1):
        np.testing.assert_array_equal(
            machine.decision_function(WIDE[[i]]), whole[[i]], strict=True
        )
    unknown = with_places(NARROW, PLACES - PLACES[0] + 1)
    assert np.isfinite(machine.decision_function(unknown)).all()


def test_mistakes_name_the_column_of_the_data():
    X = WIDE.copy()
    X.data[5] = np.nan
    with pytest.raises(ValueError, match=rf"NaN at row \d+, column {X.indices[5]} "):
        SVC().fit(X, TWO)
    with pytest.raises(ValueError, match=rf"column {X.indices[5]} "):
        SVC().fit(WIDE, TWO).predict(X)


def test_rows_of_few_columns_stay_as_they_are():
    rows = as_rows(NARROW)
    assert present(rows) is rows
    empty = sparse.csr_array((3, MANY))
    assert PresentRows(empty).shape == (3, 1)
    assert PresentRows(empty).whole(PresentRows(empty).take([0])).shape == (1, MANY)


def test_weights_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(checks, "free_bytes", lambda: 2**30)
    expected = "LinearSVC needs some 288 GiB for numbers of 6,442,450,944 columns, and"
    with pytest.raises(MemoryError, match=expected + " 2 GiB are free: hash them"):
        LinearSVC().fit(WIDE, TWO)
    with pytest.raises(MemoryError, match="SVC needs some 288 GiB"):
        SVC(rank=2).fit(WIDE, TWO)


def test_a_huge_index_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.svm").write_text("1 1:2 6442450944:1\n-1 1:-1\n1 1:2\n-1 2:-3\n")
    assert main(["train", "d.svm", "m.wm", "--kernel", "rbf"]) == 0
    assert "4 rows x 6,442,450,944 features" in capsys.readouterr().out
    assert main(["predict", "m.wm", "d.svm"]) == 0
    assert capsys.readouterr().out == "1\n-1\n1\n-1\n"
    assert main(["convert", "m.wm", "m.model"]) == 0
    assert " 6442450944:1" in (tmp_path / "m.model").read_text()
    monkeypatch.setattr(checks, "free_bytes", lambda: 2**30)
    assert main(["train", "d.svm", "m.wm"]) == 2
    err = capsys.readouterr().err
    assert (
        "out of memory: d.svm, 4 rows x 6,442,450,944 columns (LinearSVC needs" in err
    )
