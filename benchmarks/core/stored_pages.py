"""The page cache beneath features that are stored in a temporary file."""

import os


def forget_pages(stored):
    """Let the page cache forget the file of `StoredRows`: the next sweep reads disk."""
    file = stored._source._file
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
