"""The library itself: the estimator with solver="auto", all problems."""

from widemargin import LinearSVC

DISTRIBUTION = "widemargin"
ALL = ("free", "penalized", "none")
INTERCEPTS = {"hinge": ALL, "squared_hinge": ALL}


def ladders(loss, intercept):
    """The certified gap; the last one is there for the best dual bound."""
    return [[{"tol": 10.0**-k} for k in range(2, 10)]]


def fit(X, y, C, loss, intercept, tol):
    """W, b and the certified dual objective."""
    model = LinearSVC(C=C, loss=loss, intercept=intercept, tol=tol).fit(X, y)
    dual = model.solution_.certificate.dual
    return model.coef_[0], model.intercept_[0], dual
