"""Linear machines of all folds and all C, solved at once."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from tests.cases.reference import objective
from widemargin import SVC, SVCCV, SVRCV, LinearSVC, LinearSVCCV, LinearSVR, LinearSVRCV
from widemargin.data import shared
from widemargin.estimators import (
    folds,
    linear_folds,
    linear_svc_cv,
    linear_svr_cv,
    svc_cv,
)
from widemargin.estimators.folds import Folds
from widemargin.estimators.linear_folds import LinearFolds
from widemargin.solution import Status

CS = [0.01, 1.0, 100.0]


def rows(m=150, n=6, classes=3, spread=3.0):
    """Classes that overlap."""
    X, y = make_blobs(m, n, centers=classes, cluster_std=spread, random_state=0)
    return X / X.std(), y


@pytest.fixture
def found(monkeypatch):
    """What each search found at once: machines of folds, or None."""
    all_found = []
    solve = linear_folds.solve_linear_folds

    def remembered(*asked, **how):
        all_found.append(solve(*asked, **how))
        return all_found[-1]

    for module in (svc_cv, linear_svc_cv):
        monkeypatch.setattr(module, "solve_linear_folds", remembered)
    return all_found


def by_rule(monkeypatch, way):
    """Let these solve, one after the other: see `_Plan`."""
    monkeypatch.setattr(linear_folds, "_plan", lambda *asked: linear_folds._Plan(*way))


def pairs(y, scheme):
    """Rows and signs of the binary problems."""
    classes, every = np.unique(y), np.arange(len(y))
    if len(classes) == 2:
        return [(every, np.where(y == classes[1], 1.0, -1.0))]
    if scheme == "ovr":
        return [(every, np.where(y == c, 1.0, -1.0)) for c in classes]
    both = [(a, b) for k, a in enumerate(classes) for b in classes[k + 1 :]]
    own = [np.flatnonzero((y == a) | (y == b)) for a, b in both]
    return [
        (some, np.where(y[some] == a, 1.0, -1.0))
        for some, (a, _) in zip(own, both, strict=True)
    ]


def weights_of(machines, X):
    """W of each problem, (folds, problems, C, n), whoever solved it."""
    is_mixed = isinstance(machines, LinearFolds)
    W = np.zeros((*machines.b.shape, X.shape[1])) + (machines.W if is_mixed else 0.0)
    products = machines.products if is_mixed else machines
    if products is None:
        return W
    index, c = products.training.index, products.coefficients
    for k, task in enumerate(products.training.tasks):
        i, j = task.positive, task.negative
        sums = [(index >= 0, k)]
        if j is not None:
            sums = [(index == i, j - 1), (index == j, i)]
        for rows, own in sums:
            W[:, k] += np.einsum("fmc,mn->fcn", c[:, rows, own], X[rows])
    return W


COLUMNS, FEW_STEPS = (False, None, True), (True, 40, True)
MANY_STEPS, ROWS = (True, 400, True), (True, None, False)
on_ways = pytest.mark.parametrize(
    "way",
    [COLUMNS, FEW_STEPS, MANY_STEPS, ROWS],
    ids=["columns", "few steps", "many", "rows"],
)


@on_ways
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize(
    ("classes", "scheme"), [(2, "ovo"), (3, "ovo"), (3, "ovr"), (3, "dag")]
)
def test_gaps_are_those_of_the_machines(
    way, loss, intercept, classes, scheme, found, monkeypatch
):
    """Against machines of the training rows alone, solved to 1e-8."""
    by_rule(monkeypatch, way)
    X, y = rows(classes=classes)
    form = {"loss": loss, "intercept": intercept, "multi_class": scheme}
    search = SVCCV(kernel="linear", Cs=CS, cv=3, refit=False, tol=1e-6, **form)
    search.fit(X, y)
    (machines,) = found
    W, splits = weights_of(machines, X), StratifiedKFold(3).split(X, y)
    assert machines.ended.all()
    assert search.path_.max() <= 1e-6
    for fold, (train, test) in enumerate(splits):
        for c, C in enumerate(CS):
            one = SVC(kernel="linear", C=C, tol=1e-8, **form).fit(X[train], y[train])
            for k, (own, signs) in enumerate(pairs(y[train], scheme)):
                w, b = W[fold, k, c], machines.b[fold, k, c]
                at = X[train][own], signs, C, loss, intercept, w, b
                bounds = one.solutions_[k].certificate
                value, gap = objective(*at), machines.gaps[fold, k, c] + 1e-12
                assert bounds.dual <= value * (1.0 + 1e-12)
                assert value <= bounds.primal / (1.0 - gap)
            sure = np.abs(machines.decisions(fold, test)[c]).min(axis=1) > 1e-2
            right = one.predict(X[test]) == y[test]
            if sure.all():
                assert search.scores_[fold, 0, c] == right.mean()


def test_all_ways_took_part(found, monkeypatch):
    """What the last test is about: few steps leave some problems to Newton's method."""
    X, y = rows()
    search = SVCCV(kernel="linear", Cs=CS, cv=3, refit=False)
    kinds = []
    for way in (COLUMNS, FEW_STEPS, MANY_STEPS, ROWS):
        by_rule(monkeypatch, way)
        search.fit(X, y)
        kinds.append(type(found[-1]))
    assert kinds[0] is kinds[1] is LinearFolds
    assert kinds[3] is Folds
    assert 0.1 < found[1].W.any(axis=-1).mean() < 0.9


@on_ways
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_weights_and_factors_of_classes_count(way, scheme, monkeypatch):
    X, y = rows()
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(y)).astype(float)
    form = {"tol": 1e-7, "multi_class": scheme, "class_weight": {0: 3.0, 2: 0.5}}
    form |= {"kernel": "linear", "cv": [(np.arange(0, 150, 2), np.arange(1, 150, 2))]}
    by_rule(monkeypatch, way)
    at_once = SVCCV(Cs=CS, **form).fit(X, y, sample_weight=weights)
    monkeypatch.setattr(svc_cv, "solve_linear_folds", lambda *asked: None)
    by_fold = SVCCV(Cs=CS, **form).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(at_once.scores_, by_fold.scores_, atol=0.02)
    assert np.median(np.abs(at_once.scores_ - by_fold.scores_)) == 0.0
    assert at_once.path_.max() <= 1e-7
    np.testing.assert_allclose(at_once.coef_, by_fold.coef_)


@pytest.mark.parametrize("kind", [sparse.csr_array, np.float32, np.asfortranarray])
@pytest.mark.parametrize("way", [COLUMNS, FEW_STEPS], ids=["columns", "few steps"])
def test_storage_does_not_matter(kind, way, monkeypatch):
    by_rule(monkeypatch, way)
    X, y = rows()
    X = X.astype(np.float32).astype(np.float64)
    search = SVCCV(kernel="linear", Cs=CS, refit=False, tol=1e-7)
    plain, other = search.fit(X, y).scores_, search.fit(kind(X), y).scores_
    np.testing.assert_allclose(other, plain, atol=0.05)
    assert search.path_.max() <= 1e-7


def apart(m, n, at=0.0):
    """Two classes with a wide margin, somewhere."""
    X, y = np.random.default_rng(0).normal(size=(m, n)), np.arange(m) % 2
    X[:, 0] += 20.0 * y
    return X + at, y


def test_a_rule_for_each_shape(found):
    """Products to their end, some steps of them, or none; and who is fitted by fold."""
    machine = SVCCV(kernel="linear", Cs=CS, cv=3, refit=False)
    squared = LinearSVCCV(Cs=[0.01, 0.1, 1.0, 10.0], cv=3, refit=False)
    shapes = {
        "few rows": (machine, apart(90, 3), Folds),
        "many columns": (machine, rows(150, 40, 2, 9.0), Folds),
        "few columns": (machine, rows(600, 4, 2), LinearFolds),
        "squared": (squared, rows(150, 6, 2), LinearFolds),
        "squared, wide": (squared, rows(150, 140, 2), Folds),
        "far": (machine, apart(90, 3, 1e3), LinearFolds),
    }
    for name, (search, (X, y), kind) in shapes.items():
        search.fit(X, y)
        assert isinstance(found[-1], kind), name
    for changed in ({"max_iter": 1000}, {"solver": "interior_point"}):
        X, y = rows(90, 3, 2)
        SVCCV(kernel="linear", Cs=CS, refit=False, **changed).fit(X, y)
        assert found[-1] is None


def test_what_newton_leaves_goes_on_alone(found, monkeypatch):
    X, y = rows()
    by_rule(monkeypatch, COLUMNS)
    search = SVCCV(kernel="linear", Cs=CS, cv=3, refit=False, tol=1e-6)
    whole = search.fit(X, y).scores_
    solve, others, starts = (
        linear_folds.solve_linear_places,
        linear_folds.solve_tasks,
        [],
    )

    def rough(*asked, **how):
        ends = solve(*asked, **how)
        ends.proofs[1::2, 1] = 0.0
        return ends

    def remembered(training):
        starts.append(training.starts is not None)
        assert len(training.tasks) == 3
        assert len(training.index) == 100  # the rows of the fold
        return others(training)

    monkeypatch.setattr(linear_folds, "solve_linear_places", rough)
    monkeypatch.setattr(linear_folds, "solve_tasks", remembered)
    np.testing.assert_allclose(search.fit(X, y).scores_, whole, atol=0.05)
    assert found[-1].ended.all()
    assert search.path_.max() <= 1e-6
    assert sorted(starts) == [False] * 3 + [True]  # two points are of the same fold


@pytest.mark.parametrize("status", [Status.INTERRUPTED, Status.TIME_LIMIT])
@pytest.mark.parametrize("by", ["solve_linear_places", "solve_tasks"])
def test_an_early_end_keeps_what_was_finished(status, by, monkeypatch):
    X, y = rows(classes=2)
    by_rule(monkeypatch, COLUMNS)
    search = SVCCV(kernel="linear", Cs=CS, cv=3, refit=False)
    solve, others = linear_folds.solve_linear_places, linear_folds.solve_tasks

    def ended(*asked, **how):
        ends = solve(*asked, **how)
        ends.proofs[-1, 1] = 0.0  # the last C of the last fold
        return ends._replace(
            status=status if by == "solve_linear_places" else Status.STALLED
        )

    def others_ended(training):
        return [one.changed(status=status) for one in others(training)]

    monkeypatch.setattr(linear_folds, "solve_linear_places", ended)
    monkeypatch.setattr(linear_folds, "solve_tasks", others_ended)
    if status is Status.INTERRUPTED:
        with pytest.raises(KeyboardInterrupt, match="have 8 of 9 fits"):
            search.fit(X, y)
    else:
        search.set_params(time_limit=60.0)
        with pytest.warns(ConvergenceWarning, match="before 1 of 9 fits"):
            search.fit(X, y)
    assert np.isnan(search.scores_).sum() == 1
    assert np.isnan(search.scores_[-1, 0, -1])


def test_no_press_of_ctrl_c_is_lost(monkeypatch):
    """Also one that falls into the last step."""
    X, y = rows(90, 3, 2)
    by_rule(monkeypatch, COLUMNS)
    solve = linear_folds.solve_linear_places

    def pressed(*asked, **how):
        return solve(*asked, **how)._replace(status=Status.INTERRUPTED)

    monkeypatch.setattr(linear_folds, "solve_linear_places", pressed)
    with pytest.raises(KeyboardInterrupt, match="have 8 of 9 fits"):
        SVCCV(kernel="linear", Cs=CS, cv=3).fit(X, y)


def test_a_limit_within_the_products_ends_the_search(monkeypatch):
    X, y = rows(90, 3, 2)
    by_rule(monkeypatch, (True, 100_000, True))
    solve = folds.solve_places

    def late(*asked, **how):
        ends = solve(*asked, **how)
        ends.is_convex[-2:] = False
        return ends._replace(status=Status.TIME_LIMIT)

    monkeypatch.setattr(folds, "solve_places", late)
    monkeypatch.delattr(linear_folds, "solve_linear_places")  # it has no turn
    search = SVCCV(kernel="linear", Cs=CS, time_limit=60.0, refit=False)
    with pytest.warns(ConvergenceWarning, match="before 2 of 15 fits"):
        search.fit(X, y)
    assert np.isnan(search.scores_[:, 0]).sum(axis=1).tolist() == [0, 0, 0, 0, 2]


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_folds_apart_have_the_answers_of_folds_in_turn(monkeypatch, scheme, loss):
    X, y = make_classification(
        1200, 120, n_informative=10, n_classes=3, flip_y=0.1, random_state=0
    )
    by_rule(monkeypatch, (True, 1, False))
    apart, solve_apart = [], shared.solve_apart

    def noted(rows, solves, *args):
        apart.append(len(solves))
        return solve_apart(rows, solves, *args)

    monkeypatch.setattr(shared, "solve_apart", noted)
    search = LinearSVCCV(
        Cs=[0.01, 0.1, 1.0], cv=4, loss=loss, multi_class=scheme, refit=False
    )
    one = search.fit(X, y)
    assert apart == [4]
    monkeypatch.setattr(shared, "APART_BYTES", 0)
    other = clone(search).fit(X, y)
    assert apart == [4]
    np.testing.assert_array_equal(one.scores_, other.scores_)
    np.testing.assert_array_equal(one.path_, other.path_)


def test_without_room_folds_are_fitted_in_turn(found):
    X, y = make_classification(400, 20, random_state=0)
    small = {"memory_limit": 40_000, "Cs": CS, "cv": 3, "refit": False}
    SVCCV(kernel="linear", **small).fit(X, y)
    assert found == [None]


def test_threads_do_not_change_scores():
    X, y = rows(300, 5)
    search = SVCCV(kernel="linear", Cs=CS)
    one, two = (search.set_params(n_jobs=k).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    assert isinstance(one.best_estimator_, SVC)
    machine = LinearSVC(C=1.0, multi_class="ovo").fit(X, y)
    assert machine.status_ == "solved"


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("kind", [LinearSVRCV, SVRCV])
def test_regressions_are_solved_at_once_too(kind, loss, intercept, monkeypatch):
    """Against machines of the training rows alone, solved to 1e-8."""
    X, y = make_regression(90, 6, noise=20.0, random_state=0)
    widths, weights = [5.0, 40.0], np.random.default_rng(0).integers(0, 3, 90)
    found, solve = [], linear_svr_cv.solve_linear_folds

    def remembered(*asked, **how):
        found.append(solve(*asked, **how))
        return found[-1]

    monkeypatch.setattr(linear_svr_cv, "solve_linear_folds", remembered)
    form = {"loss": loss, "intercept": intercept}
    linear = {"kernel": "linear"} if kind is SVRCV else {}
    splits = list(KFold(3).split(X))
    search = kind(Cs=CS, epsilons=widths, cv=splits, tol=1e-6, **form, **linear)
    search.fit(X, y, sample_weight=weights)
    (machines,) = found
    assert isinstance(machines, LinearFolds)
    gaps = search.path_.reshape(3, 2, 3)
    assert gaps.max() <= 1e-6
    for fold, (train, test) in enumerate(splits):
        for e, epsilon in enumerate(widths):
            for c, C in enumerate(CS):
                one = LinearSVR(C=C, epsilon=epsilon, tol=1e-8, **form)
                one.fit(X[train], y[train], sample_weight=weights[train])
                w, b = machines.W[fold, e, c], machines.b[fold, e, c]
                value = tube(
                    X[train], y[train], C * weights[train], epsilon, form, w, b
                )
                bounds = one.solution_.certificate
                assert bounds.dual <= value * (1.0 + 1e-12)
                assert value <= bounds.primal / (1.0 - gaps[fold, e, c])
                predicted, known = X[test] @ w + b, weights[test]
                score = r2_score(y[test], predicted, sample_weight=known)
                found_score = search.scores_.reshape(3, 2, 3)[fold, e, c]
                assert found_score == pytest.approx(score, abs=1e-9)


def tube(X, y, C, epsilon, form, w, b):
    """The objective of a regression, written from the statement of the problem."""
    p = 1.0 if form["intercept"] == "penalized" else 0.0
    losses = np.maximum(np.abs(y - X @ w - b) - epsilon, 0.0)
    losses = losses if form["loss"] == "epsilon_insensitive" else losses**2
    return 0.5 * (w @ w + p * b * b) + C @ losses


def test_large_or_scored_regressions_are_fitted_by_fold(monkeypatch):
    X, y = make_regression(90, 6, noise=20.0, random_state=0)
    found, solve = [], linear_svr_cv.solve_linear_folds

    def remembered(*asked, **how):
        found.append(solve(*asked, **how))
        return found[-1]

    monkeypatch.setattr(linear_svr_cv, "solve_linear_folds", remembered)
    LinearSVRCV(Cs=CS, cv=3, scoring=lambda model, X, y: model.coef_[0]).fit(X, y)
    assert found == []
    monkeypatch.setattr(linear_folds, "MOST_ENTRIES_TWICE", 90 * 7 - 1)
    search = LinearSVRCV(Cs=CS, cv=3).fit(X, y)
    assert found == [None]
    assert search.path_.max() <= 1e-4


@on_ways
@pytest.mark.parametrize("kind", [SVCCV, LinearSVRCV])
def test_rows_that_a_fold_holds_out_have_no_say(kind, way, found, monkeypatch):
    """They limited the interval of best intercepts: labels that leaked into scores."""
    rng, train = np.random.default_rng(0), np.arange(120)
    X, test = rng.normal(size=(160, 3)), np.arange(120, 160)
    given = {"cv": [(train, test)], "Cs": [1e-4], "intercept": "free", "refit": False}
    if kind is SVCCV:
        y = (np.arange(160) % 2).astype(float)
        X[:, 0] += y
        search = SVCCV(kernel="linear", **given)
        by_rule(monkeypatch, way)
    else:  # a tube that holds all
        y = rng.normal(size=160) + 5.0
        search = LinearSVRCV(epsilons=[9.0], **given)
    monkeypatch.setattr(linear_svr_cv, "solve_linear_folds", svc_cv.solve_linear_folds)
    intercepts = []
    for shift in (0.0, 30.0):
        moved, target = X.copy(), y.copy()
        moved[test] -= shift
        if kind is SVCCV:
            target[test] = target[test][::-1]
        else:
            target[test] += shift
        search.fit(moved, target)
        intercepts.append(found[-1].b.ravel()[0])
    assert intercepts[0] != 0.0
    assert intercepts[1] == pytest.approx(intercepts[0], rel=1e-9)
