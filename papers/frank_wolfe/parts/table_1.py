"""Table 1: the sets as they are here, with the C and the gamma of all runs."""

import numpy as np

from papers import style
from papers.frank_wolfe.datasets import BY_NAME, C_TUNED, TABLE
from widemargin import Kernel, as_rows

NAME = "table_1"


def run(options):
    """A record for each set: sizes, classes, pairs of classes."""
    records = []
    for row, data in options.sets([row.name for row in TABLE]):
        labels, counts = np.unique(data.y, return_counts=True)
        kernel = Kernel("rbf", gamma="mean_distance").resolved(as_rows(data.X))
        largest = int(np.sort(counts)[-2:].sum())
        records.append(
            {
                "set": row.name,
                "label": row.label,
                "rows": len(data.y),
                "test": 0 if data.y_test is None else len(data.y_test),
                "classes": len(labels),
                "inputs": data.X.shape[1],
                "largest": largest,
                "printed": row.sizes,
                "gamma": float(f"{kernel.gamma:.4g}"),
                "C": C_TUNED[row.name],
            }
        )
    return records


def table(records):
    """Lines of text: ours, then what the paper prints."""
    head = f"{'rows':>9}{'test':>9}{'classes':>9}{'inputs':>8}"
    yield f"{'':12}{'here':>9}{'':26}{'paper':>9}"
    yield f"{'set':12}{head}{head}{'largest pair':>14}{'gamma':>11}{'C':>7}"
    for r in records:
        here = r["rows"], r["test"], r["classes"], r["inputs"]
        cells = "".join(
            f"{a:9,}{b:9,}{c:9}{d:8,}" for a, b, c, d in (here, r["printed"])
        )
        yield f"{r['label']:12}{cells}{r['largest']:14,}{r['gamma']:11.4g}{r['C']:7g}"


def draw(records, folder):
    """Rows to train on, here and in the paper."""
    figure, (axis,) = style.panels(1, 1, width=9.0, height=3.6)
    values = {
        "here": [r["rows"] for r in records],
        "paper": [_printed(r) for r in records],
    }
    style.bars(axis, [r["label"] for r in records], values, ["here", "paper"])
    axis.set_yscale("log")
    axis.set_ylabel("rows to train on (x: not in the paper)")
    axis.tick_params(axis="x", rotation=60)
    axis.legend()
    style.save(figure, folder, NAME)


def _printed(r):
    """The rows of the paper; nan for a set that it does not have."""
    return np.nan if np.isnan(BY_NAME[r["set"]].seconds[0]) else r["printed"][0]
