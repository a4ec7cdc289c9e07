"""scikit-learn's LinearSVC, its own LIBLINEAR: the intercept is penalized.

The hinge has a dual solver only; the squared hinge also a primal one (Newton), which
needs few steps where the dual one needs many, so both are run.
"""

from sklearn.svm import LinearSVC

DISTRIBUTION = "scikit-learn"
INTERCEPTS = {
    "hinge": ("penalized", "none"),
    "squared_hinge": ("penalized", "none"),
}


def ladders(loss, intercept):
    """LIBLINEAR's tolerances; they measure other things in the dual and the primal."""
    dual = [{"tol": 10.0**-k, "dual": True} for k in (1, 2, 4, 6)]
    primal = [{"tol": 10.0**-k, "dual": False} for k in (1, 3, 5, 7)]
    return [dual] if loss == "hinge" else [dual, primal]


def fit(X, y, C, loss, intercept, tol, dual):
    """W and b; the limit of iterations is out of the way."""
    has_intercept = intercept == "penalized"
    options = {"dual": dual, "tol": tol, "max_iter": 10_000_000, "random_state": 0}
    model = LinearSVC(C=C, loss=loss, fit_intercept=has_intercept, **options).fit(X, y)
    return model.coef_[0], float(model.intercept_[0]) if has_intercept else 0.0
