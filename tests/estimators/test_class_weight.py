"""Weights of classes one against the rest: the class has its own, all others 1.

So LIBLINEAR has it. Each binary problem then has weights of its own, whatever solves it.
"""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight

from tests.cases.pairwise import product
from widemargin import SVC, SVCCV, BudgetSVC, Kernel, LinearSVC, LinearSVCCV, Problem
from widemargin.estimators import folds
from widemargin.solution import Status

FACTORS = ["balanced", {0: 0.3, 2: 6.0}]


def some_rows(m, n, seed=0):
    """Four classes, of which one is most of the rows."""
    made = {"n_informative": 6, "n_redundant": 0, "n_classes": 4, "class_sep": 0.6}
    made |= {"n_clusters_per_class": 1, "weights": [0.55, 0.15, 0.15, 0.15]}
    X, y = make_classification(m, n, random_state=seed, **made)
    return np.where(np.abs(X) > 0.5, X, 0.0), y


def of_each_class(machine, X, y, class_weight, weights):
    """Decisions of machines of two classes, with what the rows of each weigh."""
    classes = np.unique(y)
    given = {"classes": classes, "y": y, "sample_weight": weights}
    factors = compute_class_weight(class_weight, **given)
    own = np.ones(len(y)) if weights is None else weights
    return np.stack(
        [
            machine.fit(
                X, y == k, np.where(y == k, factor, 1.0) * own
            ).decision_function(X)
            for k, factor in zip(classes, factors, strict=True)
        ],
        axis=1,
    )


@pytest.mark.parametrize("class_weight", FACTORS)
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_linear_machines_are_those_of_scikit_learn(class_weight, stored):
    X, y = some_rows(400, 8)
    given = {"C": 0.5, "class_weight": class_weight}
    ours = LinearSVC(intercept="penalized", tol=1e-8, **given).fit(stored(X), y)
    theirs = sklearn.svm.LinearSVC(tol=1e-8, dual=False, **given).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    other = LinearSVC(intercept="penalized", C=0.5).fit(X, y).coef_
    assert np.abs(ours.coef_ - other).max() > 0.01


# Shapes for each solver of several problems: pair steps, Newton's method on columns,
# descent on sparse rows, products of few rows, and the solvers of one problem.
@product(
    shape=[(14, 8), (300, 8), (200, 300), (1500, 60)],
    stored=[np.asarray, sparse.csr_array],
    loss=["hinge", "squared_hinge"],
    weighs=[False, True],
    solver=["auto", "interior_point"],
)
def test_linear_problems_have_weights_of_their_own(shape, stored, loss, weighs, solver):
    X, y = some_rows(*shape)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighs else None
    if weighs:
        w[::10] = 0.0
    X, given = stored(X), {"C": 0.5, "loss": loss, "solver": solver}
    for class_weight in FACTORS:
        clf = LinearSVC(tol=1e-6, class_weight=class_weight, **given).fit(X, y, w)
        alone = LinearSVC(tol=1e-9, **given)
        found = of_each_class(alone, X, y, class_weight, w)
        np.testing.assert_allclose(clf.decision_function(X), found, atol=2e-2)
        assert clf.dual_gap_ <= 1e-6


@pytest.mark.parametrize("class_weight", FACTORS)
@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize(
    "machine",
    [
        SVC(gamma=0.05, multi_class="ovr", tol=1e-7),
        SVC(gamma=0.05, multi_class="ovr", tol=1e-7, solver="irwls"),
        SVC(gamma=0.05, multi_class="ovr", tol=1e-7, rank=12, approximation="eigen"),
        BudgetSVC(budget=0.5, method="norm", gamma=0.05, multi_class="ovr", tol=1e-7),
    ],
    ids=["batch", "working sets", "low rank", "norms"],
)
def test_problems_with_a_kernel_have_weights_of_their_own(
    machine, class_weight, repeats
):
    X, y = some_rows(120, 8)
    X, y = np.repeat(X, repeats, axis=0), np.repeat(y, repeats)
    found = of_each_class(clone(machine), X, y, class_weight, None)
    clf = clone(machine).set_params(class_weight=class_weight).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), found, atol=2e-2)


# Factors that round in no sum: equal samples are solved as one; and others.
@pytest.mark.parametrize("factors", [{0: 0.5, 2: 4.0}, {0: 0.3, 2: 6.0}])
def test_certificates_of_equal_samples_have_the_factors(factors):
    X, y = some_rows(150, 8)
    X, y = np.repeat(X, 10, axis=0), np.repeat(y, 10)
    clf = SVC(C=0.25, gamma=0.05, multi_class="ovr", class_weight=factors).fit(X, y)
    for k, solution in enumerate(clf.solutions_):
        C = 0.25 * np.where(y == k, factors.get(k, 1.0), 1.0)
        signs = np.where(y == k, 1, -1)
        one = Problem(X, signs, C, "hinge", "free", kernel=Kernel("rbf", gamma=0.05))
        known = one.certify(solution.alpha, solution.w, solution.b)
        assert known.relative_gap <= clf.tol
        assert known.primal == pytest.approx(solution.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("search", [LinearSVCCV(), SVCCV(gammas=[0.01, 0.1])])
@pytest.mark.parametrize("shape", [(160, 8), (120, 700)])
@pytest.mark.parametrize("class_weight", FACTORS)
def test_searches_weigh_the_classes_of_each_fold(search, shape, class_weight):
    X, y = some_rows(*shape)
    Cs, options = [0.01, 0.3, 10.0], {"multi_class": "ovr", "tol": 1e-6}
    options["class_weight"] = class_weight
    search = clone(search).set_params(Cs=Cs, **options).fit(X, y)
    kernel = isinstance(search, SVCCV)
    grid = {"C": Cs} | ({"gamma": search.gammas} if kernel else {})
    points = GridSearchCV((SVC if kernel else LinearSVC)(**options), grid).fit(X, y)
    scores = [points.cv_results_[f"split{fold}_test_score"] for fold in range(5)]
    found = search.scores_.swapaxes(1, 2) if kernel else search.scores_
    np.testing.assert_array_equal(found.reshape(5, -1), scores)


def test_problems_of_folds_that_go_on_elsewhere_have_the_weights(monkeypatch):
    """Those that are too hard in float32; here all are said to be.

    Classes have other shares in the rows of a fold than in all.
    """
    ends_of, X, y = folds.solve_all, *some_rows(160, 8)

    def stalled(*given):
        ends = ends_of(*given)
        ends.is_convex[:] = False
        return ends._replace(status=Status.STALLED)

    held = ((y == 0) & (np.arange(len(y)) % 4 > 0)) | (np.arange(len(y)) < 40)
    parts = np.flatnonzero(~held), np.flatnonzero(held)
    options = {"multi_class": "ovr", "class_weight": "balanced", "tol": 1e-7}
    search = SVCCV(
        Cs=[0.3, 10.0], gammas=[0.05], cv=[parts], calibrate="sigmoid", **options
    )
    wanted = clone(search).fit(X, y)
    monkeypatch.setattr(folds, "solve_all", stalled)
    found = clone(search).fit(X, y)
    assert found.path_.max() <= 1e-7
    probabilities = (one.predict_proba(X) for one in (found, wanted))
    np.testing.assert_allclose(*probabilities, atol=1e-5)


def test_a_problem_that_is_not_begun_is_bounded_by_its_own_weights():
    X, y = some_rows(200, 8)
    clf = LinearSVC(class_weight={0: 0.5, 2: 4.0}, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    counts = np.bincount(y)
    for k, solution in enumerate(clf.solutions_):
        factor = {0: 0.5, 2: 4.0}.get(k, 1.0)
        zero = len(y) + (factor - 1.0) * counts[k]
        assert solution.certificate.primal == pytest.approx(zero)


@pytest.mark.parametrize("kind", [LinearSVC, SVC])
@pytest.mark.parametrize(
    ("C", "factor", "words"),
    [(1e300, 1e9, "have a finite sum"), (1e-200, 1e-200, "be above zero")],
)
def test_weights_that_no_float_holds_are_refused(kind, C, factor, words):
    X, y = some_rows(60, 8)
    clf = kind(C=C, multi_class="ovr", class_weight={1: factor})
    with pytest.raises(ValueError, match=f"C times the weights .* must {words}"):
        clf.fit(X, y)
