"""Section 5.2.1: C from 2^0 to 2^12, by a validation part of the training rows.

The paper tunes with CVM; the optimum is the same for all solvers, so we tune with the
default solver, to a loose gap.
"""

import numpy as np

from papers import style
from papers.frank_wolfe import methods
from papers.frank_wolfe.datasets import TABLE, Data

NAME = "tuning"
GRID = tuple(2.0**k for k in range(13))
VALIDATED, MOST_ROWS, LOOSE = 0.3, 20_000, 1e-2


def run(options):
    """A record for each set: accuracy on the validation rows for each C."""
    records = []
    for row, data in options.sets([row.name for row in TABLE]):
        part = split(data)
        found = [
            methods.train(
                part,
                methods.rbf(C),
                methods.by_gap(methods.DEFAULT),
                options.limit,
                LOOSE,
            )
            for C in GRID
        ]
        accuracy = [methods.rounded(r.accuracy) for r in found]
        about = {"set": row.name, "label": row.label, "rows": len(part.y)}
        records.append(
            {
                **about,
                "C": GRID[int(np.argmax(accuracy))],
                "accuracy": accuracy,
                "seconds": [methods.rounded(r.seconds) for r in found],
                "over": any(r.over for r in found),
            }
        )
        print(f"  {row.label}: C = {records[-1]['C']:g}", flush=True)
    return records


def split(data, seed=0):
    """70 % to train on, 30 % to test with; at most `MOST_ROWS` of both."""
    order = np.random.default_rng(seed).permutation(len(data.y))[:MOST_ROWS]
    held = int(VALIDATED * len(order))
    test, train = order[:held], order[held:]
    return Data(data.X[train], data.y[train], data.X[test], data.y[test])


def table(records):
    """Lines of text: accuracy for each C."""
    yield "Accuracy on 30 % of the rows to train on, for C of the paper; the first best"
    grid = "".join(f"{C:>7g}" for C in GRID)
    yield f"{'set':12}{'rows':>8}{grid}{'C':>8}"
    for r in records:
        cells = "".join(f"{a:7.2f}" for a in r["accuracy"])
        yield f"{r['label']:12}{r['rows']:8,}{cells}{r['C']:8g}"


def draw(records, folder):
    """Loss of accuracy against the best C, a curve for each of some sets."""
    figure, (axis,) = style.panels(1, 1, width=6.5, height=4.0)
    shown = [
        r for r in records if r["set"] in ("a6a", "w7a", "ijcnn1", "mnist", "usps")
    ]
    for k, r in enumerate(shown or records[:5]):
        best = max(r["accuracy"])
        style.curve(axis, GRID, [a - best for a in r["accuracy"]], k, r["label"])
    axis.set_xscale("log", base=2)
    axis.set_xlabel("C of the paper")
    axis.set_ylabel("validation accuracy, less the best, points")
    axis.legend()
    style.save(figure, folder, NAME)
