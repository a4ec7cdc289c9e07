"""LIBLINEAR by its authors: -B 1 appends a column of ones, which is penalized.

Only the primal solver of the squared hinge can leave it unpenalized (-R). Dual solvers
stop at 300 epochs whatever the tolerance. Dense data are made sparse first: the
package reads a dense array by a Python loop over its rows.
"""

from liblinear.liblinearutil import train
from scipy import sparse

DISTRIBUTION = "liblinear-official"
INTERCEPTS = {
    "hinge": ("penalized", "none"),
    "squared_hinge": ("free", "penalized", "none"),
}


def ladders(loss, intercept):
    """Its tolerances; -s 3 and -s 1 are dual coordinate descent, -s 2 is Newton."""
    dual = 3 if loss == "hinge" else 1
    descent = [{"solver": dual, "eps": 10.0**-k} for k in (1, 2, 4, 6)]
    newton = [{"solver": 2, "eps": 10.0**-k} for k in (1, 3, 5, 7)]
    if loss == "hinge":
        return [descent]
    return [newton] if intercept == "free" else [descent, newton]


def fit(X, y, C, loss, intercept, solver, eps):
    """W and b."""
    bias = {"none": "-B -1", "penalized": "-B 1", "free": "-B 1 -R"}[intercept]
    options = f"-s {solver} -c {C!r} -e {eps!r} {bias} -q"
    model = train(y, sparse.csr_matrix(X), options)
    w, b = model.get_decfun()
    return w, b if intercept != "none" else 0.0
