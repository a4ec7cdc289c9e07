"""Vectors of length m that stay beside their rows, and what they are checked for."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index, Index64, Mask, Vector
from widemargin.data.blocks import Blocks, Least

# `RowState.threshold` counts keys in THRESHOLD_BINS bins a sweep (a power of two), and
# sorts the keys where at most SORTED_KEYS are left. A sweep takes 12 of the 64 bits of
# a key, and its counts fit in a cache; so many keys are sorted in 0.2 ms.
THRESHOLD_BINS = 4096
SORTED_KEYS = 4096
# The same where keys and counts are sent, from lanes to lanes: keys, and bins.
FEW_SENT = 128, 128
# How far from where it may be a threshold is looked for at first.
WINDOW = 0.01


class RowState:
    """Named vectors of length m that live beside the rows.

    Made by `Rows.state`; a sweep hands each block its own slices, which it may update
    in place. ``state.alpha`` reads a whole vector: the vector itself where it lies in
    memory as it is, else a copy, which cannot be written to. Assigning to
    ``state.alpha`` writes into the vector. A storage with vectors elsewhere overrides
    reading, assigning, `join`, `prefixed` and `sweep`.
    """

    __slots__ = ("_vectors", "_blocks")  # in the order of __init__
    _vectors: dict[str, NDArray[Any]]
    _blocks: Blocks
    _is_near = True  # whether what a sweep returns costs nothing to send

    def __init__(self, vectors: dict[str, NDArray[Any]], blocks: Blocks) -> None:
        object.__setattr__(self, "_vectors", vectors)
        object.__setattr__(self, "_blocks", blocks)

    def __getattr__(self, name: str) -> NDArray[Any]:
        vectors = self._vectors if name not in self.__slots__ else {}
        try:
            return vectors[name]
        except KeyError:
            raise AttributeError(f"no row vector named {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        vector = getattr(self, name)
        if value is not vector:  # state.alpha += step has written already
            vector[...] = value

    def __reduce__(self) -> Any:  # copy and pickle would assign to the slots
        return type(self), tuple(getattr(self, name) for name in self.__slots__)

    def join(self, other: "RowState") -> "RowState":
        """The vectors of both, by reference; for a name in both ``other``'s."""
        return RowState({**self._vectors, **other._vectors}, self._blocks)

    def prefixed(self, prefix: str) -> "RowState":
        """The same vectors, by reference, with ``prefix`` before their names."""
        vectors = {prefix + name: vector for name, vector in self._vectors.items()}
        return RowState(vectors, self._blocks)

    def unprefixed(self, prefix: str) -> "RowState":
        """The vectors whose names begin with ``prefix``, by reference, without it."""
        size, found = len(prefix), self._vectors.items()
        vectors = {k[size:]: vector for k, vector in found if k.startswith(prefix)}
        return RowState(vectors, self._blocks)

    def by_prefix(self) -> dict[str, "RowState"]:
        """The vectors, by reference, by what their names have before the first dot."""
        found: dict[str, dict[str, NDArray[Any]]] = {}
        for name, vector in self._vectors.items():
            prefix, _, rest = name.partition(".")
            found.setdefault(prefix, {})[rest] = vector
        return {k: RowState(vectors, self._blocks) for k, vectors in found.items()}

    def part(self, index: slice | Index) -> "RowState":
        """The rows ``index`` of every vector: views for a slice, else copies."""
        parts = {name: vector[index] for name, vector in self._vectors.items()}
        return RowState(parts, self._blocks)

    def store(self, index: Index, part: "RowState") -> None:
        """Write the vectors of ``part`` back to the rows ``index``."""
        for name, vector in part._vectors.items():
            self._vectors[name][index] = vector

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        """Run f(slices, ...) on every block and add the values up.

        Like `Rows.sweep` without the data: nothing of X is read.
        """
        return self._blocks(lambda rows: f(self.part(rows), *broadcast))

    def update(self, f: Callable[..., None], *broadcast: Any) -> None:
        """Run f(slices, ...) on every block for what it writes.

        Like `sweep`, at the latest before the vectors are read.
        """
        self.sweep(f, *broadcast)

    def threshold(
        self,
        f: Callable[..., Any],
        target: float,
        *broadcast: Any,
        near: float = np.nan,
    ) -> float:
        """Smallest key t such that the rows with key <= t weigh at least ``target``.

        Parameters
        ----------
        f : callable
            f(slices, ...) returns the keys (k,) of its rows, floats in any order
            of magnitude and infinities too, and their weights >= 0, (k,) or a number.
        target : float
        *broadcast
            What f needs.
        near : float
            Where it may be, within `WINDOW`: then one sweep is enough, of a state here.

        Returns
        -------
        float, one of the keys: the smallest where ``target`` <= 0, the largest where
        all rows together weigh less.

        Raises
        ------
        FloatingPointError if a key or a weight is NaN.

        Notes
        -----
        Exact, but for the rounding of sums of weights. Keys are cut by their bits, in
        which all floats are as dense: at most six sweeps of the state narrow any keys
        down to few, which are sorted.
        """
        return self.thresholds(f, (target,), *broadcast, near=near)[0]

    def thresholds(
        self,
        f: Callable[..., Any],
        targets: Sequence[float],
        *broadcast: Any,
        near: float = np.nan,
    ) -> list[float]:
        """The `threshold` of each target: one sweep is enough where all are ``near``.

        Where they are not, each is looked for near the one before.
        """
        found: list[float] = []
        window = self._near(f, near, *broadcast)
        for target in targets:
            key = window(target)
            if key is None and found:
                window = self._near(f, found[-1], *broadcast)
                key = window(target)
            found.append(self._anywhere(f, target, *broadcast) if key is None else key)
        return found

    def _near(
        self, f: Callable[..., Any], near: float, *broadcast: Any
    ) -> Callable[[float], float | None]:
        """What gives the threshold of a target if it is near a key, else None."""
        if not (self._is_near and abs(near) < np.inf):
            return lambda _: None
        window = near - WINDOW, near + WINDOW
        below, *parts = self.sweep(_keys_within, *window, f, *broadcast)
        keys, weights = (np.concatenate(some) for some in parts)
        order = np.argsort(keys, kind="stable")
        keys, sums = keys[order], below + np.cumsum(weights[order])
        most = sums.max(initial=below)

        def key(target: float) -> float | None:
            there = below < target <= most
            return float(keys[np.argmax(sums >= target)]) if there else None

        return key

    def _anywhere(self, f: Callable[..., Any], target: float, *broadcast: Any) -> float:
        """The threshold of a target, wherever it is."""
        most, bins = (SORTED_KEYS, THRESHOLD_BINS) if self._is_near else FEW_SENT
        at_once = most if self._is_near else 0
        low, high, count, weight, found = self.sweep(_key_range, at_once, f, *broadcast)
        low, high = low.key, -high.key
        if high > _order(np.inf) or low < _order(-np.inf) or np.isnan(weight):
            raise FloatingPointError("a key or a weight is NaN")
        if weight < target:
            return _key_at(high)
        narrowed = count > at_once
        while low < high and count > most:
            shift = max(0, (high - low).bit_length() - bins.bit_length() + 1)
            counts, weights = self.sweep(_histogram, low, shift, bins, f, *broadcast)
            bin, target = _reach(weights, target)
            low, count = low + (bin << shift), counts[bin]
            high = min(high, low + (1 << shift) - 1)
        if low < high:
            if narrowed:
                found = self.sweep(_keys_between, low, high, f, *broadcast)
            orders, weights = (
                np.concatenate(parts) for parts in zip(*found, strict=True)
            )
            sort = np.argsort(orders, kind="stable")
            low = orders[sort][_reach(weights[sort], target)[0]]
        return _key_at(low)


def _order(keys: Any) -> Any:
    """Integers in the order of float64 keys, and as dense; NaN is at the ends."""
    keys = np.asarray(keys, dtype=np.float64) + 0.0  # -0.0 + 0.0 = 0.0
    return _mirror(keys.view(np.int64))


def _key_at(order: int) -> float:
    """The key with this order."""
    return float(_mirror(np.array(order, dtype=np.int64)).view(np.float64))


def _mirror(bits: Index64) -> Index64:
    """Bits of floats to integers in their order, or back: negatives run backwards."""
    return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)


def _orders(f: Callable[..., Any], part: RowState, *broadcast: Any) -> tuple[Any, Any]:
    """Orders of the keys, and weights, (k,) each."""
    keys, weights = f(part, *broadcast)
    orders = _order(keys)
    return orders, np.broadcast_to(np.asarray(weights, dtype=np.float64), orders.shape)


def _key_range(
    part: RowState, most: int, f: Callable[..., Any], *broadcast: Any
) -> Any:
    orders, weights = _orders(f, part, *broadcast)
    ends = Least(int(orders.min())), Least(-int(orders.max()))
    few = [(orders, weights)] if len(orders) <= most else []
    return *ends, len(orders), float(weights.sum()), few


def _histogram(
    part: RowState,
    low: int,
    shift: int,
    n_bins: int,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    """Count and weight of the orders in each low + [j, j + 1) 2^shift."""
    orders, weights = _orders(f, part, *broadcast)
    # Modulo 2^64: orders below ``low`` become large.
    bins = (orders - np.int64(low)).view(np.uint64) >> np.uint64(shift)
    inside = bins < n_bins
    bins = bins[inside].astype(np.intp)
    counts = np.bincount(bins, minlength=n_bins)
    return counts, np.bincount(bins, weights[inside], n_bins)


def _keys_between(
    part: RowState, low: int, high: int, f: Callable[..., Any], *broadcast: Any
) -> list[Any]:
    orders, weights = _orders(f, part, *broadcast)
    inside = (orders >= low) & (orders <= high)
    return [(orders[inside], weights[inside])]


def _keys_within(
    part: RowState, low: float, high: float, f: Callable[..., Any], *broadcast: Any
) -> tuple[float, list[Vector], list[Vector]]:
    """Weight of the keys below a window, NaN where one is; keys in it, weights."""
    keys, weights = f(part, *broadcast)
    keys = np.asarray(keys, dtype=np.float64)
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), keys.shape)
    inside = (keys >= low) & (keys <= high)
    below = float(weights[keys < low].sum())
    if np.isnan(keys).any() or np.isnan(weights).any():
        below = np.nan
    return below, [keys[inside]], [weights[inside]]


def _reach(weights: Vector, target: float) -> tuple[int, float]:
    """Where the sum of weights reaches the target, and what is missing before there."""
    sums = np.cumsum(weights)
    # What was enough when all weights were summed up may miss by rounding.
    first = int(np.argmax(sums >= min(target, sums[-1])))
    return first, target - (sums[first - 1] if first else 0.0)


def reals(name: str, value: ArrayLike, length: int, most_ndim: int = 1) -> Vector:
    """An argument as float64 vectors of this length, copied only when it must be."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers. Got dtype {array.dtype} instead."
        )
    check_length(name, array, length, most_ndim)
    return array.astype(np.float64, copy=False)


def finite(name: str, value: ArrayLike, length: int) -> Vector:
    """An argument as a float64 vector of this length, without NaN and infinities."""
    vector = reals(name, value, length)
    good = np.isfinite(vector if vector.strides != (0,) else vector[:1])
    if not good.all():
        bad = int(np.argmin(good))
        raise ValueError(
            f"{name} must hold finite numbers only (no NaN, no inf). "
            f"Got {vector[bad]} at position {bad} instead."
        )
    return vector


def read_only(vector: NDArray[Any]) -> NDArray[Any]:
    """A view of a vector that cannot be written to."""
    view = vector.view()
    view.flags.writeable = False
    return view


def bools(name: str, value: ArrayLike, length: int) -> Mask:
    """An argument as bool vector of this length."""
    array = np.asarray(value)
    if array.dtype != np.bool_:
        raise ValueError(f"{name} must hold bools. Got dtype {array.dtype} instead.")
    check_length(name, array, length, 1)
    return array


def check_length(
    name: str, array: NDArray[Any], length: int, most_ndim: int | None = None
) -> None:
    """Raise ValueError unless the array has this length, and no more dimensions."""
    if array.ndim == 0 or array.shape[0] != length or array.ndim > (most_ndim or 32):
        raise ValueError(
            f"{name} must have length {length}. Got shape {array.shape} instead."
        )


def row_index(index: ArrayLike, m: int) -> Index:
    """The argument of `Rows.take`: integers in [0, m), (k,)."""
    array = np.asarray(index)
    array = array.astype(np.intp) if array.size == 0 else array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        mask = " Of a mask give numpy.flatnonzero(mask)." * (array.dtype.kind == "b")
        raise ValueError(
            "index must be a vector of integers. "
            f"Got dtype {array.dtype} in {array.ndim} dimension(s) instead.{mask}"
        )
    outside = array[(array < 0) | (array >= m)]
    if outside.size:
        first = " Rows are not counted from the end." * bool(outside[0] < 0)
        raise ValueError(
            f"index must be in the range [0, {m}). Got {outside[0]} instead.{first}"
        )
    return array.astype(np.intp, copy=False)


def row_vector(name: str, value: Any, m: int, copy: bool = True) -> NDArray[Any]:
    """A copy of an array, or a vector of a number; else what can be copied to one."""
    if name.startswith("_") or hasattr(RowState, name):
        raise ValueError(f"A row vector must have another name than {name!r}.")
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers. Got dtype {array.dtype} instead."
        )
    if array.ndim == 0:
        array = np.broadcast_to(np.float64(array), m)
    check_length(name, array, m)
    return copied(array) if copy else array


def copied(vector: NDArray[Any]) -> NDArray[Any]:
    """A copy; zeros are left to the system, which makes pages when they are touched."""
    if vector.strides == (0,) and vector.size and vector[0] == 0:
        return np.zeros(vector.shape, vector.dtype)
    return np.array(vector)
