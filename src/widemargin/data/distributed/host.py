"""A host: the actor that holds the lanes of a fit on one worker, and passes sums on.

Hosts form a tree: a request goes from the client to the root and down, sums come up.
Its methods are coroutines with an executor of their own: a worker has one thread for
all its actors, where two fits would wait for each other.
"""

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from widemargin.data.distributed.lane import Constants, Entry, Lane
from widemargin.data.distributed.sums import Parts, merged


@dataclass(frozen=True)
class Address:
    """Where a host is: the address of its worker, and the key of the actor."""

    worker: str
    key: str


@dataclass
class Reply:
    """What comes up the tree.

    Attributes
    ----------
    parts : sums of lanes
    failed : list of str, why lanes are missing in them
    """

    parts: Parts
    failed: list[str]


class Host:
    """Lanes on one worker: see the module."""

    def __init__(self, threads: int) -> None:
        self.lanes: dict[int, Lane] = {}
        self.constants = Constants()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="widemargin-lane")
        self._turn = asyncio.Lock()
        self._children: list[Address] = []

    def __del__(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def report(self) -> dict[int, int]:
        """The last epoch of each lane."""
        return {number: lane.applied for number, lane in self.lanes.items()}

    async def connect(self, children: list[Address]) -> None:
        """Learn what is below it in the tree."""
        self._children = children

    async def keep(self, numbers: list[int]) -> None:
        """Drop all other lanes."""
        self.lanes = {k: lane for k, lane in self.lanes.items() if k in numbers}

    async def pin(self, constants: dict[str, bytes]) -> None:
        """Keep what entries refer to."""
        self.constants.update({k: pickle.loads(v) for k, v in constants.items()})

    async def replay(self, number: int, log: list[bytes]) -> None:
        """Bring a lane up to date."""
        entries = [self.constants.loads(data) for data in log]
        async with self._turn:
            await self._run(_replay, self.lanes[number], entries)

    async def sweep(self, request: bytes) -> bytes:
        """The sums of its lanes and of all below it."""
        below = [
            asyncio.ensure_future(_answer(child, request)) for child in self._children
        ]
        reply = Reply({}, [])
        try:
            entry = self.constants.loads(request)
            async with self._turn:
                values = await self._apply(entry)
            reply.parts.update({(0, k): value for k, value in values.items()})
        except (LookupError, pickle.UnpicklingError) as error:
            reply.failed.append(repr(error))
        for answer in await asyncio.gather(*below):
            if isinstance(answer, Exception):
                reply.failed.append(repr(answer))
            else:
                other: Reply = pickle.loads(answer)
                reply.parts.update(other.parts)
                reply.failed += other.failed
        if reply.failed:
            reply.parts = {}
        reply.parts = await self._run(merged, reply.parts)
        return pickle.dumps(reply, protocol=5)

    async def _apply(self, entry: Entry) -> dict[int, Any]:
        """The values of its lanes."""
        lanes = list(self.lanes.values())
        found = await asyncio.gather(
            *(self._run(lane.apply, entry) for lane in lanes), return_exceptions=True
        )
        for value in found:
            if isinstance(value, BaseException):
                raise value
        return {lane.number: value for lane, value in zip(lanes, found, strict=True)}

    async def _run(self, task: Callable[..., Any], *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, task, *arguments)


def _replay(lane: Lane, entries: list[Entry]) -> None:
    for entry in entries:
        if entry.epoch > lane.applied:
            lane.apply(entry)


async def _answer(host: Address, request: bytes) -> Any:
    """The answer of a host on another worker, or why there is none."""
    from distributed import get_worker

    try:
        return await ask(get_worker().rpc(host.worker), host, "sweep", (request,))
    except Exception as error:  # noqa: BLE001  (whatever ends a connection)
        return error


async def ask(
    worker: Any, host: Address, method: str, arguments: tuple[Any, ...]
) -> Any:
    """Call a method of a host through a connection to its worker."""
    from distributed.protocol import to_serialize

    answer = await worker.actor_execute(
        function=method,
        actor=host.key,
        args=[to_serialize(argument) for argument in arguments],
        kwargs={},
    )
    if answer["status"] != "OK":
        raise answer["exception"]
    return answer["result"]
