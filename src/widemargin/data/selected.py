"""Row vectors of selected rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.state import RowState


class SelectedState(RowState):
    """Vectors of the selected rows, kept in vectors of the length of all rows."""

    __slots__ = ("_inner", "_rows")
    _inner: RowState
    _rows: Any

    def __init__(self, inner: RowState, rows: Any) -> None:
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_rows", rows)

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name in self.__slots__:
            raise AttributeError(name)
        vector: NDArray[Any] = getattr(self._inner, name)[self._rows.mask]
        vector.flags.writeable = False
        return vector

    def __setattr__(self, name: str, value: Any) -> None:
        whole = np.array(getattr(self._inner, name))
        whole[self._rows.mask] = value
        setattr(self._inner, name, whole)

    def part(self, index: slice | Index) -> RowState:
        """The rows ``index`` of the selected ones: copies."""
        return self._inner.part(np.flatnonzero(self._rows.mask)[index])

    def join(self, other: RowState) -> RowState:
        """The vectors of both: see `RowState.join`."""
        return SelectedState(self._inner.join(of_all_rows(other)), self._rows)

    def prefixed(self, prefix: str) -> RowState:
        """The same vectors under other names: see `RowState.prefixed`."""
        return SelectedState(self._inner.prefixed(prefix), self._rows)

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        """Run f on every block: see `RowState.sweep`."""
        inner = self._inner.join(self._rows.mask_state)
        return inner.sweep(_selected_part, self._rows.mask_name, f, *broadcast)


def of_all_rows(state: RowState) -> RowState:
    """The vectors of all rows that a state of selected ones is kept in."""
    if not isinstance(state, SelectedState):
        raise TypeError("The state of selected rows must be made by their `state`.")
    return state._inner


def _selected_part(
    part: RowState, mask: str, f: Callable[..., Any], *broadcast: Any
) -> Any:
    index = np.flatnonzero(getattr(part, mask))
    if index.size == 0:
        return None
    chosen = part.part(index)
    value = f(chosen, *broadcast)
    part.store(index, chosen)
    return value
