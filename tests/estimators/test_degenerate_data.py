"""All estimators on data at the edges: each fit works, or refuses in one sentence."""

import itertools
import re
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tests.cases.degenerate import DATA, GROUPS, LABELS, STORED, dense
from widemargin import (
    SVC,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    as_rows,
    load_model,
    save_model,
)
from widemargin.solution import Status

# What may be said besides how a fit ended.
SAID = ("there is no cap", "No point lies inside", "lie outside of the ball")
# So are "sigmoid", and matrices of values of 1e16 as they are rounded.
INDEFINITE = "not positive semidefinite"
REFUSED = "cannot predict with a precomputed kernel whose"


def _numbers(value, seen):
    """All floats that an object holds."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (float, np.floating)):
        yield value
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield from value.ravel()
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _numbers(part, seen)
    elif is_dataclass(value):
        for field in fields(value):
            if field.name != "trace":  # a step may break down; what is kept may not
                yield from _numbers(getattr(value, field.name), seen)


def fitted(estimator, X, y=None):
    """A fit without a warning but those that say how it ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    late = [one for one in caught if one.category is ConvergenceWarning]
    assert bool(late) == (estimator.status_ != "solved")
    for one in caught:
        text = str(one.message)
        is_known = any(said in text for said in SAID)
        loose = _kernel(estimator) not in (None, "rbf", "laplacian", "linear", "poly")
        assert one in late or is_known or (INDEFINITE in text and loose), text
    return estimator


def _kernel(estimator):
    return getattr(estimator, "kernel", None)


def check(estimator, data, labels, stored):
    """What holds for the fit of any data."""
    X = STORED[stored](DATA[data]())
    y = None if isinstance(estimator, EnclosingBall) else LABELS[labels](X.shape[0])
    estimator = clone(estimator)
    kernel = _kernel(estimator)
    if kernel == "precomputed":
        X = 1.0 + dense(X) @ dense(X).T
    if y is not None:  # those of "frank_wolfe" are 0.05 s each
        slices = getattr(estimator, "solver", None) == "frank_wolfe"
        estimator.set_params(max_iter=10 if slices else 2000)
    fitted(estimator, X, y)
    assert estimator.status_ in list(Status)
    assert 0.0 <= estimator.dual_gap_ < np.inf
    assert estimator.status_ != "solved" or estimator.dual_gap_ <= estimator.tol
    huge = data == "far-from-zero" or (callable(kernel) and stored == "int16")
    if not (huge or kernel == "sigmoid" or estimator.C == 1e6):  # rounding may end it
        assert estimator.status_ == "solved"
    for name, value in vars(estimator).items():
        if name.endswith("_"):
            assert not np.isnan(list(_numbers(value, set()))).any(), name
    try:
        scores, found = estimator.decision_function(X), estimator.predict(X)
    except ValueError as error:
        assert y is None
        assert REFUSED in str(error)
        return estimator
    assert np.isfinite(scores).all()
    assert np.isin(found, [1, -1] if y is None else y).all()
    return estimator


def _name(estimator):
    told = "".join(repr(estimator).split())[:90].replace("<function", "(")
    return re.sub("at0x[0-9a-f]*", "", told)  # the address differs between processes


# Every estimator meets one data set, the next one the next: and so in each group.
TURNS = [(DATA, 1), (LABELS, 5), (STORED, 1)]
CASES = [
    pytest.param(group, k, id=f"{k}-{_name(estimator)}")
    for group, estimators in GROUPS.items()
    for k, estimator in enumerate(estimators)
]


@pytest.mark.one_of(11)  # which divides no number of data sets
@pytest.mark.parametrize(("group", "k"), CASES)
def test_constant_rows_and_another_data_set(group, k):
    estimator = GROUPS[group][k]
    check(estimator, "equal", "two", "float64")
    turn = [list(kind)[(k // step) % len(kind)] for kind, step in TURNS]
    check(estimator, *turn)


@pytest.mark.full
@pytest.mark.parametrize(("group", "k"), CASES)
@pytest.mark.parametrize("stored", STORED)
def test_all_data(group, k, stored):
    for data, labels in itertools.product(DATA, LABELS):
        check(GROUPS[group][k], data, labels, stored)


# -- by hand ---------------------------------------------------------------------------

CONSTANT_ROWS = [
    SVC(),
    SVC(kernel="laplacian"),
    SVC(kernel="precomputed"),
    SVC(rank=2),
    SVC(rank="auto"),
    LinearSVC(loss="hinge"),
    LinearSVC(loss="hinge", solver="interior_point"),
    BudgetSVC(budget=2),
    BudgetSVC(budget=2, kernel="precomputed"),
    BudgetSVC(budget=2, kernel="linear"),
    BudgetSVC(budget=100, method="norm"),
]


@pytest.mark.filterwarnings("ignore:.*there is no cap:UserWarning")
@pytest.mark.parametrize("positive", [10, 3])
@pytest.mark.parametrize("value", [0.0, 1.7])
@pytest.mark.parametrize("estimator", CONSTANT_ROWS, ids=_name)
def test_of_equal_rows_only_the_intercept_is_left(estimator, value, positive):
    n = 20 if _kernel(estimator) == "precomputed" else 3
    X, y = np.full((20, n), value), np.arange(20) < positive
    clf = clone(estimator).set_params(C=0.7).fit(X, y)
    primal = getattr(clf, "primal_", [clf.solution_.certificate.primal])[0]
    assert primal == pytest.approx(2.0 * 0.7 * positive, rel=1e-4)
    if positive < 10:
        assert not clf.predict(X).any()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_budgets_of_equal_rows_are_one_path(norm):
    X, y = np.ones((20, 2)), np.arange(20) % 2
    models = BudgetSVC(norm=norm).path(X, y, [2, 5])
    assert [model.status_ for model in models] == ["solved"] * 2
    assert [len(model.support_) for model in models] == [0, 0]


def test_models_without_support_vectors_are_written_and_read(tmp_path):
    X, y = np.ones((20, 2)), np.arange(20) % 5 == 0
    clf = BudgetSVC(budget=2).fit(X, y)
    assert clf.support_vectors_.shape == (0, 2)
    save_model(clf, tmp_path / "model.wm")
    scores = load_model(tmp_path / "model.wm").scores(as_rows(X))
    np.testing.assert_array_equal(scores, clf.decision_function(X))
    np.testing.assert_array_equal(scores, clf.intercept_[0])


@pytest.mark.parametrize("step", ["toward", "away", "pairwise", "swap"])
def test_a_ball_whose_start_is_one_point_goes_on(step):
    X = DATA["one-column"]()
    options = {"kernel": "poly", "degree": 2, "coef0": 1.0, "step": step}
    assert fitted(EnclosingBall(C=0.1, **options), X).status_ == "solved"


def test_a_coreset_of_all_rows_is_solved():
    X, y = DATA["wide"](), np.arange(6) % 3
    for kernel in ("rbf", "laplacian"):
        clf = SVC(loss="squared_hinge", solver="core_vector", kernel=kernel)
        assert fitted(clf, X, y).status_ == "solved"
