"""Sums over lanes in one binary tree, whoever holds which lanes."""

from typing import Any

from widemargin.data.blocks import total

# A node (level, i) stands for the lanes i 2^level .. (i + 1) 2^level - 1.
Parts = dict[tuple[int, int], Any]


class Raised:
    """What a lane returns in place of a value where its work raised an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def merged(parts: Parts) -> Parts:
    """The same sums in as few nodes as can be: siblings are added, the left one first.

    Whatever the order in which nodes come together, the tree is one and the same, and
    so are the bits of its root.
    """
    parts = dict(parts)
    level = 0
    while any(at >= level for at, _ in parts):
        for at, i in sorted(key for key in parts if key[0] == level):
            if i % 2 == 0 and (at, i + 1) in parts:
                pair = parts.pop((at, i)), parts.pop((at, i + 1))
                parts[at + 1, i // 2] = _sum(*pair)
        level += 1
    return parts


def padding(n_lanes: int) -> Parts:
    """Nodes without a value for the lanes from ``n_lanes`` to the next power of 2."""
    parts: Parts = {}
    lane, level = n_lanes, 0
    end = 1 << (n_lanes - 1).bit_length()
    while lane < end:
        if lane % 2:
            parts[level, lane] = None
            lane += 1
        lane, level, end = lane // 2, level + 1, end // 2
    return parts


def _sum(left: Any, right: Any) -> Any:
    """The sum of two nodes; the first error, where there is one."""
    for value in (left, right):
        if isinstance(value, Raised):
            return value
    return total((left, right))
