"""The hosts of a fit, from the client: placed, loaded, asked, and restored when lost.

Everything that changes row vectors is an entry of a log. A request is sent to the root
of the hosts, which passes it on; where a host is lost, its lanes are loaded again from
the graph of the collection on other workers, do what the log says, and the request is
sent once more: lanes that have answered it answer the same again. So that they need not
do all of a long log, lanes are copied to the disk of a neighbor now and then, without
their rows: a lane that is loaded again goes on from there. Where a lane and its copy
are lost, it does the whole log. A log that is too long is cut at the copies; then a
lane that is lost with its copy cannot be made again, and the fit has to begin anew,
from the weights that the client has.
"""

import asyncio
import math
import pickle
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any

from widemargin.data.distributed.collection import ClusterLostError, RowsLostError
from widemargin.data.distributed.host import Address, Host, Reply, ask
from widemargin.data.distributed.loading import Facts, NoHostError, Reader, deliver
from widemargin.data.distributed.log import Log
from widemargin.data.distributed.placing import neighbors, share_out
from widemargin.data.distributed.sums import merged, padding

# Seconds: between two looks at which workers there are, which is what a lost one costs
# beside its work; for a look, as long as Dask takes between two heartbeats of a client;
# and until the fit gives up where there is no worker at all: the nanny of one that was
# killed had started it anew after 1.2 to 1.9.
LOOK, ANSWER, PATIENCE = 0.25, 5.0, 15.0
# Times that the hosts are put up again without one answer.
ATTEMPTS = 30
FAN = 2  # hosts below a host
# From one copy of the lanes to the next: entries, seconds, and times what the last copy
# took. They are bounds: copies take at most a twentieth of a fit, and none of its first
# ten seconds; a lost lane does again 64 entries, or if that is more, what was asked in
# ten seconds or twenty copies (tests/data/test_distributed_lost.py).
COPIED_AFTER, COPIED_SECONDS, COPIED_TIMES = 64, 10.0, 20.0


class _LostError(Exception):
    """A worker has gone; the others can go on without it."""


class Crew:
    """Hosts on the workers of a client, and the log of what they were asked.

    Parameters
    ----------
    client : distributed.Client
    lanes : sequence of partitions, delayed, of each lane
    weights : sequence of float, what each lane weighs when they are shared out
    read : Reader

    Attributes
    ----------
    shipped : Counter of bytes sent to and got from the root, and of requests
    facts : dict of Facts by lane
    restored : int, how many lanes were loaded again
    replayed : int, the most entries that one of these had to do again
    """

    def __init__(
        self,
        client: Any,
        lanes: Sequence[Any],
        weights: Sequence[float],
        read: Reader,
    ) -> None:
        self._client, self._read = client, read
        self._lanes, self._weights = lanes, weights
        self._hosts: dict[str, Address] = {}  # by worker
        self._futures: dict[str, Any] = {}  # of the actors, by worker
        self._log = Log()
        self._constants: dict[str, bytes] = {}
        self._top: Address | None = None  # the root, where all is well
        self._direct: bool | None = None
        self._closed = False
        self._task: Any = None
        self.shipped: Counter[str] = Counter()
        self.facts: dict[int, Facts] = {}
        self.restored, self.replayed = 0, 0
        self._copied_at = self._copied = 0  # entries: at the last try, in all copies
        self._written = 0.0  # bytes of the log at the last try
        self._copy_again = time.monotonic() + COPIED_SECONDS

    # -- from any thread ---------------------------------------------------------------

    def load(self, timeout: float | None = None) -> dict[int, Facts]:
        """Load all lanes."""
        self._wait(self._restore(), timeout)
        return self.facts

    @property
    def n_lanes(self) -> int:
        """How many lanes there are."""
        return len(self._lanes)

    @property
    def epoch(self) -> int:
        """The number of the last entry."""
        return len(self._log)

    def add(self, data: bytes, timeout: float | None = None) -> Any:
        """Add an entry to the log; the sum of what the lanes return.

        An entry whose wait is interrupted stays in the log: lanes that have missed it
        catch up.
        """
        if not self._closed:
            self._log.append(data)
        return self._wait(self._request(data), timeout)

    def pin(self, name: str, data: bytes) -> None:
        """Send a constant to all hosts, now and whenever there are new ones."""
        if name not in self._constants:
            self._constants[name] = data
            self._wait(self._pin(name), None)

    def memory(self) -> float:
        """Bytes that the workers may use, all together."""
        return float(self._wait(self._memory(), None))

    async def _memory(self) -> float:
        known = await self._client.scheduler.identity(n_workers=-1)
        limits = [one["memory_limit"] for one in known["workers"].values()]
        return sum(limit or math.inf for limit in limits)

    def close(self) -> None:
        """Let all hosts go."""
        self._closed = True
        futures, self._futures, self._hosts = list(self._futures.values()), {}, {}
        for future in futures:
            future.release()
        self._log.clear()

    def _wait(self, work: Coroutine[Any, Any, Any], timeout: float | None) -> Any:
        """The result of work in the loop of the client, which Ctrl-C ends."""
        if self._closed:
            work.close()
            raise ClusterLostError(
                "The rows on the cluster are closed: the fit that read them is over."
            )
        loop = self._client.loop.asyncio_loop
        task = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return task.result(timeout)
        except BaseException:
            task.cancel()
            raise

    # -- in the loop of the client -----------------------------------------------------

    async def _request(self, data: bytes) -> Any:
        """Send an entry until all lanes have answered."""
        why = ""
        for _ in range(ATTEMPTS):
            try:
                if self._top is None:
                    await self._restore()
                if self._is_copy_due:
                    await self._copy()
                self._log.cut(self._copied)
                assert self._top is not None
                answer = await self._watched(self._ask(self._top, "sweep", data))
            except (_LostError, OSError) as error:
                self._top, why = None, repr(error)
                continue
            self.shipped["sent"] += len(data)
            self.shipped["got"] += len(answer)
            self.shipped["requests"] += 1
            reply: Reply = pickle.loads(answer)
            if not reply.failed:
                parts = merged(reply.parts | padding(len(self._lanes)))
                if len(parts) == 1:
                    return next(iter(parts.values()))
                reply.failed.append(f"lanes are missing: {sorted(parts)}")
            self._top, why = None, "; ".join(reply.failed)
        raise ClusterLostError(f"The workers did not answer {ATTEMPTS} times: {why}")

    async def _restore(self) -> None:
        """Have every lane on a worker, loaded and up to date, and the hosts in a tree.

        From whatever is there.
        """
        self._top, why = None, ""
        for _ in range(ATTEMPTS):
            try:
                alive = await self._workers()
                held = await self._held(alive)
                await self._place(alive, held)
                await self._catch_up(await self._held(alive))
                await self._join()
                self._copied = 0  # copies may be lost
                if self._log.first:  # and the log cannot stand for them
                    self._written = -math.inf
                return
            except (_LostError, OSError) as error:
                why = repr(error)
                await asyncio.sleep(LOOK)
        raise ClusterLostError(
            f"Workers were lost faster than their rows were loaded: {why}"
        )

    async def _workers(self) -> dict[str, int]:
        """The workers that are there, with their threads; waits for one if needed."""
        end = time.monotonic() + PATIENCE
        while True:
            alive = await self._look()
            if alive:
                return alive
            if time.monotonic() > end:
                raise ClusterLostError(
                    "No worker is left on the cluster, and none has come back in "
                    f"{PATIENCE:g} s. Start workers and fit again."
                )
            await asyncio.sleep(LOOK)

    async def _look(self) -> dict[str, int]:
        """Workers and their threads, as the scheduler knows them now."""
        end = time.monotonic() + ANSWER
        while True:
            try:
                if self._client.status == "running":
                    found = await asyncio.wait_for(
                        self._client.scheduler.ncores(), ANSWER
                    )
                    return dict(found)
            except (TimeoutError, OSError):
                pass
            if time.monotonic() > end or self._client.status == "closed":
                raise ClusterLostError(
                    "The scheduler of the Dask cluster does not answer any more. "
                    "Connect a client to a running cluster and fit again."
                )
            await asyncio.sleep(LOOK)

    async def _held(self, alive: dict[str, int]) -> dict[int, tuple[Address, int]]:
        """Where each lane is, and its last epoch. Hosts that do not answer are out."""
        held: dict[int, tuple[Address, int]] = {}
        asked = [host for host in self._hosts.values() if host.worker in alive]
        answers = await asyncio.gather(
            *(self._report(host) for host in asked),
            return_exceptions=True,
        )
        good = {}
        for host, answer in zip(asked, answers, strict=True):
            if isinstance(answer, BaseException):
                continue
            good[host.worker] = host
            extra = False
            for number, epoch in answer.items():
                extra |= number in held
                held.setdefault(number, (host, epoch))
            if extra:
                own = [k for k, (at, _) in held.items() if at == host]
                await self._ask(host, "keep", own)
        for worker in set(self._hosts) - set(good):
            del self._hosts[worker]
            self._futures.pop(worker).release()
        return held

    async def _report(self, host: Address) -> Any:
        """The last epoch of each lane of a host, which should take no time."""
        task = asyncio.ensure_future(self._ask(host, "report"))
        end = time.monotonic() + ANSWER
        try:
            while not (await asyncio.wait({task}, timeout=LOOK))[0]:
                late = time.monotonic() > end
                if late or host.worker not in await self._look():
                    raise _LostError(f"{host.worker} does not answer")
            return task.result()
        finally:
            task.cancel()

    async def _place(
        self, alive: dict[str, int], held: dict[int, tuple[Address, int]]
    ) -> None:
        """Load the lanes that no host has."""
        # A lane may be there, but the answer that said so was not waited for.
        known = held.keys() & self.facts.keys()
        missing = [k for k in range(len(self._lanes)) if k not in known]
        if not missing:
            return
        self.restored += len(self.facts.keys() & set(missing))
        there = {number: host.worker for number, (host, _) in held.items()}
        shares = share_out(self._weights, alive, there, missing)
        loads = [self._load(worker, alive[worker], own) for worker, own in shares]
        await self._watched(_all(loads), {worker for worker, _ in shares})
        for number in missing:
            error = self.facts[number].error
            if error is not None:
                raise error

    async def _load(self, worker: str, threads: int, numbers: list[int]) -> None:
        """Load lanes on a worker, with a host for them."""
        from dask.delayed import delayed

        host = self._hosts.get(worker) or await self._host(worker, threads)
        delivered = delayed(deliver, pure=False)
        tasks = [
            delivered(
                host.key,
                number,
                self._read,
                self._lanes[number],
                dask_key_name=f"widemargin-load-{uuid.uuid4().hex}",
            )
            for number in numbers
        ]
        futures = self._client.compute(
            tasks, workers=[worker], allow_other_workers=False, optimize_graph=False
        )
        try:
            await _all([self._learn(future) for future in futures])
        except (NoHostError, CancelledError) as error:
            raise _LostError(repr(error)) from None

    async def _learn(self, future: Any) -> None:
        """Keep the facts of a lane as soon as it is there: others may be lost."""
        facts = await future
        self.facts[facts.number] = facts

    async def _host(self, worker: str, threads: int) -> Address:
        """A new host on a worker."""
        future = self._client.submit(
            Host,
            threads,
            key=f"widemargin-host-{uuid.uuid4().hex}",
            workers=[worker],
            allow_other_workers=False,
            actor=True,
            pure=False,
        )
        self._futures[worker] = future
        try:
            await future
        except RuntimeError as error:  # it was lost as soon as it was there
            raise _LostError(repr(error)) from None
        host = Address(worker, future.key)
        if self._direct is None:
            self._direct = await self._reaches(host)
        if self._constants:
            await self._ask(host, "pin", self._constants)
        self._hosts[worker] = host
        return host

    async def _reaches(self, host: Address) -> bool:
        """Whether the client can talk to workers without the scheduler."""
        try:
            call = ask(self._client.rpc(host.worker), host, "report", ())
            await asyncio.wait_for(call, ANSWER)
        except (TimeoutError, OSError):
            return False
        return True

    async def _pin(self, name: str) -> None:
        """Send a constant to the hosts that there are."""
        if self._top is None:
            return
        only = {name: self._constants[name]}
        calls = [self._ask(host, "pin", only) for host in self._hosts.values()]
        try:
            await self._watched(_all(calls))
        except (_LostError, OSError):
            self._top = None

    async def _catch_up(self, held: dict[int, tuple[Address, int]]) -> None:
        """Let lanes do what of the log they have not done."""
        if len(held) < len(self._lanes):
            raise _LostError("lanes are missing")
        # The last entry is on its way to all of them; the same again is no harm.
        behind = {k: at for k, at in held.items() if at[1] < len(self._log)}
        if not behind:
            return
        copies = await self._copies()
        work = [self._bring(k, *at, copies.get(k)) for k, at in behind.items()]
        await self._watched(_all(work))

    async def _bring(
        self, number: int, host: Address, epoch: int, copy: tuple[Address, int] | None
    ) -> None:
        """Bring a lane up to date, from its copy on where that is newer."""
        if copy is not None and copy[1] > epoch:
            epoch = await self._ask(copy[0], "hand_over", number, host)
        entries = self._log.after(epoch)
        if entries is None:
            raise RowsLostError(
                "Workers were lost at the same time as the copies of what they had "
                "beside their rows, in a fit too long to be done again. Fit again."
            )
        self.replayed = max(self.replayed, len(entries))
        await self._ask(host, "replay", number, entries)

    async def _copies(self) -> dict[int, tuple[Address, int]]:
        """Where the newest copy of each lane is, and its epoch."""
        hosts = list(self._hosts.values())
        found = await self._watched(_all(self._ask(h, "report_copies") for h in hosts))
        newest: dict[int, tuple[Address, int]] = {}
        for host, epochs in zip(hosts, found, strict=True):
            for number, epoch in epochs.items():
                if number not in newest or newest[number][1] < epoch:
                    newest[number] = host, epoch
        return newest

    @property
    def _is_copy_due(self) -> bool:
        """Whether there is much that a lost lane would do again, or a long log."""
        late = time.monotonic() >= self._copy_again
        many = len(self._log) - self._copied_at > COPIED_AFTER
        return (late and many) or self._log.is_long(self._written)

    async def _copy(self) -> None:
        """Copy every lane to a neighbor. All are at the entry before the last."""
        self._copied_at, begin = len(self._log) - 1, time.monotonic()
        self._written = self._log.written
        if len(self._hosts) < 2:
            return
        pairs = neighbors(self._hosts.values())
        calls = [self._ask(host, "copy_to", other) for host, other in pairs]
        lanes = await self._watched(_all(calls))
        calls = [
            self._ask(other, "keep_copies", own)
            for (_, other), own in zip(pairs, lanes, strict=True)
        ]
        await self._watched(_all(calls))
        found = await self._copies()
        if len(found) == len(self._lanes):
            self._copied = min(epoch for _, epoch in found.values())
        end = time.monotonic()
        self._copy_again = end + max(COPIED_SECONDS, COPIED_TIMES * (end - begin))

    async def _join(self) -> None:
        """Make a tree of the hosts."""
        hosts = sorted(self._hosts.values(), key=lambda host: host.key)
        below = [hosts[FAN * i + 1 : FAN * i + 1 + FAN] for i in range(len(hosts))]
        calls = [
            self._ask(host, "connect", children)
            for host, children in zip(hosts, below, strict=True)
        ]
        await self._watched(_all(calls))
        self._top = hosts[0]

    async def _ask(self, host: Address, method: str, *arguments: Any) -> Any:
        """Call a method of a host."""
        client = self._client
        if self._direct is not False:
            worker = client.rpc(host.worker)
        else:
            worker = _Through(client.scheduler, host.worker)
        try:
            return await ask(worker, host, method, arguments)
        except KeyError as error:  # the worker has no such actor (any more)
            raise _LostError(repr(error)) from None

    async def _watched(self, work: Awaitable[Any], also: Iterable[str] = ()) -> Any:
        """The result of work that needs all hosts; `_LostError` where one is gone."""
        task = asyncio.ensure_future(work)
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=LOOK)
                if done:
                    return task.result()
                gone = (set(self._hosts) | set(also)) - set(await self._look())
                if gone:
                    raise _LostError(f"workers are gone: {sorted(gone)}")
        finally:
            if not task.done():
                task.cancel()


async def _all(work: Iterable[Awaitable[Any]]) -> list[Any]:
    """The results of all, or the first error once all have ended."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return found


class _Through:
    """A worker that is reached through the scheduler only."""

    def __init__(self, scheduler: Any, worker: str) -> None:
        self._scheduler, self._worker = scheduler, worker

    async def actor_execute(self, **message: Any) -> Any:
        message["op"] = "actor_execute"
        return await self._scheduler.proxy(worker=self._worker, msg=message)
