"""The log of a fit: all entries, in memory up to a size, then in a file of its own."""

import itertools
import tempfile
import threading
from typing import Any

# Bytes in memory. An entry is half a kB with 32 columns and 2 kB with 1,000: a fit of a
# thousand requests needs no file.
IN_MEMORY = 64 << 20


class Log:
    """Entries in their order, as bytes. A temporary file has what memory does not."""

    def __init__(self) -> None:
        self._file: Any = None
        self._ends = [0]
        self._lock = threading.Lock()  # one thread appends while another one reads

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, entry: bytes) -> None:
        """Add an entry."""
        with self._lock:
            if self._file is None:
                self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
            self._file.seek(self._ends[-1])
            self._file.write(entry)
            self._ends.append(self._ends[-1] + len(entry))

    def after(self, epoch: int) -> list[bytes]:
        """The entries after the first ``epoch`` ones."""
        with self._lock:
            own = self._ends[epoch:]
            if len(own) > 1:
                self._file.seek(own[0])
            return [self._file.read(b - a) for a, b in itertools.pairwise(own)]

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file, self._ends = None, [0]
