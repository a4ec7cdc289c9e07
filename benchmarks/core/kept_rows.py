"""How many kernel rows a problem keeps, and which limit keeps a quarter of them."""

from widemargin.kernels.matrix import LEAST_BLOCK


def kept_rows(problem):
    """MiB of kept rows of K; the memory_limit with room for a quarter of them."""
    columns = problem.columns
    source, kept = columns._source, columns._kept
    row = columns.width * columns.dtype.itemsize
    room = kept._filled * row // 4 * 4 // 3  # three quarters of the room are for rows
    room = max(room, 8 * columns.dtype.itemsize * LEAST_BLOCK**2)
    kept_mib = kept._filled * row / 2**20
    return {"kept_mib": kept_mib, "quarter": source.n_bytes + room}
