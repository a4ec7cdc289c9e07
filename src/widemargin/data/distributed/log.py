"""The log of a fit: the last entries, in memory up to a size."""

import itertools
import threading
from collections import deque

# Bytes of entries. One is half a kB with 32 columns and 2 kB with 1,000: the log of a
# fit of 30,000 requests is whole.
MOST_BYTES = 64 << 20
# The last entries are never cut: a lane may have missed the one before the last.
KEPT = 2


class Log:
    """Entries in their order, as bytes; the first ones may have been cut off.

    Attributes
    ----------
    first : int, how many were cut off
    size : int, bytes of the others
    written : int, bytes of all
    """

    def __init__(self) -> None:
        self._entries: deque[bytes] = deque()
        self._lock = threading.Lock()  # one thread appends while another one reads
        self.first = self.size = self.written = 0

    def __len__(self) -> int:
        return self.first + len(self._entries)

    def append(self, entry: bytes) -> None:
        """Add an entry."""
        with self._lock:
            self._entries.append(entry)
            self.size += len(entry)
            self.written += len(entry)

    def after(self, epoch: int) -> list[bytes] | None:
        """The entries after the first ``epoch`` ones; None where some were cut off."""
        with self._lock:
            if epoch < self.first:
                return None
            return list(itertools.islice(self._entries, epoch - self.first, None))

    def is_long(self, written: float) -> bool:
        """Whether half of what is kept was written since so many bytes were."""
        return self.written - written > MOST_BYTES // 2

    def cut(self, copied: int) -> None:
        """Cut off what is too much: what every lane has a copy of, then the oldest.

        ``copied`` counts the entries that all lanes have done where they were copied.
        """
        with self._lock:
            whole = self.size <= MOST_BYTES
            while not whole and len(self._entries) > KEPT:
                if self.size <= MOST_BYTES and self.first >= copied:
                    break
                self.size -= len(self._entries.popleft())
                self.first += 1

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._entries.clear()
            self.first = self.size = self.written = 0
