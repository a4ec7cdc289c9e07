"""The library itself."""

from widemargin import LinearSVC

INTERCEPTS = ("free", "penalized")


def fit(X, y, C, intercept, tol):
    """W and b."""
    model = LinearSVC(C=C, intercept=intercept, tol=tol).fit(X, y)
    return model.coef_[0], model.intercept_[0]
