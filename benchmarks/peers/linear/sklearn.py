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
    """LIBLINEAR's tolerances; they measure other things in the dual and the primal.

    The dual with its usual limit of epochs first, which always gives an answer.
    """
    epochs = {1: 1000, 2: 1000, 4: 1_000_000, 6: 1_000_000}
    dual = [{"tol": 10.0**-k, "dual": True, "max_iter": n} for k, n in epochs.items()]
    primal = [{"tol": 10.0**-k, "dual": False, "max_iter": 1000} for k in (1, 3, 5, 7)]
    return [dual] if loss == "hinge" else [dual, primal]


def fit(X, y, C, loss, intercept, **setting):
    """W and b."""
    has_intercept = intercept == "penalized"
    options = {"fit_intercept": has_intercept, "random_state": 0, **setting}
    model = LinearSVC(C=C, loss=loss, **options).fit(X, y)
    return model.coef_[0], float(model.intercept_[0]) if has_intercept else 0.0
