"""Which worker has which lanes, and who keeps copies of whose."""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from widemargin.data.distributed.host import Address


def share_out(
    weights: Sequence[float],
    alive: dict[str, int],
    held: dict[int, str],
    missing: list[int],
) -> list[tuple[str, list[int]]]:
    """Which worker is to have which lanes: by threads, and contiguous at first.

    Parameters
    ----------
    weights : sequence of float, of all lanes
    alive : dict of threads by worker
    held : dict of workers by lane, for the lanes that are there
    missing : list of lanes, rising
    """
    if not held:
        return _in_a_row(weights, alive, missing)
    load = dict.fromkeys(sorted(alive), 0.0)
    for number, worker in held.items():
        load[worker] += weights[number] / alive[worker]
    heap = [(weight, worker) for worker, weight in load.items()]
    heapq.heapify(heap)
    shares: dict[str, list[int]] = {}
    for number in missing:
        weight, worker = heapq.heappop(heap)
        shares.setdefault(worker, []).append(number)
        heapq.heappush(heap, (weight + weights[number] / alive[worker], worker))
    return list(shares.items())


def _in_a_row(
    weights: Sequence[float], alive: dict[str, int], lanes: list[int]
) -> list[tuple[str, list[int]]]:
    """Shares of lanes that follow one another, as large as workers have threads."""
    workers = sorted(alive)
    ends = list(itertools.accumulate(alive[worker] for worker in workers))
    shares: dict[str, list[int]] = {}
    total, done = sum(weights) or 1.0, 0.0
    for number in lanes:
        middle = (done + 0.5 * weights[number]) / total * ends[-1]
        place = next(i for i, end in enumerate(ends) if middle <= end)
        shares.setdefault(workers[place], []).append(number)
        done += weights[number]
    return list(shares.items())


def neighbors(hosts: Iterable[Address]) -> list[tuple[Address, Address]]:
    """Each host with another one, on another machine where none has most of them."""
    from distributed.comm import get_address_host

    known = sorted((get_address_host(host.worker), host.key, host) for host in hosts)
    most = max(Counter(machine for machine, _, _ in known).values())
    ring = [host for _, _, host in known]
    step = most % len(ring) or 1
    return list(zip(ring, ring[step:] + ring[:step], strict=True))
