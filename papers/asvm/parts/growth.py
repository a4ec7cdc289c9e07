"""Seconds over the number of points, from memory, and the exponents of growth."""

from papers import measure, style
from papers.asvm import apart, methods

NAME = "growth"
DTYPES = ("int16", "float64")
METHODS = (methods.PUBLISHED, methods.DEFAULT)


def run(options):
    """A record for each size, storage and method, each from a fresh process."""
    return [
        apart.measured(
            rows=rows, dtype=dtype, method=m, nu=methods.NU, repeat=options.repeat
        )
        for dtype in DTYPES
        for rows in options.growth
        for m in METHODS
    ]


def exponents(records):
    """{(dtype, label): slope in log-log}, of the methods and of one pass."""
    slopes = {}
    for key, (rows, seconds) in _curves(records).items():
        if len(rows) > 1:
            slopes[key] = measure.growth_exponent(rows, seconds)
    return slopes


def _curves(records):
    """{(dtype, label): (rows, seconds)}; one pass as "one pass"."""
    curves = {}
    for dtype in dict.fromkeys(r["dtype"] for r in records):
        mine = [r for r in records if r["dtype"] == dtype]
        for method in dict.fromkeys(r["method"] for r in mine):
            same = [r for r in mine if r["method"] == method]
            rows = [r["rows"] for r in same]
            curves[dtype, method] = rows, [r["seconds"] for r in same]
            curves[dtype, "one pass"] = rows, [r["pass"] for r in same]
    return curves


def table(records):
    """Lines of text: seconds (steps on all rows) and exponents."""
    labels = list(dict.fromkeys(r["method"] for r in records))
    head = "".join(f"{m:>22}" for m in labels)
    yield f"{'dtype':9}{'rows':>11}{'one pass':>12}{head}"
    slopes = exponents(records)
    for dtype in dict.fromkeys(r["dtype"] for r in records):
        mine = [r for r in records if r["dtype"] == dtype]
        for rows in dict.fromkeys(r["rows"] for r in mine):
            line = {r["method"]: r for r in mine if r["rows"] == rows}
            cells = "".join(f"{_cell(line[m]):>22}" for m in labels)
            yield f"{dtype:9}{rows:11,}{line[labels[-1]]['pass']:12.5f}{cells}"
        found = [slopes.get((dtype, m), float("nan")) for m in ("one pass", *labels)]
        cells = "".join(f"{slope:22.2f}" for slope in found[1:])
        yield f"{dtype:9}{'exponent':>11}{found[0]:12.2f}{cells}"


def _cell(r):
    mark = "" if r["status"] == "solved" else "!"
    return f"{r['seconds']:.4f} ({r['iterations']}){mark}"


def draw(records, folder):
    """Seconds over rows, a panel for each storage."""
    curves, slopes = _curves(records), exponents(records)
    dtypes = list(dict.fromkeys(r["dtype"] for r in records))
    figure, axes = style.panels(1, len(dtypes), width=5.0, height=3.8)
    for axis, dtype in zip(axes, dtypes, strict=True):
        labels = [label for d, label in curves if d == dtype]
        for k, label in enumerate(labels):
            slope = slopes.get((dtype, label), float("nan"))
            style.curve(axis, *curves[dtype, label], k, f"{label}: {slope:.2f}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(f"NDC, 32 columns, {dtype}: exponent")
        axis.set_xlabel("points")
        axis.set_ylabel("seconds")
        axis.legend(fontsize="small")
    style.save(figure, folder, NAME)
