"""A host: the actor that holds the lanes of a fit on one worker, and passes sums on.

Hosts form a tree: a request goes from the client to the root and down, sums come up.
Its methods are coroutines with an executor of their own: a worker has one thread for
all its actors, where two fits would wait for each other.
"""

import asyncio
import pickle
import tempfile
import weakref
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


class Stored:
    """Bytes in a file, which is gone with this object and with its process."""

    def __init__(self, data: bytes, folder: str) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        rest = memoryview(data)
        while rest:  # 2 GiB at most at a time
            rest = rest[self._file.write(rest) :]

    def read(self) -> bytes:
        """All of them."""
        self._file.seek(0)
        return self._file.read()


class Host:
    """Lanes on one worker: see the module."""

    def __init__(self, threads: int) -> None:
        self.lanes: dict[int, Lane] = {}
        self.constants = Constants()
        # Of lanes on another worker, with their epochs: in files, as they take as much
        # memory as what is beside the rows.
        self.copies: dict[int, tuple[int, Stored]] = {}
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

    async def copy_to(self, neighbor: Address) -> list[int]:
        """Copy its lanes to another host; the numbers of those it has."""
        for number, lane in list(self.lanes.items()):
            async with self._turn:
                epoch, data = await self._run(_copied, lane, self.constants)
            if data:
                await _tell(neighbor, "receive", number, epoch, data)
        return list(self.lanes)

    async def receive(self, number: int, epoch: int, data: bytes) -> None:
        """Hold a copy of a lane; none where the disk of the worker has no room."""
        from distributed import get_worker

        self.copies.pop(number, None)
        try:
            stored = await self._run(Stored, data, get_worker().local_directory)
        except OSError:
            return
        self.copies[number] = epoch, stored

    async def keep_copies(self, numbers: list[int]) -> None:
        """Drop the copies of all other lanes."""
        self.copies = {k: copy for k, copy in self.copies.items() if k in numbers}

    async def report_copies(self) -> dict[int, int]:
        """The epoch of each copy."""
        return {number: epoch for number, (epoch, _) in self.copies.items()}

    async def hand_over(self, number: int, to: Address) -> int:
        """Let the lane on another host, or on this one, go on from its copy."""
        epoch, stored = self.copies[number]
        await _tell(to, "go_on", number, await self._run(stored.read))
        return epoch

    async def go_on(self, number: int, data: bytes) -> None:
        """Let a lane that was loaded again go on from a copy."""
        async with self._turn:
            await self._run(_go_on, self.lanes[number], data, self.constants)

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


def _copied(lane: Lane, constants: Constants) -> tuple[int, bytes]:
    """The epoch of a lane, and a copy of it; no bytes where it is too large."""
    copy = lane.saved()
    return lane.applied, b"" if copy is None else constants.dumps(copy)


def _go_on(lane: Lane, data: bytes, constants: Constants) -> None:
    lane.go_on_from(constants.loads(data))


async def _tell(host: Address, method: str, *arguments: Any) -> None:
    """Call a method of a host from another one's worker."""
    from distributed import get_worker

    await ask(get_worker().rpc(host.worker), host, method, arguments)


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
