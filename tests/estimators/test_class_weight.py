"""Weights of classes one against the rest: the class has its own, all others 1.

So LIBLINEAR has it. Each binary problem then has weights of its own, whatever solves it.
"""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight

from tests.cases.pairwise import product
from widemargin import SVC, SVCCV, BudgetSVC, LinearSVC, LinearSVCCV

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
    machine.set_params(class_weight=None)
    found = of_each_class(machine, X, y, class_weight, None)
    machine.set_params(class_weight=class_weight).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), found, atol=2e-2)


@pytest.mark.parametrize("search", [LinearSVCCV(), SVCCV(gammas=[0.01, 0.1])])
@pytest.mark.parametrize("shape", [(160, 8), (120, 700)])
@pytest.mark.parametrize("class_weight", FACTORS)
def test_searches_weigh_the_classes_of_each_fold(search, shape, class_weight):
    X, y = some_rows(*shape)
    Cs, options = [0.01, 0.3, 10.0], {"multi_class": "ovr", "tol": 1e-6}
    options["class_weight"] = class_weight
    search.set_params(Cs=Cs, **options).fit(X, y)
    kernel = isinstance(search, SVCCV)
    grid = {"C": Cs} | ({"gamma": search.gammas} if kernel else {})
    points = GridSearchCV((SVC if kernel else LinearSVC)(**options), grid).fit(X, y)
    scores = [points.cv_results_[f"split{fold}_test_score"] for fold in range(5)]
    found = search.scores_.swapaxes(1, 2) if kernel else search.scores_
    np.testing.assert_array_equal(found.reshape(5, -1), scores)


@pytest.mark.parametrize("kind", [LinearSVC, SVC])
def test_weights_that_no_float_holds_are_refused(kind):
    X, y = some_rows(60, 8)
    clf = kind(C=1e300, multi_class="ovr", class_weight={1: 1e9})
    with pytest.raises(ValueError, match="must have a finite sum"):
        clf.fit(X, y)
