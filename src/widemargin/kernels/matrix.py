"""Columns of a kernel matrix, made when they are asked for and kept under a limit."""

import contextlib
import math
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin import _core
from widemargin.arrays import Index, Mask, Vector
from widemargin.data.rows import Rows
from widemargin.data.state import row_index
from widemargin.kernels.engines import Engine, engine
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.packed import COPIED, STRIP, Parts, aligned, padded
from widemargin.numerics.rounding import ValueBounds
from widemargin.system.memory import free_bytes

# A row is stored once it was used more than (72 / (features + 6))^2 times: at first use
# from 67 features on, at the 14th for 14 entries a row. Storing touches new memory, and
# rows that are moved once are mostly moved often. Beside 280 / (features + 6), which is
# what memory costs where pages come at 0.4 GB/s, fits of 11,000 to 16,000 rows took
# 1.0 of the time with 32 features, 0.8 with 48 and 68, 0.75 with 200, and as long with
# 14; with 70 / (features + 6) those with 14 took 1.5 times as long. Not at all where it
# is not likely to be asked for again: working sets on 11,000 rows of 68 features keep
# 3,800 rows, not 6,800, and make 9 % more, as rows of variables at bounds move seldom.
STORED = 72.0
# From so many multiplications on a value of a kept row is taken for a block, not made
# again. (68 features: 1.05 of the time of a fit; 784: 0.88.)
TAKEN = 128.0
# Rows of the least block that there must be room for.
LEAST_BLOCK = 64
# Share of the rows up to which sums are made for some of them only; and where rows of K
# are kept, which are given up then: with 0.6 and 0.7 mnist with little memory took a
# fifth longer.
FOCUS_SHARE, FOCUS_OF_KEPT = 0.75, 0.4
# Of rows that are kept rounded; and what their values are off by at most: half a step,
# and what float32 rounds on the way to steps and in a weight.
ROUNDED_DTYPE = np.dtype(np.uint16)
ROUNDED_ERROR = 0.52 / _core.KERNEL_STEPS
# Of blocks that are rounded, with their sign for pair steps.
BLOCK_DTYPE = np.dtype(np.int16)
# In focus while that changes.
_NOWHERE = np.empty(0, np.intp)


class NoRoomError(ValueError):
    """A memory limit without room for the packed samples and a block of values."""


class Columns:
    """The kernel matrix K of some rows, by blocks.

    Parameters
    ----------
    rows : Rows, in memory
    kernel : Kernel; gamma is found from the rows where it is a word
    memory_limit : int or None, in bytes
        For kept rows of K and the packed samples; None: half of the free memory.
    n_jobs : int or None, threads

    Attributes
    ----------
    shape : tuple (m, m)
    kernel : Kernel, with gamma as a number
    evaluations : int, entries of K computed so far
    hits : int, entries of K that were kept and used again
    dtype : float32; float64 after `refine`, or where float32 is too rough
    stored : dtype of the rows that `add` keeps; uint16 after `keep_rounded`
    block_dtype : dtype of blocks that are rounded where they may be; else ``dtype``
    width : int, length of the sums that `add` takes: m, or rows in focus, rounded up
    block_rows : int, the most rows of a square block, and of another one beside it
    limit : int, in bytes, of the packed samples and of values that are kept
    twins : int or None, where samples occur twice, rows from one to the other

    Raises
    ------
    ValueError
        Rows that are not in memory; a precomputed kernel that is not square; a limit
        that has no room for the packed samples and a block.

    Notes
    -----
    Entries are computed in float32, 2e9 to 3e9 a second for a dozen entries a row
    (2 cores, AVX-512; benchmarks/core/kernel_rows.py), and added up in float64.
    """

    twins: int | None = None
    dtype: Any
    stored: Any
    block_dtype: Any
    block_rows: int
    _X: Any
    _source: Engine
    _room: NDArray[Any]
    _rows_bytes: int
    _focus_bytes: int
    _focus_share: float
    _focused: Index | None
    _mirrored: Parts

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        X = rows.in_memory()
        if X is None:
            raise ValueError(
                "A kernel needs the rows in memory, as a dense or CSR matrix. Got rows "
                "that are not."
            )
        if kernel.is_precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                "A precomputed kernel must be a square matrix (m, m) of the values of "
                f"all pairs of rows. Got shape {X.shape} instead."
            )
        self.rows, self.kernel = rows, kernel.resolved(rows)
        self.shape = (X.shape[0], X.shape[0])
        self.evaluations = self.hits = 0
        self._n_jobs = n_jobs
        self.limit = free_bytes() if memory_limit is None else memory_limit
        self._use(X, np.float32)
        if self._source.is_rough:
            self._use(X, np.float64)

    def select(self, mask: Mask) -> "Columns":
        """The columns, and rows, where a mask (m,) is true."""
        rows = self._source.selected(self.rows, mask)
        return Columns(rows, self.kernel, self.limit, self._n_jobs)

    def _use(self, X: Any, dtype: Any) -> None:
        """Begin to compute in a dtype."""
        source = engine(X, self.kernel, dtype, self._n_jobs)
        size, width = np.dtype(dtype).itemsize, padded(self.shape[0])
        room = self.limit - source.n_bytes
        # A block and the one before it take a quarter at most.
        needed = 8 * size * min(LEAST_BLOCK, width) ** 2
        if room < needed:
            raise NoRoomError(
                "The 'memory_limit' parameter must be at least "
                f"{source.n_bytes + needed:,} bytes for {self.shape[0]:,} rows with a "
                "kernel: the packed samples and a block of kernel values. "
                f"Got {self.limit:,} instead. A low rank (rank=300) takes less."
            )
        block_rows = math.isqrt(room // (8 * size))
        source.blocks_bytes = room // 4
        room -= source.blocks_bytes
        # The samples of rows in focus are packed again.
        share = FOCUS_OF_KEPT if _worth_of(source) < 1 else FOCUS_SHARE
        focus = source.n_bytes * padded(int(share * self.shape[0])) // width
        focus = focus if focus <= room else 0
        # All at once: an interrupt comes before or after.
        vars(self).update(
            dtype=np.dtype(dtype),
            stored=np.dtype(dtype),
            block_dtype=np.dtype(dtype),
            block_rows=block_rows,
            _X=X,
            _source=source,
            _room=self._room_for_rows(room - focus, dtype),
            _rows_bytes=room - focus,
            _focus_bytes=focus,
            _focus_share=share,
            _focused=_NOWHERE,
            _mirrored=Parts(0),
        )
        self.focus(None)

    def _room_for_rows(self, n_bytes: int, dtype: Any) -> NDArray[Any]:
        """Room for rows of K; memory is touched when it is used."""
        m, width = self.shape[0], padded(self.shape[0])
        places = min(m, n_bytes // (width * np.dtype(dtype).itemsize))
        return aligned((places * width,), dtype)

    def keep_rounded(self) -> None:
        """Keep rows for `add` in 16 bits, where values are float32 from 0 to 1.

        Half of the memory is touched and read; values of rows that were kept are off by
        `kept_error` then. Nothing is done where they are others.
        """
        named = self.kernel.named
        if named is None or named.value != "decay" or self.dtype != np.float32:
            return
        self.block_dtype = BLOCK_DTYPE
        if self._source.reads_kept:
            self._keep_in(ROUNDED_DTYPE)

    def keep_exact(self) -> None:
        """Keep rows as they are made, and blocks too."""
        self.block_dtype = self.dtype
        self._keep_in(self.dtype)

    def _keep_in(self, dtype: Any) -> None:
        """Keep rows in a dtype; those that are kept in another one are given up."""
        if self.stored == dtype:
            return
        room = self._room_for_rows(self._rows_bytes, dtype)
        vars(self).update(stored=dtype, _room=room, _focused=_NOWHERE)
        self.focus(None)

    @property
    def is_rounded(self) -> bool:
        """Whether rows are kept in 16 bits, or blocks may have them."""
        return bool(self.stored == ROUNDED_DTYPE or self.block_dtype == BLOCK_DTYPE)

    @property
    def kept_error(self) -> float:
        """What `add` may take a value for that is kept, less what it is: at most."""
        return ROUNDED_ERROR if self.stored == ROUNDED_DTYPE else 0.0

    @property
    def n_bytes(self) -> int:
        """What the packed samples take."""
        return self._source.n_bytes

    @property
    def cost(self) -> float:
        """Multiplications of a kernel value, about; infinite for a callable."""
        return self._source.cost

    @property
    def _worth(self) -> float:
        """Uses of a row after which it is worth being kept."""
        return _worth_of(self._source)

    @property
    def keeps_rows(self) -> bool:
        """Whether `add` keeps rows when they are first used."""
        return self._worth < 1

    def can_focus(self, rows: Index) -> bool:
        """Whether `focus` on these rows is worth it, and has room.

        Not where all rows of K that were used are kept: these would be given up.
        """
        few = len(rows) <= self._focus_share * self.shape[0]
        loses = self._kept.is_full or not self.keeps_rows
        return few and loses and self._source.bytes_of(rows) <= self._focus_bytes

    def focus(self, rows: Index | None) -> None:
        """Let `add` and `columns` make values for these rows of X only; None: for all.

        Kept rows are given up: they had another length. Nothing is done if these rows,
        as an object, are in focus already.
        """
        if rows is self._focused:
            return
        self._focused = _NOWHERE  # where this is interrupted, the next one begins anew
        self._source.focus(rows)
        self.length = self.shape[0] if rows is None else len(rows)
        self.width = padded(self.length)
        self._kept = _KeptRows(self.shape[0], self.width, self._room)
        self._uses = np.zeros(self.shape[0], np.int64)
        self._focused = rows

    def refine(self) -> None:
        """Go on in float64: where rounding of the values stops all progress."""
        if self.dtype != np.float64:
            self._use(self._X, np.float64)

    # -- blocks ------------------------------------------------------------------------

    def block(
        self,
        I: ArrayLike,  # noqa: E741
        J: ArrayLike,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Kernel values of rows I with rows J: (len(I), len(J)), of the dtype.

        In ``out``, if given: an `aligned` array (len(I), padded len(J)), of the dtype
        or of `block_dtype`. What rows I have that are kept is taken from there.
        """
        I, J = self._index(I), self._index(J)  # noqa: E741
        if out is None:
            out = aligned((len(I), padded(len(J))), self.dtype)
        place = np.full(len(I), -1)
        if self._focused is None and self._source.cost > TAKEN:
            place = self._kept.find(I)
        new = np.flatnonzero(place < 0)
        self.evaluations += len(new) * len(J)
        self.hits += (len(I) - len(new)) * len(J)
        if len(new) and len(J):
            self._source.block(I[new], J, out[: len(new)])
            for k in np.flatnonzero(new > np.arange(len(new)))[::-1]:
                out[new[k]] = out[k]
        if len(new) < len(I):
            self._take_kept(place, J, out)
        return out[:, : len(J)]

    def mirror(self, K: NDArray[Any], begin: int, end: int, q: int) -> None:
        """Give q rows of a square block their entries in the columns begin..end-1.

        They are those of the rows begin..end-1, which have all of their own.
        """
        if self._mirrored.samples != end - begin:
            self._mirrored = Parts(end - begin, self._n_jobs)

        def task(strips: slice) -> None:
            """Of some of these columns."""
            first, last = begin + strips.start * STRIP, begin + strips.stop * STRIP
            _core.mirror(K, begin, end, q, first, min(last, end))

        self._mirrored(task, COPIED * (end - begin) * (q - end + begin))

    def _take_kept(self, place: Index, J: Index, out: NDArray[Any]) -> None:
        """Entries J of the rows that are kept."""
        kept = np.flatnonzero(place >= 0)
        strips = padded(self.length) // STRIP

        def task(some: slice) -> None:
            """Of as large a part of the rows as of the strips."""
            begin, end = (k * len(kept) // strips for k in (some.start, some.stop))
            part = kept[begin:end]
            _core.take(self._kept.rows, place[part], J, out, part)

        self._source.parts(task, COPIED * len(kept) * len(J))

    def columns(self, J: ArrayLike) -> NDArray[Any]:
        """Columns J of K, one in each row: (len(J), m), of the dtype; kept if new.

        Where rows are in focus: their entries only.
        """
        self.keep_exact()
        J = self._index(J)
        out = np.empty((len(J), self.length), self.dtype)
        for part in self._source.cut(len(J)):
            some = J[part]
            rows = aligned((len(some), self.width), self.dtype)
            place = self._kept.find(some)
            self._count(place)
            rows[place >= 0] = self._kept.rows[place[place >= 0]]
            new = np.flatnonzero(place < 0)
            if len(new):
                self._source.compute(some[new], None, None, rows, new)
            with self._storing(some[new]):
                place = self._kept.make_room(some[new], some)
                self._kept.rows[place[place >= 0]] = rows[new[place >= 0]]
            out[part] = rows[:, : self.length]
        return out

    def diag(self) -> Vector:
        """The diagonal of K: (m,)."""
        return self.kernel.diag(self._X)

    @property
    def kept_rows(self) -> NDArray[Any]:
        """The rows that are kept, at their `places`: (number of places, width)."""
        self.keep_exact()
        return self._kept.rows

    @property
    def places(self) -> Index:
        """Where each row of K is kept: (m,); -1 where it is not."""
        return self._kept.places

    def count_read(self, rows: int) -> None:
        """Count some reads of `kept_rows`, but for the first of a row."""
        self.hits += rows * self.length

    def keep(self, J: ArrayLike) -> None:
        """Keep these rows of K, computed where they are new.

        Raises
        ------
        ValueError
            There is no room for all of them.
        """
        self.keep_exact()
        J = self._index(J)
        for part in self._source.cut(len(J)):
            new = J[part][self._kept.find(J[part]) < 0]
            with self._storing(new):
                place = self._kept.make_room(new, J)
                if (place < 0).any():
                    raise ValueError(
                        "The 'memory_limit' parameter must leave room for "
                        f"{len(J)} rows of kernel values."
                    )
                self.evaluations += len(new) * self.length
                if len(new):
                    self._source.compute(new, None, None, self._kept.rows, place)

    # -- expansions --------------------------------------------------------------------

    def add(
        self,
        J: ArrayLike,
        c: Vector,
        sums: Vector,
        again: Mask | None = None,
    ) -> Vector:
        """Add K[:, J] c to ``sums``, (width,) in float64; keeps what is dear.

        Rows that are kept are read; others are computed and added up as they are made.
        Sums of up to 8 or 16 rows in the dtype are added to float64. New rows are kept
        where they are likely to be asked for ``again``, (len(J),); None: all may be.

        Returns
        -------
        The c of rows that were read: their values are off by up to `kept_error`.
        """
        J = self._index(J)
        place = np.full(len(J), -1)
        if self._source.reads_kept:
            place = self._kept.find(J)
        new = place < 0
        self._count(place)
        if not new.all():
            self._add_kept(place[~new], c[~new], sums)
        self._uses[J] += 1
        read = c[~new]
        J, c = J[new], c[new]
        keep = self._uses[J] > self._worth
        if again is not None:
            keep &= again[new]
        for part in self._source.cut(len(J)):
            some, kept = J[part], keep[part]
            place = np.full(len(some), -1)
            with self._storing(some):
                place[kept] = self._kept.make_room(some[kept], J)
                self._source.compute(some, c[part], sums, self._kept.rows, place)
        return read

    @contextlib.contextmanager
    def _storing(self, J: Index) -> Generator[None, None, None]:
        """Where storing rows fails, or is interrupted, none of them is kept."""
        try:
            yield
        except BaseException:
            self._kept.forget(J)
            raise

    def _add_kept(self, place: Index, c: Vector, sums: Vector) -> None:
        rows = self._kept.rows

        def task(strips: slice) -> None:
            begin, end = strips.start * STRIP, strips.stop * STRIP
            _core.add_rows(rows, place, c, begin, end, sums)

        self._source.parts(task, len(place) * self.length)

    def exact(self, rows: Index, J: Index, c: Vector) -> Vector:
        """The sums K[rows, J] c in float64: (len(rows),); nothing is kept."""
        return self.bounded(rows, J, c)[0]

    def bounded(self, rows: Index, J: Index, c: Vector) -> tuple[Vector, Vector]:
        """The sums K[rows, J] c in float64 and bounds of their errors: (len(rows),).

        They are made in a random order: with rows in order of their labels the partial
        sums would be large, and their rounding too.
        """
        order = np.random.default_rng(0).permutation(len(J))
        return self._source.exact(rows, J[order], c[order])

    def twofold(
        self, rows: Index, J: Index, c: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """The sums K[rows, J] c in twice the precision, where the core makes values.

        Values of a callable or a matrix are taken as they are.

        Returns
        -------
        High parts, bounds of the errors, low parts: (len(rows),)
        """
        return self._source.twofold(rows, J, c)

    def twofold_diag(self) -> tuple[Vector, Vector, Vector]:
        """The diagonal of K, in the parts that `twofold` has: (m,) each."""
        return self._source.twofold_diag()

    @property
    def diag_errors(self) -> Vector:
        """Bounds of the errors of `diag`: (m,)."""
        return self._source.diag_errors

    @property
    def roundings(self) -> int:
        """How often `add` rounds, in the dtype, before it adds to float64 sums."""
        return self._source.roundings

    @property
    def value_bounds(self) -> ValueBounds:
        """Bounds of the values that `add` uses, of all rows, and of their errors."""
        return self._source.bounds

    def values(self, I: ArrayLike, J: ArrayLike) -> Vector:  # noqa: E741
        """Kernel values of rows I with rows J in float64: (len(I), len(J))."""
        return self._source.values(self._index(I), self._index(J))

    def _count(self, place: Index) -> None:
        """Count what is computed and what was kept."""
        kept = int(np.count_nonzero(place >= 0))
        self.hits += kept * self.length
        self.evaluations += (len(place) - kept) * self.length

    def _index(self, J: ArrayLike) -> Index:
        return row_index(J, self.shape[0])


def _worth_of(source: Engine) -> float:
    """Uses of a row of K after which it is worth being kept."""
    return (STORED / (source.cost + 6.0)) ** 2 if source.reads_kept else math.inf


class _KeptRows:
    """Rows of K in one buffer; the rows that were not used for longest make room."""

    def __init__(self, m: int, width: int, room: NDArray[Any]) -> None:
        places = min(m, room.size // width)
        self.rows = room[: places * width].reshape(places, width)
        self.places = np.full(m, -1)  # of each row
        self._owner = np.full(places, -1)
        self._used = np.zeros(places, np.int64)
        self._now = self._filled = 0

    @property
    def is_full(self) -> bool:
        """Whether new rows take the place of others."""
        return self._filled == len(self._owner)

    def find(self, J: Index) -> Index:
        """Where rows are kept, or -1; they count as used now."""
        place = self.places[J]
        self._now += 1
        self._used[place[place >= 0]] = self._now
        return place

    def make_room(self, J: Index, needed: Index) -> Index:
        """Places for new rows; -1 where only rows that are ``needed`` could go."""
        place = np.full(len(J), -1)
        free = min(len(J), len(self._owner) - self._filled)
        place[:free] = np.arange(self._filled, self._filled + free)
        self._filled += free
        self._used[place[:free]] = self._now  # or the next lines would take them again
        if free < len(J):
            taken = self._longest_unused(len(J) - free, needed)
            place[free : free + len(taken)] = taken
            owner = self._owner[taken]
            self.places[owner[owner >= 0]] = -1
        stored = place >= 0
        self.places[J[stored]] = place[stored]
        self._owner[place[stored]] = J[stored]
        self._used[place[stored]] = self._now
        return place

    def forget(self, J: Index) -> None:
        """These rows are not kept."""
        place = self.places[J]
        self._owner[place[place >= 0]] = -1
        self._used[place[place >= 0]] = 0
        self.places[J] = -1

    def _longest_unused(self, count: int, needed: Index) -> Index:
        """Places whose rows are not needed now, up to a number."""
        used = self._used.copy()
        mine = self.places[needed]
        used[mine[mine >= 0]] = self._now + 1
        count = min(count, len(used))
        if count == 0:
            return np.empty(0, np.intp)
        oldest = np.argpartition(used, count - 1)[:count]
        return oldest[used[oldest] < self._now]
