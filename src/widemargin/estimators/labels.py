"""What a user's labels and weights mean: classes, and a factor of C for each row."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from widemargin.arrays import Mask, Vector
from widemargin.data.distributed import is_collection
from widemargin.estimators.checks import users_level
from widemargin.parameters import Checker, spelled

Labels = NDArray[Any]
Index = NDArray[np.integer[Any]]

# Rows that are looked at together: temporary copies of these stay in the cache (a
# million labels: 3.3 ms, all at once 5.4; fewer rows 3.1 to 3.8).
_CHUNK = 1 << 16

# What weights are that are not given: one number for all rows.
_ONE = np.ones(1)
_ONE.flags.writeable = False

# Whether classes without rows of positive weight were named already, by a search.
_ARE_NAMED: ContextVar[bool] = ContextVar("_ARE_NAMED", default=False)

# Rows above which scikit-learn warns of as many classes as half of them.
FEW_ROWS = 20

# Labels of one kind can be sorted, and two that look the same are the same.
_KINDS: dict[str, tuple[type, ...]] = {
    "booleans": (bool, np.bool_),
    "numbers": (int, float, np.integer, np.floating),
    "strings": (str,),
}
_OF_NUMBERS = ({"booleans"}, {"numbers"})


# -- labels ----------------------------------------------------------------------------


def as_labels(check: Checker, y: Any, m: int) -> Labels:
    """Labels that can be sorted: (m,), booleans, numbers, dates or strings.

    Objects become booleans or numbers if all are; an array of objects that are strings
    stays as it is, and a list of them or an array of StringDType becomes plain strings.

    Raises
    ------
    ValueError for None, NaN and the like, named by row; labels of several kinds; real
    numbers, as of a regression; another length or shape.
    """
    # Lists and StringDType as objects first: there None and NaN are not yet strings.
    listed = not hasattr(y, "dtype")
    y = np.asarray(y, dtype=object if listed else None)
    plain = listed or y.dtype.kind == "T"  # what strings become
    y = y.astype(object) if plain else y
    if y.dtype.kind not in "biufUMmO":
        found = f"an array of dtype {y.dtype}"
        check.refuse_part("y", "hold numbers, booleans or strings", found)
    if y.ndim != 1:
        y = np.asarray(column_or_1d(y, warn=True))
    if len(y) != m:
        check.refuse_part("y", f"have length {m}", f"length {len(y)}")
    if y.dtype.kind == "O":
        y = _of_one_kind(check, y)
    elif y.dtype.kind in "fMm":
        _refuse_missing(check, y, ~np.isfinite(y))
    # Part by part, rows without a label are found as well as in all rows at once.
    for rows in _chunks(len(y)) if y.dtype.kind == "f" else ():
        if (np.rint(y[rows]) != y[rows]).any():
            check_classification_targets(y[rows])
    return np.asarray(y, dtype=str) if plain and y.dtype.kind == "O" else y


def _of_one_kind(check: Checker, y: Labels) -> Labels:
    """An array of objects as one of booleans or numbers, or with strings only."""
    kinds = {t: _kind(t) for t in set(map(type, y))}
    if set(kinds.values()) != {"strings"}:
        missing = np.fromiter(map(_is_missing, y), dtype=bool, count=len(y))
        _refuse_missing(check, y, missing)
    if None in kinds.values() or len(set(kinds.values())) > 1:
        _refuse_mixture(check, y, kinds)
    return y if kinds[type(y[0])] == "strings" else _of_numbers(check, y)


def of_objects(y: Any) -> Any:
    """Objects that are all booleans or all numbers as an array of these; others as y.

    So labels can be told from others in `score` as in fits: scikit-learn refuses them.
    """
    dtype = getattr(y, "dtype", None)
    if not (isinstance(dtype, np.dtype) and dtype.kind == "O") or is_collection(y):
        return y
    found = np.asarray(y)
    kinds = {_kind(t) for t in set(map(type, found.ravel()))}
    return np.array(found.tolist()) if kinds in _OF_NUMBERS else y


def _refuse_mixture(check: Checker, y: Labels, kinds: dict[type, str | None]) -> None:
    """Name the first label of no kind, or of another kind than the first one."""
    first = kinds[type(y[0])]
    row = next(i for i, v in enumerate(y) if kinds[type(v)] not in {first} - {None})
    if kinds[type(y[row])] is None:
        found = f"{y[row]!r} at row {row}"
        check.refuse_part("y", "hold numbers, booleans or strings", found)
    found = f"{y[row]!r} at row {row}, after {first},"
    check.refuse_part("y", "hold labels of one kind", found)


def _of_numbers(check: Checker, y: Labels) -> Labels:
    """An array of objects, all booleans or all numbers, as an array of these."""
    numbers = np.array(y.tolist())
    if numbers.dtype.kind == "O":
        check.refuse_part("y", "hold numbers of at most 64 bits", "larger ones")
    if numbers.dtype.kind == "f":
        _refuse_missing(check, y, ~np.isfinite(numbers))
    return numbers


def _kind(label_type: type) -> str | None:
    return next(
        (k for k, types in _KINDS.items() if issubclass(label_type, types)), None
    )


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, NaT or pandas.NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA does not say whether it differs from itself
        return True
    except ValueError:  # an array
        return False


def _refuse_missing(check: Checker, y: Labels, missing: Mask) -> None:
    if missing.any():
        row = int(np.argmax(missing))
        expected = "hold a label in each row (no None, NaN or infinity)"
        check.refuse_part("y", expected, f"{spelled(y[row])} at row {row}")


def distinct(y: Labels, weights: Vector | None = None) -> Labels:
    """The labels that occur, with a positive weight if weights are given: sorted."""
    found = [
        _unique(y[rows] if weights is None else y[rows][weights[rows] > 0])
        for rows in _chunks(len(y))
    ]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def _unique(y: Labels) -> Labels:
    """What `numpy.unique` finds, sooner where numbers are few or near each other."""
    if y.dtype.kind in "biuf" and len(y):
        ends = np.array([y.min(), y.max()])
        # A third number is among the first, if there are some.
        if all(((one == ends[0]) | (one == ends[1])).all() for one in (y[:64], y)):
            return ends if ends[0] < ends[1] else ends[:1]
        if y.dtype.kind != "f" and int(ends[1]) - int(ends[0]) < len(y):
            counts = np.bincount(np.subtract(y, ends[0], dtype=np.int64))
            return np.asarray(counts.nonzero()[0].astype(y.dtype) + ends[0])
    return np.unique(y)


def find_classes(
    check: Checker, y: Labels, weights: Vector | None, also: str = ""
) -> tuple[Labels, Index]:
    """Classes with a positive weight, and the index of each row's class (else 0).

    Warns of classes without, but inside `named`. ``also`` is what is said, too, where
    only one is left.
    """
    classes = distinct(y, weights)
    has_zeros = weights is not None and not (weights > 0).all()
    if len(classes) < 2:
        expected = "hold at least two classes"
        if has_zeros:  # in scikit-learn's words
            expected += (
                " (Invalid input - all samples with positive weights belong to the "
                f"same class{also})"
            )
        check.refuse_part("y", expected, f"one class ({classes[0]})")
    if len(y) > FEW_ROWS and 2 * len(classes) > len(y):
        check_classification_targets(y)  # warns
    tells = has_zeros and not _ARE_NAMED.get()
    if tells and len(lost := np.setdiff1d(distinct(y), classes)):
        said = (
            "Rows of weight 0 count as removed, and there are no others of the "
            f"class(es) {', '.join(map(str, lost))}: the model does not know them."
        )
        warnings.warn(said, UserWarning, stacklevel=users_level())
    place = np.empty(len(y), np.min_scalar_type(len(classes)))  # mostly a byte
    for rows in _chunks(len(y)):
        place[rows] = _place(classes, y[rows])
    return classes, place


@contextmanager
def named() -> Iterator[None]:
    """Fits of a search, which has warned of classes without a positive weight."""
    before = _ARE_NAMED.set(True)
    try:
        yield
    finally:
        _ARE_NAMED.reset(before)


def _place(classes: Labels, y: Labels) -> Any:
    """The index of the class of each label; any for a label of none."""
    if len(classes) == 2:  # a comparison instead of a search: half of the time
        return y > classes[0]
    first, last = classes[0], classes[-1]
    if y.dtype.kind in "iu" and int(last) - int(first) == len(classes) - 1:  # no gap
        inside = np.minimum(np.maximum(y, first), last)
        return np.subtract(inside, first, dtype=np.int64)
    return np.minimum(np.searchsorted(classes, y), len(classes) - 1)


def _chunks(m: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, max(m, 1), _CHUNK)]


# -- weights ---------------------------------------------------------------------------


def as_weights(
    check: Checker, sample_weight: Any, m: int, leaves_out: bool = False
) -> Vector:
    """Weights of the rows: float64 (m,), nonnegative and finite, not all zero.

    None is a weight of 1, a number the weight of every row. Negative ones are refused,
    or with ``leaves_out`` become 0 with a warning, as LIBSVM leaves such rows out.
    """
    name = "sample_weight"
    if sample_weight is None:
        return np.ndarray(m, np.float64, _ONE, strides=(0,))  # a fifth of broadcasting
    try:
        given = np.asarray(sample_weight)
    except ValueError:  # lists of several lengths
        check.refuse_part(name, "be one-dimensional", "lists of several lengths")
    if given.ndim > 1:
        check.refuse_part(name, "be one-dimensional", f"shape {given.shape}")
    if given.ndim == 1 and len(given) != m:
        check.refuse_part(name, f"have length {m}", f"length {len(given)}")
    weights = np.broadcast_to(_reals(check, name, given), (m,))  # a copy already
    if (weights <= 0).all():  # in scikit-learn's words
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    negative, finite = weights < 0.0, np.isfinite(weights)
    if leaves_out and finite.all() and negative.any():
        count = int(np.count_nonzero(negative))
        said = f"{count} row(s) of negative sample_weight count as removed."
        warnings.warn(said, UserWarning, stacklevel=users_level())
        return np.where(negative, 0.0, weights)
    good = finite if leaves_out else finite & ~negative
    if not good.all():
        row = int(np.argmin(good))
        expected = "be finite" if leaves_out else "be finite and nonnegative"
        check.refuse_part(name, expected, f"{spelled(weights[row])} at row {row}")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            check.refuse_part(name, "have a finite sum", f"up to {weights.max():g}")
    return weights


def _reals(check: Checker, name: str, given: NDArray[Any]) -> Vector:
    """Numbers as float64; what only looks like numbers is refused."""
    if given.dtype.kind not in "biuf":
        for row, value in enumerate(np.ravel(given).tolist()):
            if not isinstance(value, Real):
                found = f"{value!r} at row {row}"
                check.refuse_part(name, "hold real numbers", found)
    return given.astype(np.float64)


def class_factors(
    check: Checker,
    class_weight: Any,
    classes: Labels,
    labels: Index,
    weights: Vector,
) -> Vector:
    """Factor of C for each class: (classes,)."""
    name = "class_weight"
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.zeros(len(classes))
        for rows in _chunks(len(labels)):  # bincount copies what it is given
            mass += np.bincount(labels[rows], weights[rows], len(classes))
        return np.asarray(mass.sum() / (len(classes) * mass))
    if not isinstance(class_weight, Mapping):
        check.refuse(name, "a dict, 'balanced' or None", class_weight)
    for key, factor in class_weight.items():
        if not (isinstance(factor, Real) and 0 < float(factor) < np.inf):
            found = f"{factor!r} for class {key!r}"
            check.refuse_part(name, "hold positive numbers", found)
    named = [label for label in classes if label in class_weight]
    # In a fold of the data classes may be missing, but then all others are named.
    if len(named) < min(len(classes), len(class_weight)):
        others = [key for key in class_weight if key not in classes]
        expected = "name classes of y"
        if not (weights > 0.0).all():
            expected += " that have rows of positive weight"
        check.refuse_part(name, expected, ", ".join(map(repr, others)))
    return np.array([float(class_weight.get(label, 1.0)) for label in classes])
