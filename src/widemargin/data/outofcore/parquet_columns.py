"""Columns of Parquet files as features: numbers, and a feature for each category."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Index
from widemargin.data.outofcore.parquet_files import Part
from widemargin.data.outofcore.parquet_schema import is_text
from widemargin.numerics import linalg

# Entries that the core reads as they are, from small to large.
_DENSE_TYPES = [np.dtype(t) for t in (np.uint8, np.int16, np.float32, np.float64)]
_CSR_TYPES = _DENSE_TYPES[2:]
_INT32_MAX = 2**31 - 1

# Rows of a block: consecutive ones as a slice, others by number.
Place = slice | Index


class Column:
    """A feature column: one feature of numbers, or one for each of its categories.

    Attributes
    ----------
    name : str
    entry : int, its place among the feature columns
    dtype : numpy dtype of numbers; None for categories
    most : int, how many categories there may be: those of plain words are few
    first : int, the first of its features
    names : list of str, names of its features
    """

    def __init__(
        self, name: str, entry: int, dtype: np.dtype[Any] | None, most: float
    ) -> None:
        self.name, self.entry, self.dtype, self.most = name, entry, dtype, most
        self.first, self.names = 0, [name]
        self._categories: Any = None
        self._known: tuple[Any, Index] | None = None

    def add_categories(self, part: Part) -> None:
        """Add the values of some rows to the categories."""
        array, known = part.column(self.name), self._categories
        with part.file.reading():
            values = array.dictionary if _is_dictionary(array) else array
            if is_text(values.type):
                values = values.cast(pa.large_string())  # files may differ in this
            values = values.drop_null()
            values.validate(full=True)  # text is UTF-8
            self._categories = pc.unique(
                values if known is None else pa.concat_arrays([known, values])
            )
        if len(self._categories) > self.most:
            raise ValueError(
                f"{part.file.path}: expected at most {self.most} different words in "
                f"column '{self.name}', found more (such as "
                f"{self._categories[0].as_py()!r}); make it a dictionary column, "
                "which may have more (pandas: astype('category')), or leave it out "
                "(columns=...)"
            )

    def place(self, first: int) -> int:
        """Set the number of the first feature; return that after the last."""
        self.first = first
        if self.dtype is None:
            self._categories = _in_order(self._categories)
            self.names = [f"{self.name}={x}" for x in self._categories.to_pylist()]
        return first + len(self.names)

    def features(self, part: Part) -> Index:
        """The feature that each row has, of a column of categories: (k,)."""
        array = part.column(self.name)
        if not _is_dictionary(array):
            return self._find(part, array)
        known = self._known
        if known is None or not array.dictionary.equals(known[0]):
            known = array.dictionary, self._find(part, array.dictionary)
            self._known = known  # both at once: other threads read them
        return _lookup(part, known[1], array.indices)

    def _find(self, part: Part, values: Any) -> Index:
        with part.file.reading():
            values = values.cast(self._categories.type)
            found = pc.index_in(values, value_set=self._categories)
        if found.null_count:
            raise part.file.damage(f"a category new to column '{self.name}'")
        features: Index = np.add(found.to_numpy(), self.first, dtype=np.intp)
        return features


def numbers(part: Part, name: str) -> NDArray[Any]:
    """The numbers of a column in their own dtype: (k,)."""
    array = part.column(name)
    with part.file.reading():
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.float64())
        return np.asarray(array.to_numpy(zero_copy_only=False))


def codes_of(part: Part, name: str, values: dict[Any, int]) -> Index:
    """Codes (k,) of the elements of a column; adds new ones to ``values``."""
    array = part.column(name)
    with part.file.reading():
        if not _is_dictionary(array):
            array = array.dictionary_encode()
        found = array.dictionary.to_pylist()
    codes = np.array([values.setdefault(x, len(values)) for x in found], np.intp)
    return _lookup(part, codes, array.indices)


def _is_dictionary(array: Any) -> bool:
    return bool(pa.types.is_dictionary(array.type))


def _lookup(part: Part, values: Index, indices: Any) -> Index:
    """The elements of ``values`` at the indices that a file holds."""
    at: NDArray[Any] = indices.to_numpy()
    try:  # pyarrow does not check them; as unsigned numbers negative ones are large
        found: Index = values[at.view(f"u{at.itemsize}")]
    except IndexError:
        raise part.file.damage("a category outside of its dictionary") from None
    return found


def _in_order(values: Any) -> Any:
    """Values sorted, or as they are where pyarrow has no order for them."""
    try:
        return values.take(pc.array_sort_indices(values))
    except pa.ArrowNotImplementedError:
        return values


class Block(ABC):
    """A block that is being filled: (k, n).

    Parameters
    ----------
    shape : tuple (k, n)
    dtype : numpy dtype of the entries
    columns : sequence of Column, in the order of their features
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        columns: Sequence[Column],
    ) -> None:
        self._shape, self._columns = shape, columns
        self._allocate(dtype)

    def write(self, place: Place, part: Part, picked: Place = slice(None)) -> None:
        """Fill the rows ``place`` with the rows ``picked`` of a part of a file."""
        for column in self._columns:
            if column.dtype is None:
                self._put_features(column, place, column.features(part)[picked])
            else:
                self._put_numbers(column, place, numbers(part, column.name)[picked])

    @classmethod
    @abstractmethod
    def dtype_of(cls, columns: Sequence[Column]) -> np.dtype[Any]:
        """The smallest dtype that holds all columns; float64 rounds 64-bit integers."""

    @abstractmethod
    def matrix(self) -> linalg.Matrix:
        """The block."""

    @abstractmethod
    def _allocate(self, dtype: np.dtype[Any]) -> None: ...

    @abstractmethod
    def _put_numbers(
        self, column: Column, place: Place, values: NDArray[Any]
    ) -> None: ...

    @abstractmethod
    def _put_features(self, column: Column, place: Place, features: Index) -> None: ...


class DenseBlock(Block):
    """A dense block in C order."""

    @classmethod
    def dtype_of(cls, columns: Sequence[Column]) -> np.dtype[Any]:
        """See `Block.dtype_of`."""
        return _smallest(_DENSE_TYPES, columns)

    def matrix(self) -> linalg.Matrix:
        """The block."""
        return self._X

    def _allocate(self, dtype: np.dtype[Any]) -> None:
        self._X = np.zeros(self._shape, dtype)
        self._rows = np.arange(self._shape[0])

    def _put_numbers(self, column: Column, place: Place, values: NDArray[Any]) -> None:
        self._X[place, column.first] = values

    def _put_features(self, column: Column, place: Place, features: Index) -> None:
        self._X[self._rows[place], features] = 1


class CsrBlock(Block):
    """A CSR block with an entry for each column in every row, zeros among them."""

    @classmethod
    def dtype_of(cls, columns: Sequence[Column]) -> np.dtype[Any]:
        """See `Block.dtype_of`."""
        return _smallest(_CSR_TYPES, columns)

    def matrix(self) -> linalg.Matrix:
        """The block."""
        length = len(self._columns)
        stop = self._data.size + length
        # Set field by field: see linalg.row_slice.
        rows = sparse.csr_array(self._shape, dtype=self._data.dtype)
        rows.data, rows.indices = self._data.ravel(), self._indices.ravel()
        rows.indptr = np.arange(0, stop, length, dtype=self._indices.dtype)
        rows.has_canonical_format = True
        return rows

    def _allocate(self, dtype: np.dtype[Any]) -> None:
        k, n = self._shape
        length = len(self._columns)
        is_narrow = max(k * length, n) <= _INT32_MAX
        firsts = [column.first for column in self._columns]
        self._data = np.ones((k, length), dtype)
        self._indices = np.empty((k, length), np.int32 if is_narrow else np.int64)
        self._indices[:] = firsts

    def _put_numbers(self, column: Column, place: Place, values: NDArray[Any]) -> None:
        self._data[place, column.entry] = values

    def _put_features(self, column: Column, place: Place, features: Index) -> None:
        self._indices[place, column.entry] = features


def _smallest(
    types: Sequence[np.dtype[Any]], columns: Sequence[Column]
) -> np.dtype[Any]:
    used = [column.dtype for column in columns if column.dtype is not None]
    return next(t for t in types if all(np.can_cast(u, t, "safe") for u in used))
