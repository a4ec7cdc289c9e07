"""Lanes made on the workers, and what is known of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from widemargin.data.distributed.lane import Lane


class NoHostError(Exception):
    """A task has come to a worker without the host it is for."""


@dataclass(frozen=True)
class Facts:
    """What is known of a lane once it is loaded.

    Attributes
    ----------
    sizes : rows of each partition
    columns : int or None where there are no rows
    dtype : of its numbers
    stored : int, entries that are stored
    found : what the reader says of each partition
    error : what is wrong with the data, or None
    left_out : whether there were rows, of which none has a positive weight
    """

    number: int
    sizes: list[int]
    columns: int | None
    dtype: Any
    stored: int
    found: list[Any]
    error: Exception | None = None
    left_out: bool = False


# Makes a lane and its facts of partitions: (number, partitions) -> (Lane, Facts).
Reader = Callable[[int, Sequence[Any]], tuple[Lane, Facts]]


def deliver(key: str, number: int, read: Reader, partitions: Sequence[Any]) -> Facts:
    """Make a lane of its partitions and give it to the host on this worker. A task.

    What is wrong with the data is an answer, not a failure of the cluster.
    """
    from distributed import get_worker

    try:
        lane, facts = read(number, partitions)
    except ValueError as error:
        return Facts(number, [], None, None, 0, [], error)
    host = get_worker().state.actors.get(key)
    if host is None:
        raise NoHostError(key)
    host.lanes[number] = lane
    return facts
