"""Blocks of dense rows into a folder of shards, a Parquet file or svmlight text."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data.svmlight.text import opener
from widemargin.data.svmlight.write import parts, write_rows
from widemargin.system.files import (
    COMPRESSED,
    TEXT,
    creating,
    ending,
    missing_extra,
    replacing,
)

Block = tuple[NDArray[Any], NDArray[Any]]  # X (rows, n) and y (rows,)

# Rows of a shard at most: 256 MB of 32 columns in float64.
SHARD_ROWS = 1_000_000
_PARQUET = ".parquet"


def format_of(path: str | os.PathLike[str]) -> str:
    """Which format a name asks for: "shards", "parquet" or "text".

    Parameters
    ----------
    path : str or path-like
        ``.parquet``; ``.svm``, ``.svmlight``, ``.libsvm``, ``.txt``, each perhaps with
        ``.gz``, ``.bz2`` or ``.xz`` behind; no ending for a folder of shards.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the name ends in something else.
    """
    name = os.fsdecode(path)
    found, packed = ending(name), name.lower().endswith(COMPRESSED)
    if found in TEXT or (packed and not found):
        return "text"
    if not packed and found in ("", _PARQUET):
        return "parquet" if found else "shards"
    raise ValueError(
        f"{name}: expected a name for data, which ends in {_PARQUET}, "
        f"{', '.join(TEXT)} (the last four then perhaps {', '.join(COMPRESSED)}), or "
        f"has no ending for a folder, found {os.path.splitext(name)[1].lower()!r}"
    )


def write_blocks(path: str | os.PathLike[str], blocks: Iterable[Block]) -> None:
    """Write rows that come in blocks to files, holding a few blocks at a time.

    Parameters
    ----------
    path : str or path-like
        Its ending says the format, see `format_of`. A file of this name is replaced
        when everything is written; a folder of shards must be new.
    blocks : iterable of X and y
        X is a dense array (rows, n) of finite int16, float32 or float64 numbers, of
        the same n and dtype in all blocks; y (rows,) are integer labels from -128 to
        127. At least one block.

    Raises
    ------
    ValueError
        If the name ends in something else, or there is no block.
    ImportError
        If Parquet is asked for and pyarrow is not installed.
    OSError
        If something cannot be written, or the folder of shards exists; it has `path`
        in its sentence. After any error, and after Ctrl-C, nothing is left behind.

    Notes
    -----
    Shards: ``X-00000.npy``, ``X-00001.npy`` and so on are arrays (rows, n) in C order,
    of the dtype of the blocks, of at most 1,000,000 rows (more if a block has more),
    and ``y-00000.npy`` and so on the int8 labels of the same rows.

    Parquet: columns ``x0`` to ``x{n-1}`` of the dtype of the blocks, ``label`` of int8,
    and a row group for every block.

    Text: as `widemargin.save_svmlight` writes it, with indices from 1; entries that are
    0 are left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from widemargin.data.ndc import ndc_blocks
    >>> with TemporaryDirectory() as folder:
    ...     write_blocks(Path(folder, "ndc"), ndc_blocks(1000, 4, dtype="int16"))
    ...     sorted(file.name for file in Path(folder, "ndc").iterdir())
    ['X-00000.npy', 'y-00000.npy']
    """
    write = _WRITERS[format_of(path)]
    rest = iter(blocks)
    if (first := next(rest, None)) is None:
        raise ValueError(f"{os.fsdecode(path)}: expected rows to write, found none")
    write(path, first, rest)


# -- svmlight text ---------------------------------------------------------------------


def _write_text(
    path: str | os.PathLike[str], first: Block, rest: Iterator[Block]
) -> None:
    with replacing(path, opener(os.fsdecode(path))) as file:
        for X, y in chain([first], rest):
            for rows in parts(X, y.astype(np.float64), None):
                write_rows(file, rows, 1)


# -- Parquet ---------------------------------------------------------------------------


def _write_parquet(
    path: str | os.PathLike[str], first: Block, rest: Iterator[Block]
) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("a Parquet file", "parquet") from None
    n = first[0].shape[1]
    kind = pyarrow.from_numpy_dtype(first[0].dtype)
    fields = [(f"x{j}", kind) for j in range(n)] + [("label", pyarrow.int8())]
    schema = pyarrow.schema(fields)
    with (
        replacing(path) as file,
        parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
    ):
        for X, y in chain([first], rest):
            columns = [*np.ascontiguousarray(X.T), y.astype(np.int8)]
            table = pyarrow.table(columns, schema=schema)
            writer.write_table(table, row_group_size=len(y))


# -- shards ----------------------------------------------------------------------------


def _write_shards(
    path: str | os.PathLike[str], first: Block, rest: Iterator[Block]
) -> None:
    block: Block | None = first
    with creating(path) as folder:
        for number in count():
            if block is None:
                return
            with open(os.path.join(folder, f"X-{number:05}.npy"), "xb") as file:
                labels, block = _write_shard(file, block, rest)
            np.save(os.path.join(folder, f"y-{number:05}.npy"), labels)


def _write_shard(
    file: IO[bytes], block: Block, rest: Iterator[Block]
) -> tuple[NDArray[np.int8], Block | None]:
    """Write this block and the next ones that fit; return labels and the block left."""
    dtype, n = block[0].dtype, block[0].shape[1]
    _write_header(file, dtype, (0, n))  # the place for it: rows are not known yet
    body, labels, rows = file.tell(), [], 0
    following: Block | None = block
    while following and (not rows or rows + len(following[1]) <= SHARD_ROWS):
        X, y = following
        file.write(np.ascontiguousarray(X, dtype).data)
        labels.append(y.astype(np.int8))
        rows += len(y)
        following = next(rest, None)
    file.seek(0)
    _write_header(file, dtype, (rows, n))
    if file.tell() != body:
        raise AssertionError("the header of a .npy file has changed its length")
    return np.concatenate(labels), following


def _write_header(
    file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, int]
) -> None:
    """The header of a .npy file, which NumPy pads so that its rows may grow."""
    header = np.lib.format.header_data_from_array_1_0(np.empty((0, 0), dtype))
    np.lib.format.write_array_header_1_0(
        file, header | {"shape": shape, "fortran_order": False}
    )


_Writer = Callable[[str | os.PathLike[str], Block, Iterator[Block]], None]
_WRITERS: dict[str, _Writer] = {
    "text": _write_text,
    "parquet": _write_parquet,
    "shards": _write_shards,
}
