"""Problems drawn at random: what is fitted, by its seed and number.

Kernel x loss x intercept x C from 1e-8 to 1e8 x scale from 1e-150 to 1e150 x weights x
data of many kinds x solver x storage, small enough to be checked exactly. A case
depends on its seed and number only.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from widemargin import Kernel, as_rows
from widemargin.data.matrix import as_matrix
from widemargin.kernels.table import NAMES, with_spectrum
from widemargin.losses.norms import BudgetL1, BudgetL2, Interpolation, L1Norm, L2Norm
from widemargin.numerics.linalg import n_bytes

# Where a fit begins, and how often.
LEVELS = {
    "linear": 0.35,
    "kernel": 0.28,
    "norm": 0.07,
    "LinearSVC": 0.06,
    "SVC": 0.06,
    "rank": 0.05,
    "BudgetSVC": 0.05,
    "ball": 0.04,
    "EnclosingBall": 0.04,
}
# chi2 takes the place of some laplacian ones: so the other cases keep their numbers.
KERNELS = (*(name for name in NAMES if name != "chi2"), "precomputed")
DATA = {
    "normal": 0.34,
    "clusters": 0.14,
    "shifted": 0.1,
    "uneven": 0.08,
    "counts": 0.06,
    "duplicates": 0.08,
    "one_row": 0.06,
    "one_column": 0.06,
    "constant": 0.04,
    "zero": 0.04,
}
# Of "SVC" it is that of a linear problem; low ranks need a semidefinite one.
_WITHOUT = {
    "SVC": ("linear",),
    "rank": ("linear", "sigmoid"),
    "batch": ("sigmoid", "precomputed"),
}
STORAGES = ("float64", "csr", "fortran", "float32", "csr-float32", "int")
LINEAR_SOLVERS = {
    "hinge": ("auto", "interior_point", "augmented_lagrangian", "coordinate_descent"),
    "squared_hinge": ("auto", "interior_point", "active_set", "coordinate_descent"),
}


@dataclass(frozen=True)
class Case:
    """A fit: X are the numbers that the library is given, as float64.

    For a precomputed kernel X (m, m) are its values. ``weights`` (m,) or None multiply
    C; ``options`` are those of the level. Blocks of four rows are for linear problems,
    where sums over rows have an order.
    """

    seed: int
    number: int
    level: str
    kind: str
    scale: float
    storage: str
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    weights: Any = field(repr=False)
    C: float = 1.0
    loss: str = "hinge"
    intercept: str = "free"
    kernel: Any = None
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int | None = 200
    options: dict = field(default_factory=dict)
    n_jobs: int | None = None
    is_cut: bool = False

    @property
    def data(self):
        """X as it is stored."""
        dtype = {"int": np.int32}.get(self.storage, np.float64)
        dtype = np.float32 if self.storage.endswith("float32") else dtype
        X = self.X.astype(dtype)
        if self.storage.startswith("csr"):
            return sparse.csr_array(X)
        return np.asfortranarray(X) if self.storage == "fortran" else X

    @property
    def rows(self):
        """X as rows, for some threads, in one block or in blocks of four rows."""
        m = len(self.y)
        limit = 8 * 4 * -(-n_bytes(as_matrix(self.data)) // m) if self.is_cut else None
        return as_rows(self.data, n_jobs=self.n_jobs, memory_limit=limit)

    @property
    def prices(self):
        """C_i, the float product that the library uses: (m,)."""
        ones = np.ones(len(self.y))
        return self.C * (ones if self.weights is None else self.weights)

    @property
    def group(self):
        """What cases are counted by."""
        name = "" if self.kernel is None else f", {self.kernel.name}"
        return f"{self.level}{name}, {self.loss}"


def draw(seed, number, at=None):
    """The case of a number; at a level that is given, or at one that is drawn."""
    rng = np.random.default_rng((seed, number))
    level, kind = _one_of(rng, LEVELS), _one_of(rng, DATA)
    level = at or level
    scale = _scale(rng)
    X, y = _points(rng, kind, scale)
    if (
        kind in ("normal", "counts") and number % 3 == 0
    ):  # empty rows, the first ones too
        X[: len(X) // 3] = 0.0
    storage = _storage(rng, X, kind)
    X = _as_stored(X, storage)
    kernel = None if level in ("linear", "LinearSVC") else _kernel(rng, level, X, scale)
    if kernel is not None and kernel.name == "chi2":
        X = np.abs(X)
    if kernel is not None and kernel.name == "precomputed":
        X = _as_stored(_matrix(rng, X), storage := "float64")
    setting = _setting(rng, level)
    case = Case(
        seed,
        number,
        level,
        kind,
        scale,
        storage,
        X,
        y,
        _weights(rng, y),
        C=float(10.0 ** rng.uniform(-8, 8)),
        kernel=kernel,
        tol=float(10.0 ** rng.uniform(-9, -2)),
        max_iter=_iterations(rng),
        **setting,
        options=_options(rng, level, kernel, len(y)),
    )
    return _ordered(rng, case)


def _ordered(rng, case):
    """The case for one thread or two, in blocks or not, its rows perhaps in order.

    That of labels, whose sums grow before they cancel, or that of sizes.
    """
    n_jobs, is_cut = int(rng.integers(1, 3)), bool(rng.random() < 0.5)
    case = replace(case, n_jobs=n_jobs, is_cut=is_cut and case.level == "linear")
    kind = rng.choice(["drawn", "labels", "sizes"], p=[0.6, 0.2, 0.2])
    if kind == "drawn":
        return case
    X, y, weights = case.X, case.y, case.weights
    sizes = np.abs(X).max(axis=1)
    order = np.argsort(y if kind == "labels" else -sizes, kind="stable")
    square = case.kernel is not None and case.kernel.name == "precomputed"
    X = X[np.ix_(order, order)] if square else X[order]
    weights = None if weights is None else weights[order]
    return replace(case, X=X, y=y[order], weights=weights)


def _iterations(rng):
    """Mostly enough; None: then other solvers take over where one stalls."""
    return {0: None, 1: 200, 2: 30, 3: 4}[int(rng.choice(4, p=[0.2, 0.6, 0.1, 0.1]))]


def _one_of(rng, table):
    return str(rng.choice(list(table), p=list(table.values())))


def _scale(rng):
    """Mostly near 1, in three cases of ten as far as squares can be held."""
    reach = rng.choice([0.0, 6.0, 150.0], p=[0.4, 0.3, 0.3])
    return float(10.0 ** rng.uniform(-reach, reach))


def _points(rng, kind, scale):
    """Rows of a kind and their labels, of both classes."""
    m, n = int(rng.integers(4, 41)), int(rng.integers(1, 7))
    y = _labels(rng, m, kind)
    X = rng.normal(size=(m, 1 if kind == "one_column" else n))
    X[:, 0] += rng.choice([0.0, 1.0, 4.0]) * y
    if kind == "clusters":
        X[::2] += 10.0 ** rng.uniform(1, 7)
    elif kind == "shifted":
        X += 10.0 ** rng.uniform(1, 8) * rng.normal(size=X.shape[1])
    elif kind == "uneven":
        X *= 10.0 ** rng.uniform(-4, 4, X.shape[1])
    elif kind == "counts":
        X, scale = np.rint(3.0 * X), 1.0
    elif kind == "duplicates":
        X = X[rng.integers(0, max(2, m // 4), m)]
    elif kind in ("constant", "zero"):
        X[:] = X[0] if kind == "constant" else 0.0
    return scale * X, y


def _labels(rng, m, kind):
    """Labels, of which one row at least has each."""
    y = np.where(rng.random(m) < rng.uniform(0.2, 0.8), 1.0, -1.0)
    if kind == "one_row":
        y[:] = rng.choice([-1.0, 1.0])
    first = rng.integers(m)
    y[first], y[first - 1] = -1.0, 1.0
    if kind == "one_row":
        y[first - 1] = y[first - 2]
        y[first] = -y[first - 1]
    return y


def _storage(rng, X, kind):
    """How the rows are stored: in types that can hold them."""
    sizes = np.abs(X[X != 0])
    fits = sizes.size == 0 or (sizes.min() > 1e-30 and sizes.max() < 1e30)
    whole = kind in ("counts", "zero")
    allowed = [s for s in STORAGES if "float32" not in s or fits]
    return str(rng.choice([s for s in allowed if s != "int" or whole]))


def _as_stored(X, storage):
    """The numbers that a storage keeps, as float64."""
    single = storage.endswith("float32")
    return X.astype(np.float32).astype(np.float64) if single else X


def _kernel(rng, level, X, scale):
    """A kernel whose gamma mostly suits the scale of the data."""
    names = [k for k in KERNELS if k not in _WITHOUT.get(level, ())]
    name = str(rng.choice(names))
    name = "chi2" if name == "laplacian" and len(X) % 3 == 0 else name
    unit = scale if rng.random() < 0.7 else 1.0
    power = 1 if name in ("laplacian", "chi2") else 2
    gamma = 10.0 ** rng.uniform(-2, 1) / unit**power
    coef0 = float(rng.choice([0.0, 1.0, 0.3]))
    gamma = float(np.clip(gamma / X.shape[1], 1e-300, 1e300))
    return Kernel(name, gamma=gamma, degree=int(rng.integers(1, 5)), coef0=coef0)


def _matrix(rng, X):
    """Kernel values of a Gaussian or of products, symmetric."""
    unit = max(float(np.abs(X).max(initial=0.0)), 1e-300)
    Z = X / unit
    if rng.random() < 0.5:
        d = ((Z[:, np.newaxis] - Z) ** 2).sum(axis=2)
        return np.exp(-(10.0 ** rng.uniform(-2, 2)) * d)
    K = (Z @ Z.T) * 10.0 ** rng.uniform(-8, 8)
    return 0.5 * (K + K.T)


def _setting(rng, level):
    """Loss, intercept and solver."""
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    intercept = str(rng.choice(["free", "penalized", "none"]))
    solver = "auto"
    if level in ("norm", "BudgetSVC"):
        loss, intercept = "hinge", "free"
    elif level in ("linear", "LinearSVC"):
        names = LINEAR_SOLVERS[loss][: 3 if intercept == "free" else 4]
        solver = str(rng.choice(names))
    elif level == "kernel" and loss != "hinge" and intercept != "free":
        solver = str(rng.choice(["auto", "irwls", "frank_wolfe", "core_vector"]))
    return {"loss": loss, "intercept": intercept, "solver": solver}


def _weights(rng, y):
    """None, uneven ones, or some that are zero while both classes remain."""
    kind, m = rng.choice(["none", "uneven", "zero"], p=[0.5, 0.3, 0.2]), len(y)
    if kind == "none":
        return None
    reach = rng.choice([1.0, 6.0])
    weights = 10.0 ** rng.uniform(-reach, reach, m)
    if kind == "zero":
        weights[rng.random(m) < 0.3] = 0.0
        for sign in (-1.0, 1.0):
            weights[np.flatnonzero(y == sign)[0]] = 1.0
    return weights


def _options(rng, level, kernel, m):
    """What a level has beside the problem."""
    if level == "norm":
        return {"norm": _norm(rng, m)}
    if level == "BudgetSVC":
        return {
            "budget": int(rng.integers(2, m + 1)),
            "norm": str(rng.choice(["l1", "l2"])),
            "method": str(rng.choice(["pursuit", "norm", "prune"], p=[0.5, 0.4, 0.1])),
        }
    if level == "rank":
        names = ["nystroem", "cholesky", "eigen"]
        names += ["fourier"] * (kernel.name in with_spectrum())
        method = str(rng.choice(names))
        return {"rank": int(rng.integers(1, m + 1)), "approximation": method}
    if level in ("ball", "EnclosingBall"):
        return {"hard": bool(rng.random() < 0.5)}
    return {}


def _norm(rng, m):
    B = float(rng.uniform(0.5, m))
    return [
        L1Norm(),
        L2Norm(),
        BudgetL1(budget=B),
        BudgetL2(budget=B),
        Interpolation(t=B),
    ][rng.integers(5)]
