"""ThunderSVM on the processor (wheel thundersvm-cpu): batches of pairs, in float32.

Its first class is that of the first row, and its intercept is that of LIBSVM with the
sign turned. Its threads would spin where they wait: beside other work on the machine
that takes 6 times as long, so they are told to sleep. Sparse rows are made dense: given
them, version 0.3.3 takes labels of -1 for many classes (integers read as floats).
"""

import os

import numpy as np

from benchmarks.peers.kernel import Answer, as_given, coefficients

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when it is loaded
try:
    from thundersvm import SVC
except OSError as reason:  # a library of the wheel is not on this machine
    raise ImportError(f"thundersvm cannot be loaded: {reason}") from reason

DISTRIBUTION = "thundersvm-cpu"


def ladders(is_sparse):
    """Largest violation of the optimality conditions, from dense rows."""
    return [[{"tol": 10.0**-k, "input": "dense32"} for k in range(1, 5)]]


def prepared(X, input, **setting):
    """As the setting says; it turns everything into float32."""
    return as_given(X, input)


def trained(X, y, C, gamma, tol, input):
    """On all cores."""
    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol).fit(X, y)


def fit(X, y, C, gamma, **setting):
    """Alpha and b."""
    model = trained(X, y, C, gamma, **setting)
    coef, support = coefficients(model), np.asarray(model.support_)
    alpha = np.zeros(X.shape[0])
    alpha[support] = np.abs(coef)
    sign = np.sign(float(coef @ y[support]))
    return Answer(alpha, -sign * float(model.intercept_[0]), {})
