"""The library itself, with the solver that it chooses; tol is the certified gap."""

from kernel_peers import Answer
from widemargin import Kernel, Problem, solve
from widemargin.columns import LEAST_BLOCK

DISTRIBUTION = "widemargin"


def ladders(is_sparse):
    """Gaps; the last one is there for the best dual bound."""
    return [[{"tol": 10.0**-k} for k in range(1, 8)]]


def prepared(X, **setting):
    """As it is."""
    return X


def trained(X, y, C, gamma, tol):
    """The estimator."""
    from widemargin import SVC

    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol).fit(X, y)


def fit(X, y, C, gamma, tol, memory_limit=None):
    """Alpha, b and what the trace says."""
    kernel = Kernel("rbf", gamma=gamma)
    problem = Problem(X, y, C, kernel=kernel, memory_limit=memory_limit)
    solution = solve(problem, tol=tol)
    last = solution.trace[-1].details
    more = {
        "rows_of_k": last["evaluations"] / X.shape[0],
        "hits": last["hits"] / X.shape[0],
        "working_sets": len(solution.trace) - 1,
        "inner_steps": last["inner_steps"],
        "claimed": solution.certificate.relative_gap,
        "status": str(solution.status),
        **_memory(problem.columns),
    }
    return Answer(solution.alpha, solution.b, more)


def _memory(columns):
    """MiB of kept rows of K; the memory_limit that leaves room for a quarter of them.

    Of what `Columns` keeps to itself: there is nothing else to ask.
    """
    source, kept = columns._source, columns._kept
    row = columns.width * columns.dtype.itemsize
    room = kept._filled * row // 4 * 4 // 3  # three quarters of the room are for rows
    room = max(room, 8 * columns.dtype.itemsize * LEAST_BLOCK**2)
    kept_mib = kept._filled * row / 2**20
    return {"kept_mib": kept_mib, "quarter": source.n_bytes + room}
