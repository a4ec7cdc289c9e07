"""LIBSVM's model files: text that ``svm-train`` and its bindings read and write.

A file has a header of named values and a line for each support vector, sorted by class:
its coefficients, and its entries that are not zero. Coefficients are those of
`Expansion`: of c classes a vector has c - 1 of them, against the other classes in their
order, a positive decision of the pair i < j of classes speaks for i, and rho is
subtracted. The classes come in any order. For a precomputed kernel a vector is
"0:number", the number of its row in the training data, from 1.
"""

import io
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from widemargin.arrays import Vector
from widemargin.kernels.expansion import Expansion, pair_weights
from widemargin.kernels.kernel import MOST_DEGREE, Kernel
from widemargin.kernels.table import PARAMETERS
from widemargin.models import arrays as parts
from widemargin.models.arrays import UnfitError
from widemargin.models.decisions import Decision
from widemargin.models.model import (
    Model,
)
from widemargin.models.schemes import ONE_CLASS, REGRESSION
from widemargin.models.text import (
    FINITE,
    INT_MIN,
    Kind,
    Lines,
    choice,
    distinct_labels,
    integer,
    whole_labels,
)
from widemargin.models.writable import as_linear, as_model, say_left_out
from widemargin.numerics import linalg
from widemargin.system.files import Path, open_regular, replacing

# The types of LIBSVM: scheme (None: that of several classes) and loss. A scheme is
# written as its first one, if ``meta`` names no other.
_TYPES: dict[str, tuple[str | None, str]] = {
    "c_svc": (None, "hinge"),
    "nu_svc": (None, "hinge"),
    "one_class": (ONE_CLASS, "hinge"),
    "epsilon_svr": (REGRESSION, "epsilon_insensitive"),
    "nu_svr": (REGRESSION, "epsilon_insensitive"),
}
_KERNELS = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
_NAMES = {ours: theirs for theirs, ours in _KERNELS.items()}
# A matrix with more of its entries than this takes less memory where all are stored.
_DENSE_FROM = 2 / 3
_SV_LINES = 1 << 12  # that are made at a time
_MOST_COLUMNS = 2**31 - 2
# Rows of a precomputed kernel, and weights of linear decisions in memory: a file is not
# believed that asks for more.
_MOST_ROWS, _MOST_WEIGHTS = 1 << 20, 1 << 24


def write_libsvm(model: Any, path: Path) -> None:
    """Write a model as LIBSVM does.

    Parameters
    ----------
    model : Model, fitted estimator or Pipeline, as of `save_model`
        Of two classes, one against one, of a regression or of one class; with the
        kernel "linear", "poly", "rbf", "sigmoid" or "precomputed". Labels are whole
        numbers from -2^31 to 2^31 - 1, as LIBSVM has no others.
    path : str or path-like
        An existing file is replaced as a whole, or stays as it is after an error.

    Raises
    ------
    ValueError
        Other labels, kernels or schemes; a map of features; a scaling beside a kernel,
        which no file of LIBSVM can hold; numbers that are not finite.
    TypeError
        ``model`` is no model.
    OSError
        The file cannot be written.

    Warns
    -----
    UserWarning
        Probabilities or scores of pairs are left out: a file has no place for them.

    See Also
    --------
    read_libsvm : read it back.

    Notes
    -----
    Weights of the columns are written as one support vector for each decision. All
    numbers have as many digits as they need to come back to the bit; LIBSVM makes its
    sums in another order. ``meta["svm_type"]`` says which of the types of LIBSVM is
    written where there are several.

    Examples
    --------
    >>> import os, tempfile
    >>> from widemargin import SVC
    >>> from widemargin.models.libsvm import read_libsvm, write_libsvm
    >>> clf = SVC(gamma=0.5).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.model")
    ...     write_libsvm(clf, path)
    ...     read_libsvm(path).predict([[0.5], [3.5]]).tolist()
    [0, 1]
    """
    model = as_model(model, "write_libsvm")
    _check_writable(model)
    labels = whole_labels(model.classes.tolist(), "LIBSVM")
    try:
        found = _expansion(model)
        parts.check_expansion(found, least=1)
    except UnfitError as error:
        raise ValueError(f"The model cannot be written: {error}.") from None
    sign = 1.0
    if model.scheme == "binary":
        # The first label is our negative one, so that a score of 0 goes to the same
        # class here (>= 0) and there (> 0).
        sign = -1.0
    head = _head(model, found, labels, sign)
    with replacing(path) as file:
        file.write("".join(f"{line}\n" for line in head).encode())
        for start in range(0, found.weights.shape[1], _SV_LINES):
            file.write(_lines(found, sign, slice(start, start + _SV_LINES)).encode())
    say_left_out(model, path)


def read_libsvm(path: Path, n_features: int | None = None) -> Model:
    """Read a model that LIBSVM or `write_libsvm` wrote.

    Parameters
    ----------
    path : str or path-like
        The result of LIBSVM's ``svm-train``, ``svm_save_model`` or of `write_libsvm`.
    n_features : int or None, default=None
        Columns of the data. None: as many as the support vectors use, as the file does
        not tell; of a precomputed kernel up to the last one.

    Returns
    -------
    Model
        One against one for several classes. ``meta`` has the "svm_type", the loss and
        ``"index_base": 1``; LIBSVM's probA and probB are left out: they
        are of pairs of classes, and the calibration of a `Model` is of classes.

    Raises
    ------
    ValueError
        The file is malformed (names line and column), or has more columns than
        ``n_features``.
    FileNotFoundError
        No such file; names the file that may have been meant.

    See Also
    --------
    write_libsvm : write it.

    Notes
    -----
    `Model.predict` and LIBSVM decide alike but for exact ties: where pairs are tied,
    LIBSVM takes the class that comes first in its file and `Model` the smallest, and
    where a value of one class is 0, LIBSVM says -1 and `Model` 1.
    """
    with open_regular(path) as file:
        lines = Lines(path, io.TextIOWrapper(file, "ascii", errors="replace"))
        head = _read_head(lines)
        return _model(head, _read_vectors(lines, head, n_features))


# -- writing ---------------------------------------------------------------------------


def _check_writable(model: Model) -> None:
    """Refuse what LIBSVM has no words for."""
    name = model.meta.get("kernel") if model.is_linear else None
    if model.kernels is not None:
        name = model.kernels.kernel.name
    reason = None
    if model.scaling is not None:
        reason = "no scaling of the columns: train on data that svm-scale has scaled"
    elif model.expand is not None:
        reason = "no features of a kernel"
    elif name is not None and name not in _NAMES:
        called = repr(name) if isinstance(name, str) else "that is a callable"
        reason = f"no kernel {called}"
    elif model.scheme in ("ovr", "dag"):
        reason = f"no scheme {model.scheme!r}: train with multi_class='ovo'"
    elif model.break_ties:
        reason = "no break_ties"
    if reason is not None:
        raise ValueError(f"A LIBSVM model has {reason}.")


def _expansion(model: Model) -> Expansion:
    """The decisions as sums over vectors, in the layout of LIBSVM."""
    c, kernels = max(1, len(model.classes)), model.kernels
    if kernels is not None:
        if c < 3 or kernels.is_paired:
            return kernels
        return _laid_out(kernels.kernel, kernels.vectors, kernels.weights, kernels.b, c)
    _, W, b = as_linear(model, "write_libsvm")
    if model.meta.get("kernel") == "precomputed":
        rows = sparse.csr_array(sparse.eye_array(W.shape[1]))
        return _laid_out(Kernel("precomputed", gamma=1.0), rows, W, b, c)
    return _laid_out(Kernel("linear", gamma=1.0), W, np.eye(len(b)), b, c)


def _laid_out(kernel: Kernel, vectors: Any, W: Vector, b: Vector, c: int) -> Expansion:
    """Sums W (k, l) over vectors (l, n), each vector in the first class of its pairs.

    Vectors of several pairs are there once for each first class.
    """
    first, second = np.triu_indices(max(2, c), 1)
    places, weights = [], []
    for i in range(c):
        own = W[first == i]
        places.append(np.flatnonzero(own.any(axis=0)))
        weights.append(np.zeros((max(1, c - 1), len(places[i]))))
        weights[i][second[first == i] - 1] = own[:, places[i]]
    counts = np.array([len(some) for some in places])
    rows = vectors[np.concatenate(places)]
    return Expansion(kernel, rows, np.hstack(weights), b, counts)


def _head(model: Model, found: Expansion, labels: list[int], sign: float) -> list[str]:
    """The lines before the support vectors."""
    kernel, scheme = found.kernel, model.scheme
    kind = scheme if scheme in (REGRESSION, ONE_CLASS) else None
    fitting = [name for name, (its, _) in _TYPES.items() if its == kind]
    asked = model.meta.get("svm_type")
    lines = [
        f"svm_type {asked if asked in fitting else fitting[0]}",
        f"kernel_type {_NAMES[str(kernel.name)]}",
    ]
    for name in ("degree", "gamma", "coef0"):
        if name in PARAMETERS.get(str(kernel.name), ()):
            number = getattr(kernel, name)
            lines.append(f"{name} {number if name == 'degree' else float(number)!r}")
    lines.append(f"nr_class {len(labels) if kind is None else 2}")
    lines.append(f"total_sv {found.weights.shape[1]}")
    lines.append(f"rho {' '.join(map(repr, (-sign * found.b).tolist()))}")
    if kind is None:
        lines.append(f"label {' '.join(map(str, labels))}")
        lines.append(f"nr_sv {' '.join(map(str, found.counts.tolist()))}")
    return [*lines, "SV"]


def _lines(found: Expansion, sign: float, some: slice) -> str:
    """Lines of some support vectors."""
    rows = sparse.csr_array(found.vectors[some])
    rows.sort_indices()
    weights = (sign * found.weights[:, some]).T.tolist()
    if found.kernel.is_precomputed:
        entries = [f"0:{place + 1}" for place in rows.indices.tolist()]
    else:
        numbers = rows.data.astype(np.float64).tolist()
        columns = (rows.indices + 1).tolist()
        entries = [f"{j}:{x!r}" for j, x in zip(columns, numbers, strict=True)]
    ends = rows.indptr.tolist()
    return "".join(
        f"{' '.join([*map(repr, own), *entries[a:b]])} \n"
        for own, a, b in zip(weights, ends[:-1], ends[1:], strict=True)
    )


# -- reading ---------------------------------------------------------------------------


class _Head(NamedTuple):
    """What a file says before its support vectors."""

    kind: str
    kernel: Kernel
    labels: list[int]
    counts: list[int]
    total: int
    rho: list[float]


class _Vectors(NamedTuple):
    """Coefficients (r, l), and the vectors (l, n) as CSR."""

    weights: Vector
    rows: Any
    base: int  # index of the first column


def _parse_entry(word: str) -> tuple[int, float]:
    """Index and value of an entry."""
    index, colon, value = word.partition(":")
    number = int(index)
    if not colon or "_" in word or not 0 <= number < 2**31 - 1:
        raise ValueError
    return number, FINITE.parse(value)


_ENTRY = Kind(_parse_entry, '"index:value" with a finite number')
_POSITIVE = Kind(lambda word: _above_zero(FINITE.parse(word)), "a positive number")
_TYPE = choice(_TYPES, f"a type of LIBSVM ({', '.join(_TYPES)})")
_KERNEL = choice(_KERNELS, f"a kernel of LIBSVM ({', '.join(_KERNELS)})")
# Values that a header may have once each, in any order, and kinds of them; how many,
# where it is more than one, depends on the number of classes.
_FIELDS = {
    "svm_type": _TYPE,
    "kernel_type": _KERNEL,
    "degree": integer(1, MOST_DEGREE),
    "gamma": _POSITIVE,
    "coef0": FINITE,
    "nr_class": integer(2, 46_341),  # whose pairs are numbered by integers of C
    "total_sv": integer(0),
    "rho": FINITE,
    "label": integer(INT_MIN),
    "probA": FINITE,
    "probB": FINITE,
    "prob_density_marks": FINITE,
    "nr_sv": integer(0),
}
_PAIRS, _CLASSES, _MARKS = ("rho", "probA", "probB"), ("label", "nr_sv"), 10


def _above_zero(number: float) -> float:
    if number <= 0.0:
        raise ValueError
    return number


def _read_head(lines: Lines) -> _Head:
    """The lines up to the support vectors."""
    found: dict[str, list[Any]] = {}
    while lines.advance() and lines.words[:1] != ["SV"]:
        name = lines.words[0] if lines.words else ""
        if name not in _FIELDS or name in found:
            lines.refuse(f'one of {", ".join(_FIELDS)}, each once, or "SV"')
        if name in (*_PAIRS, *_CLASSES) and "nr_class" not in found:
            lines.refuse('"nr_class" before what there is of each class')
        found[name] = lines.values(_FIELDS[name], _count(name, found), start=1)
        if name == "label":
            distinct_labels(lines, found[name])
    lines.values(FINITE, 0, start=1)
    return _checked(lines, found)


def _count(name: str, found: dict[str, list[Any]]) -> int:
    """How many values a line has."""
    if name == "prob_density_marks":
        return _MARKS
    if name not in (*_PAIRS, *_CLASSES):
        return 1
    c = int(found["nr_class"][0])
    return c if name in _CLASSES else c * (c - 1) // 2


def _checked(lines: Lines, found: dict[str, list[Any]]) -> _Head:
    """The header, where it has all that its type and kernel need."""
    if "svm_type" not in found or "kernel_type" not in found:
        lines.refuse('"svm_type" and "kernel_type" before "SV"')
    (kind,), (theirs,) = found["svm_type"], found["kernel_type"]
    has_classes = _TYPES[kind][0] is None
    name = _KERNELS[theirs]
    needed = ["nr_class", "total_sv", "rho", *PARAMETERS.get(name, ())]
    needed += _CLASSES if has_classes else ()
    missing = [key for key in needed if key not in found]
    if missing:
        lines.refuse(f'"{missing[0]}" before "SV", as {kind} with {theirs} needs it')
    if not has_classes and found["nr_class"] != [2]:
        lines.refuse(f'"nr_class 2" before "SV" of {kind}')
    (total,) = found["total_sv"]
    counts = found["nr_sv"] if has_classes else [total]
    if sum(counts) != total:
        lines.refuse(f'numbers after "nr_sv" that add up to "total_sv {total}"')
    numbers = {key: found[key][0] for key in PARAMETERS.get(name, ())}
    kernel = Kernel(name, **{"gamma": 1.0} | numbers)
    labels = found["label"] if has_classes else []
    return _Head(kind, kernel, labels, counts, total, found["rho"])


def _read_vectors(lines: Lines, head: _Head, n_features: int | None) -> _Vectors:
    """The lines of the support vectors, up to the end of the file."""
    width, most = max(1, len(head.labels) - 1), n_features or _MOST_COLUMNS
    weights: list[list[float]] = []
    indices, numbers, ends = [], [], [0]
    for _ in range(head.total):
        if not lines.advance():
            lines.refuse(f"{head.total:,} support vectors")
        weights.append(lines.values(FINITE, width, more=True))
        entries = lines.values(_ENTRY, len(lines.words) - width, start=width)
        if head.kernel.is_precomputed:
            entries = [_number(lines, entries, width, n_features or _MOST_ROWS)]
        _check_indices(lines, [index for index, _ in entries], width, most)
        indices += [index for index, _ in entries]
        numbers += [number for _, number in entries]
        ends.append(len(indices))
    while lines.advance():
        lines.values(FINITE, 0)
    base = 0 if 0 in indices else 1
    columns = np.array(indices, np.int64) - base
    n = n_features or int(columns.max(initial=0)) + 1
    if n <= columns.max(initial=0):  # counted from 0
        raise ValueError(f"n_features must be at least {columns.max() + 1}. Got {n}.")
    arrays = np.array(numbers, np.float64), columns, np.array(ends)
    rows = sparse.csr_array(arrays, shape=(head.total, n))
    W = np.array(weights, np.float64).reshape(head.total, width).T
    return _Vectors(np.ascontiguousarray(W), rows, base)


def _number(
    lines: Lines, entries: list[tuple[int, float]], width: int, most: int
) -> tuple[int, float]:
    """The entry of a precomputed kernel as that of a unit vector."""
    number = entries[0][1] if [index for index, _ in entries] == [0] else math.nan
    if not (number % 1.0 == 0.0 and 1 <= number <= most):
        lines.refuse(f'one "0:number" of a row, from 1 to {most}', width)
    return int(number), 1.0


def _check_indices(lines: Lines, own: list[int], width: int, most: int) -> None:
    """Refuse indices of a vector that do not rise, or are too large."""
    for place, (before, index) in enumerate(itertools.pairwise([-1, *own])):
        if index <= before:
            lines.refuse("an index larger than the one before it", width + place)
        if index > most:
            lines.refuse(f"an index of at most {most}", width + place)


def _model(head: _Head, found: _Vectors) -> Model:
    """The model of a file."""
    scheme, loss = _TYPES[head.kind]
    meta = {"loss": loss, "svm_type": head.kind, "index_base": found.base}
    b, counts, classes = -np.array(head.rho), np.array(head.counts), np.empty(0)
    if scheme == ONE_CLASS:
        classes = np.array([-1, 1])
    if scheme is None:
        classes = np.sort(np.array(head.labels))
        scheme = "ovo" if len(classes) > 2 else "binary"
        found, b = _in_order(head, found, b)
        counts = counts[np.argsort(head.labels)]
    name, n = head.kernel.name, found.rows.shape[1]
    weights = found.weights
    if name == "precomputed" or (name == "linear" and len(b) * n <= _MOST_WEIGHTS):
        if scheme == "ovo":
            weights = pair_weights(weights, counts)
        W = np.ascontiguousarray((found.rows.T @ weights.T).T)
        decisions = tuple(map(Decision, W, b.tolist()))
        return Model(classes, scheme, decisions, meta | {"kernel": name})
    rows = found.rows
    if rows.shape[0] and linalg.density(rows) >= _DENSE_FROM:
        rows = rows.toarray()
    kernels = Expansion(head.kernel, rows, weights, b, counts)
    return Model(classes, scheme, meta=meta, kernels=kernels)


def _in_order(head: _Head, found: _Vectors, b: Vector) -> tuple[_Vectors, Vector]:
    """The vectors by class in the order of the labels, and coefficients to match."""
    order = np.argsort(head.labels)
    starts = np.cumsum([0, *head.counts])
    places = [np.arange(starts[i], starts[i + 1]) for i in order]
    chosen = np.concatenate(places)
    rows, weights = found.rows[chosen], found.weights[:, chosen]
    if len(order) == 2:
        # Its first label is positive there, the larger one here.
        sign = 1.0 if order[0] == 1 else -1.0
        return found._replace(weights=sign * weights, rows=rows), sign * b
    ends = np.cumsum([len(some) for some in places])
    old, b_old = weights.copy(), b.copy()
    pair = np.zeros((len(order), len(order)), np.intp)
    pair[np.triu_indices(len(order), 1)] = np.arange(len(b))
    for i, j in itertools.permutations(range(len(order)), 2):
        own = slice(ends[i] - len(places[i]), ends[i])
        was_i, was_j = order[i], order[j]
        sign = 1.0 if (was_i < was_j) == (i < j) else -1.0
        weights[j - (j > i), own] = sign * old[was_j - (was_j > was_i), own]
        if i < j:
            b[pair[i, j]] = sign * b_old[pair[min(was_i, was_j), max(was_i, was_j)]]
    return found._replace(weights=weights, rows=rows), b
