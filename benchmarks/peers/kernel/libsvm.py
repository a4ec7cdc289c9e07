"""LIBSVM through scikit-learn: sparse rows stay sparse, dense ones dense."""

from sklearn.svm import SVC

from benchmarks.peers.kernel import of_model

DISTRIBUTION = "scikit-learn"


def ladders(is_sparse):
    """Largest violation of the optimality conditions."""
    return [[{"tol": 10.0**-k} for k in range(1, 6)]]


def prepared(X, **setting):
    """As it is."""
    return X


def trained(X, y, C, gamma, tol):
    """With a cache of 1000 MB."""
    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=1000).fit(X, y)


def fit(X, y, C, gamma, **setting):
    """Alpha and b."""
    return of_model(trained(X, y, C, gamma, **setting), X)
