"""How much memory is free."""

import os

from widemargin import _core

# Share of the free memory that rows may take where no limit is given: solvers and their
# caches need the other half.
FREE_SHARE = 0.5
# Where Linux says what a container may use, and uses now.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def free_bytes() -> int:
    """Bytes that rows may take by default: a share of the memory that is free now."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    free = 1024 * int(line.split()[1])
    except OSError:
        pass  # not Linux: of all memory
    for limit, used in _CGROUPS:
        try:
            with (
                open(limit, encoding="ascii") as most,
                open(used, encoding="ascii") as now,
            ):
                left = int(most.read()) - int(now.read())
                free = min(free, left + _core.lent_bytes())
        except (OSError, ValueError):
            pass  # no limit
    return int(FREE_SHARE * max(free, 0))
