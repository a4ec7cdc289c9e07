"""Few dense rows of many columns: values of all pairs, made at once by BLAS."""

import numpy as np
import pytest

from tests.cases.kernels import NAMED, plain
from tests.cases.many import never
from widemargin import (
    SVC,
    SVCCV,
    SVR,
    Kernel,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
)
from widemargin.kernels import wide_rows
from widemargin.kernels.wide_rows import SHARED, WideRows, layout_of
from widemargin.system.deadline import Deadline, OutOfTime, until

KERNELS = {
    "linear": Kernel("linear", gamma=1.0),
    "rbf": Kernel("rbf", gamma=2e-3),
    "poly": Kernel("poly", gamma=2e-3, coef0=0.5, degree=3),
}
on_kernels = pytest.mark.parametrize("name", KERNELS)


def data(m=90, n=700, at=0.0):
    """Rows around a point, with two that are equal; classes, and targets."""
    rng = np.random.default_rng(m)
    X = at + rng.normal(size=(m, n))
    X[1] = X[0]
    target = X[:, :20].sum(axis=1) - 20 * at + rng.normal(size=m)
    return X, target > np.median(target), target


def made(X, kernel, group=None):
    """The rows, with the values of all pairs."""
    group = np.zeros(len(X), np.int64) if group is None else group
    return WideRows(X, group, kernel, layout_of(X, kernel))


def counted(monkeypatch):
    """The numbers of rows whose values are made at once from now on."""
    asked, begin = [], WideRows.__init__

    def noting(self, X, *others):
        asked.append(len(X))
        begin(self, X, *others)

    monkeypatch.setattr(WideRows, "__init__", noting)
    return asked


@on_kernels
@pytest.mark.parametrize("at", [0.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_sums_are_within_the_bounds_of_their_errors(name, at, dtype):
    X, kernel = data(at=at)[0].astype(dtype), KERNELS[name]
    m, rng = len(X), np.random.default_rng(1)
    samples, c = made(X, kernel), rng.normal(size=len(X)) * 10.0 ** rng.uniform(-3, 3)
    rows, starts = np.arange(m), np.array([0])
    true = plain(kernel, X.astype(np.longdouble), X.astype(np.longdouble))
    found = samples.exact((rows, c, np.array([m])), (rows, np.array([m])), 1, never)
    errors = samples.exact_errors(rows, c, starts)
    assert (np.abs(found - true @ c.astype(np.longdouble)) <= errors).all()
    assert errors.max() < 1e-9 * np.abs(found).max() + 1e-9 * np.abs(true).max()
    single = samples._values.astype(np.float32).astype(np.longdouble) @ c
    kept = samples.kept_errors(rows, c, starts)
    assert (np.abs(single - true @ c.astype(np.longdouble)) <= kept).all()
    assert (samples.lengths**2 >= true.diagonal()).all()
    np.testing.assert_allclose(samples.diagonal, samples._values.diagonal(), rtol=1e-12)


@on_kernels
def test_parts_of_rows_make_the_same_values(name, monkeypatch):
    X = data()[0]
    whole = made(X, KERNELS[name])._values
    monkeypatch.setattr(wide_rows, "PART", 32)
    parts = made(X, KERNELS[name])._values
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(parts, parts.T)


def test_rows_that_do_not_suit():
    X, kernel, linear = data()[0], KERNELS["rbf"], KERNELS["linear"]
    assert layout_of(X, kernel) is not None
    assert layout_of(X, linear) is not None
    assert layout_of(X[:, :599], linear) is None  # few columns
    assert layout_of(X[:, :599], kernel) is not None  # these take longer one by one
    assert layout_of(X[:, :199], kernel) is None
    for few in (kernel, linear):  # where many problems share them
        assert layout_of(X[:, :128], few, SHARED) is not None
        assert layout_of(X[:, :127], few, SHARED) is None
    some = X[:, :210]
    for times, alone, shared in ((3, True, True), (8, False, True), (19, False, False)):
        many = np.repeat(some, times, axis=0)  # up to three for a column, or eight
        assert (layout_of(many, kernel) is not None) == alone
        assert (layout_of(many, kernel, SHARED) is not None) == shared
        assert layout_of(many, linear) is None
    assert layout_of(X * (X > 2.0), kernel) is None  # mostly zeros
    assert layout_of(X, NAMED["laplacian"]) is None
    assert layout_of(X, Kernel("sigmoid", gamma=1e-3)) is None
    far = X.copy()
    far[0] += 1e9  # distances of the others have no digits in |x|^2 + |z|^2 - 2x'z
    assert layout_of(far, kernel) is None
    assert layout_of(np.ones((wide_rows.MOST_ROWS + 1,) * 2), kernel) is None


def test_numbers_beyond_float32_are_for_float64():
    X = data()[0]
    assert made(X, KERNELS["linear"]).is_fit
    huge = made(1e17 * X, KERNELS["linear"])
    assert not huge.is_fit
    assert huge.is_fit_exactly


def test_time_ends_between_parts(monkeypatch):
    monkeypatch.setattr(wide_rows, "PART", 16)
    looks = iter([1.0] * 3)  # then it is over
    late = Deadline(lambda: next(looks, 3.0), 2.0)
    with until(late), pytest.raises(OutOfTime):
        made(data()[0], KERNELS["rbf"])


@pytest.mark.parametrize(
    "machine",
    [
        SVC(tol=1e-8),
        SVC(kernel="linear", C=0.01, tol=1e-8),
        SVC(kernel="poly", loss="squared_hinge", tol=1e-8),
        SVR(C=10.0, tol=1e-8),
        LinearSVC(tol=1e-8),
        LinearSVC(loss="hinge", intercept="free", tol=1e-8),
        LinearSVR(tol=1e-8),
    ],
    ids=repr,
)
def test_fits_are_those_of_packed_rows(machine, monkeypatch):
    X, classes, target = data(at=2.0)
    y = target if "R" in type(machine).__name__ else classes
    asked = counted(monkeypatch)
    wide = machine.fit(X, y).solution_.certificate
    assert asked == [len(X)]
    monkeypatch.setattr(wide_rows, "MOST_ROWS", 0)
    packed = machine.fit(X, y).solution_.certificate
    assert wide.relative_gap <= 1e-8
    assert wide.primal == pytest.approx(packed.primal, rel=2e-8)
    assert wide.dual <= packed.primal
    assert packed.dual <= wide.primal


def test_bits_are_those_of_any_number_of_threads():
    X, classes, _ = data(400, 900)
    one, two = (SVC(n_jobs=n).fit(X, classes).dual_coef_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_search_over_wide_rows_is_that_over_packed_ones(monkeypatch):
    X, classes, _ = data(80, 700)
    wide = SVCCV(Cs=[0.1, 10.0], cv=3).fit(X, classes)
    monkeypatch.setattr(wide_rows, "MOST_ROWS", 0)
    packed = SVCCV(Cs=[0.1, 10.0], cv=3).fit(X, classes)
    np.testing.assert_array_equal(wide.scores_, packed.scores_)
    assert (wide.path_ <= 1e-4).all()


SEARCHES = {
    "classes": (LinearSVCCV(loss="hinge", intercept="free"), 3),
    "pairs": (LinearSVCCV(multi_class="ovo", class_weight="balanced"), 3),
    "probabilities": (LinearSVCCV(calibrate="sigmoid", scoring="roc_auc"), 2),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_linear_searches_share_the_products_of_all_folds(name, monkeypatch):
    X, _, target = data(75, 700)
    search, classes = SEARCHES[name]
    y = np.digitize(target, np.quantile(target, [0.3, 0.6][: classes - 1]))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    weights[::15] = 0.0
    asked = counted(monkeypatch)
    search.set_params(Cs=[1e-3, 0.1, 1.0, 10.0], cv=3, tol=1e-6)
    search.fit(X, y, sample_weight=weights)
    scores, gaps, C = search.scores_, search.path_, search.C_
    assert asked == [75, 75]  # of the search, and of the last fit
    monkeypatch.setattr(wide_rows, "MOST_ROWS", 0)
    search.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(scores, search.scores_, rtol=1e-4, atol=1e-4)
    assert gaps.shape == search.path_.shape
    assert (gaps <= 1e-6).all()
    assert search.C_ == C


def test_a_linear_search_over_wide_rows_keeps_to_its_time():
    X, classes, _ = data(400, 900)
    search = LinearSVCCV(Cs=50, loss="hinge", tol=1e-8, time_limit=1e-3)
    with pytest.raises(ValueError, match="time_limit of 0.001 s"):
        search.fit(X, classes)


def test_a_callable_scores_machines_with_their_weights():
    X, classes, _ = data(60, 700)
    seen = []

    def score(machine, X, y):
        seen.append(machine.coef_.shape)
        return machine.score(X, y)

    LinearSVCCV(cv=2, scoring=score).fit(X, classes)
    assert seen == [(1, 700)] * 20


@pytest.mark.parametrize("at", [0.0, 1e3])
def test_rows_far_from_zero_have_their_columns(at, monkeypatch):
    X, classes, _ = data(90, 700, at)
    asked = counted(monkeypatch)
    search = LinearSVCCV(cv=3, refit=False).fit(X, classes)
    assert set(asked) == ({90} if at == 0.0 else {60})  # of all folds, or of each
    assert (search.path_ <= 1e-4).all()


def test_ctrl_c_in_the_products_leaves_a_search_without_scores(monkeypatch):
    def interrupt(*others):
        raise KeyboardInterrupt

    monkeypatch.setattr(WideRows, "__init__", interrupt)
    search, (X, classes, _) = LinearSVCCV(cv=3), data()
    with pytest.raises(KeyboardInterrupt, match="have 0 of 30 fits"):
        search.fit(X, classes)
    assert np.isnan(search.scores_).all()


def test_numbers_that_vanish_raise_nothing():
    X = data()[0]
    with np.errstate(all="raise"):
        made(X, Kernel("rbf", gamma=1.0))
        made(X, Kernel("poly", gamma=1e-34, degree=9))


def test_values_for_which_is_no_room_are_not_made(monkeypatch):
    X, classes, _ = data(700, 700)
    asked = counted(monkeypatch)
    bytes_ = wide_rows.n_bytes(X)
    SVC(memory_limit=bytes_).fit(X, classes)
    assert not asked
    SVC(memory_limit=8 * bytes_).fit(X, classes)
    assert asked == [700]
