"""LIBLINEAR through scikit-learn; it penalizes the intercept."""

from sklearn.svm import LinearSVC

INTERCEPTS = ("penalized",)


def fit(X, y, C, intercept, tol):
    """W and b, at LIBLINEAR's own tolerance of 1e-4 or less."""
    model = LinearSVC(C=C, loss="hinge", tol=min(tol, 1e-4), max_iter=10_000).fit(X, y)
    return model.coef_[0], model.intercept_[0]
