"""What a step of conjugate gradients and a matrix of row products cost (newton.py).

Processor seconds, least of some rounds, of one step of conjugate gradients and of one
solve through the matrix of all rows, squared hinge at v = 0, where all rows are active:
`documents` and scattered entries. Beside them what the constants in newton.py say, and
after the table what constants would say best: relative least squares for the three of a
step, the median of the ratios for the one of the matrix.
"""

import numpy as np
from scipy.optimize import nnls

from benchmarks.core.constants import changed
from benchmarks.linear.regression import documents, timed
from benchmarks.linear.sparse import scattered
from widemargin import Problem
from widemargin.numerics import linalg
from widemargin.solvers.linear import newton
from widemargin.solvers.linear.newton import Piece
from widemargin.system.threads import ONE_BLAS_THREAD

STEPS, ROUNDS = 20, 5
SHAPES = [
    (kind, m, n, words)
    for kind, few, many in (("documents", 30, 120), ("scattered", 10, 60))
    for m in (300, 1500)
    for n in (2000, 30_000)
    for words in (few, many)
]


def piece_of(kind, m, n, words):
    """All rows, at v = 0, and its point."""
    make = documents(m, n, words) if kind == "documents" else scattered(m, n, words / n)
    X, t = make
    y = np.where(t > np.median(t), 1.0, -1.0)
    problem = Problem(X, y, 1.0, "squared_hinge", "penalized")
    piece = Piece(problem.A, problem.state(), problem.R, bounded=False)
    point = piece.evaluate(np.zeros(problem.order), problem.pointwise.curvature)
    piece.accept()
    return piece, point, problem


def least(f):
    """The least seconds of some calls."""
    return min(timed(f)[1] for _ in range(ROUNDS))


def measured(kind, m, n, words):
    """Columns of a step's cost, pairs of the matrix, and the seconds of both."""
    piece, point, problem = piece_of(kind, m, n, words)
    s, R = problem.pointwise.curvature, problem.R

    def steps(count):
        return least(lambda: piece._conjugate_gradients(s, R, point, 0.0, count))

    def through_matrix():
        blocks, weights = piece.A.sweep(newton._active_rows, piece.state)
        d = s * np.concatenate(weights)
        return newton._woodbury(linalg.stack(blocks), d, R, -point.residual)

    step = (steps(STEPS + 1) - steps(1)) / STEPS
    entries = piece.A.density * problem.order
    a = point.active  # all rows: at most DENSE_ORDER
    matrix = least(through_matrix)
    return (a * entries, problem.order, 1.0), a * a * (a / 3.0 + entries), step, matrix


def main():
    """The table, and the constants by it."""
    own = newton.ENTRY_COST, newton.COLUMN_COST, newton.SWEEP_COST
    print(f"{'rows':38}{'step':>10}{'said':>10}{'matrix':>10}{'said':>10}")
    costs, ratios = [], []
    with ONE_BLAS_THREAD, changed({"CG_TOL": 0.0, "CG_MOST_TOL": 0.0}, newton):
        for shape in SHAPES:
            columns, pairs, step, matrix = measured(*shape)
            costs.append(np.array(columns) / step)
            ratios.append(matrix / pairs)
            kind, m, n, words = shape
            name = f"{kind} {m:,} x {n:,}, {words} a row"
            said = np.dot(own, columns)
            print(
                f"{name:38}{step:>10.1e}{said:>10.1e}{matrix:>10.1e}"
                f"{newton.PAIR_COST * pairs:>10.1e}",
                flush=True,
            )
    best, _ = nnls(np.array(costs), np.ones(len(costs)))
    print("ENTRY_COST, COLUMN_COST, SWEEP_COST:", *(f"{cost:.1e}" for cost in best))
    quartiles = np.quantile(ratios, (0.25, 0.5, 0.75))
    print("PAIR_COST, quartiles:", *(f"{cost:.1e}" for cost in quartiles))


if __name__ == "__main__":
    main()
