"""Section 4, millions of points: steps, seconds, passes over the data, memory."""

from papers.asvm import apart, methods

NAME = "ndc"
DTYPES = ("int16", "float32", "float64")
METHODS = (methods.PUBLISHED, methods.DEFAULT)


def run(options):
    """A record for each size, storage and method, each from a fresh process."""
    return [
        apart.measured(
            rows=rows, dtype=dtype, method=m, nu=methods.NU, repeat=options.repeat
        )
        for rows in options.sizes
        for dtype in DTYPES
        for m in METHODS
    ]


def table(records):
    """Lines of text. Vectors: peak memory beside X and y, in vectors of m float64."""
    yield (
        f"{'rows':>10}{'dtype':>9}  {'method':15}{'steps':>6}{'safe':>5}{'sweeps':>7}"
        f"{'s':>8}{'(min':>7} {'max)':>6}{'gap':>8}{'pass s':>8}{'passes':>7}"
        f"{'made':>6}{'newton':>7}{'end':>6}{'least':>6}{'cpu':>6}{'vectors':>8}"
        f"{'train':>7}{'test':>7}"
    )
    for r in records:
        mark = "" if r["status"] == "solved" else "!"
        yield (
            f"{r['rows']:10,}{r['dtype']:>9}  {r['method']:15}{r['iterations']:6}"
            f"{r['safeguards']:5}{r['sweeps']:7}{r['seconds']:8.3f}{r['fastest']:7.2f}"
            f"{r['slowest']:7.2f}{r['gap']:8.0e}{r['pass']:8.4f}{r['passes']:7.1f}"
            f"{r['passes_made']:6.1f}{r['passes_stepped']:7.1f}{_end(r):6.1f}"
            f"{r['passes_least']:6.1f}{r['passes_cpu']:6.1f}{r['vectors']:8.2f}"
            f"{r['train']:7.2f}{r['test']:7.2f}"
            f"{mark}"
        )
    yield "steps: on all rows. A pass: NumPy's X @ w; for int16, rows.matvec. passes:"
    yield "median of solve / passes around it, of which made: checking the data and"
    yield "making the problem, newton: until the last step, end: certificate. least:"
    yield "fastest / fastest; cpu: same, of processor time. vectors: peak memory beside"
    yield "X and y, in vectors of m float64."


def _end(r):
    """Passes after the last step."""
    return r["passes"] - r["passes_made"] - r["passes_stepped"]


def draw(records, folder):
    """No picture: the table says it."""
