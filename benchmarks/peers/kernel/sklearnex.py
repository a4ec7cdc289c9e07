"""scikit-learn-intelex: SVC on oneDAL, from every kind of input that it takes."""

from sklearnex.svm import SVC

from benchmarks.peers.kernel import as_given, kinds, of_model

DISTRIBUTION = "scikit-learn-intelex"


def ladders(is_sparse):
    """Largest violation of the optimality conditions, a ladder for each input."""
    return [
        [{"tol": 10.0**-k, "input": kind} for k in range(1, 6)]
        for kind in kinds(is_sparse)
    ]


def prepared(X, input, **setting):
    """As the setting says."""
    return as_given(X, input)


def trained(X, y, C, gamma, tol, input):
    """With a cache of 1000 MB."""
    y = y.astype(X.dtype)
    model = SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=1000).fit(X, y)
    if not hasattr(model, "_onedal_estimator"):
        raise NotImplementedError("oneDAL did not take this; scikit-learn solved it")
    return model


def fit(X, y, C, gamma, **setting):
    """Alpha and b."""
    return of_model(trained(X, y, C, gamma, **setting), X)
