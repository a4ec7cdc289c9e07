"""Figure 5.8 and Table 5.2: training with a Gaussian kernel of low rank, on Adult."""

import time

import numpy as np

from papers import style
from papers.crsvm import datasets, libsvm, lowrank, methods
from papers.crsvm.parts.adult import solvers
from widemargin import Problem, solve

NAME = "figure_5.8"
EXACT, LIBSVM = "exact", "LIBSVM"


def run(options):
    """A record for each set and method, at the ranks of the paper."""
    return records(options, datasets.ADULT, lowrank.RANKS.items())


def records(options, names, cases):
    """A record for each set, approximation and solver, and for the exact problem."""
    found = []
    for data, test in options.pairs(names):
        exact = Problem(data.X, data.y, kernel=lowrank.kernel(data))
        rows = [
            *_exact(data, test, exact, options),
            *_approximate(data, test, exact, cases, options),
        ]
        found += [{"set": data.name, "rows": len(data.y), **r} for r in rows]
    return found


def _exact(data, test, exact, options):
    """The library's choice for the exact problem, to `methods.TOL`, and LIBSVM."""
    with methods.ONE_CORE.limit(limits=1):
        begin = time.process_time()
        best = solve(exact, tol=methods.TOL)
        seconds = time.process_time() - begin
    answers = {EXACT: (seconds, data.y * best.alpha, best.b)}
    kernel = {"kernel": "rbf", "gamma": exact.kernel.gamma}
    answers[LIBSVM] = libsvm.timed(data, options, clock=time.process_time, **kernel)
    for label, answer in answers.items():
        head = {"method": label, "map": "", "rank": None, "map_seconds": 0.0}
        if answer is None:
            yield {**head, "seconds": None, "status": f"over {options.timeout:g} s"}
            continue
        seconds, c, b = answer
        certificate = exact.certify(abs(c), c, b)
        yield {
            **head,
            "seconds": round(seconds, 4),
            "status": str(best.status) if label == EXACT else "solved",
            "primal": certificate.primal,
            "dual": certificate.dual,
            "accuracy": lowrank.accuracy(lowrank.scores(data, test.X, c, b), test.y),
        }


def _approximate(data, test, exact, cases, options):
    """The solvers of Figure 5.6 on the features; the dual value is the exact one."""
    for name, rank in cases:
        z, seconds = lowrank.approximation(data, name, rank, options.runs(data))
        head = {"map": name, "rank": z.rank, "map_seconds": seconds}
        mapped = datasets.Dataset(data.name, z.features, data.y, data.inputs)
        Z = z.transform(test.X)
        found = methods.runs(mapped, solvers(), repeat=options.repeat)
        for label, (solutions, times) in found.items():
            solution = solutions[-1]
            yield {
                "method": label,
                **head,
                **methods.record(solutions, times),
                "dual": exact.dual(solution.alpha),
                "accuracy": lowrank.accuracy(Z @ solution.w + solution.b, test.y),
            }


def table(records):
    """Lines of text: processor seconds, percent right and objectives.

    "above" is P of the problem that was solved over the exact optimum, less 1; "below"
    1 less the exact dual value of alpha over it.
    """
    yield (
        f"{'set':5}{'rows':>7}  {'method':17}{'map':5}{'rank':>5}{'map s':>8}"
        f"{'train s':>9}{'iter':>6}{'mean Q':>8}{'right':>8}{'P':>11}"
        f"{'above':>9}{'below':>9}"
    )
    best = {r["set"]: r["dual"] for r in records if r["method"] == EXACT}
    for r in records:
        head = f"{r['set']:5}{r['rows']:7}  {r['method']:17}{r['map']:5}"
        if r["seconds"] is None:
            yield f"{head}{r['status']}"
            continue
        mark = "" if r["status"] == "solved" else "!"
        optimum = best[r["set"]]
        yield (
            f"{head}{r['rank'] or '':>5}{r['map_seconds']:8.2f}{r['seconds']:9.3f}"
            f"{str(r.get('iterations', '')) + mark:>6}"
            f"{_share(r):>8}{r['accuracy']:8.2f}{r['primal']:11.2f}"
            f"{r['primal'] / optimum - 1:9.1e}{1 - r['dual'] / optimum:9.1e}"
        )


def _share(r):
    return f"{r['active_mean'] / r['rows']:.2f}" if "active_mean" in r else ""


def _curves(records):
    """The curves of the picture: {label: records that have seconds}."""
    chosen = {
        **{f"CRSVM(+{name})": ("CRSVM", name) for name in lowrank.RANKS},
        "all rows(+CHOL)": ("all rows", "CHOL"),
        LIBSVM: (LIBSVM, ""),
        "exact, ours": (EXACT, ""),
    }
    return {
        label: [r for r in records if (r["method"], r["map"]) == key and r["seconds"]]
        for label, key in chosen.items()
    }


def draw(records, folder):
    """Processor seconds over patterns, without and with those of the approximation."""
    figure, axes = style.panels(1, 2, width=5.0, height=3.8)
    for axis, title in zip(
        axes, ("training", "approximation and training"), strict=True
    ):
        for k, (label, line) in enumerate(_curves(records).items()):
            with_map = axis is not axes[0]
            rows = np.array([r["rows"] for r in line])
            whole = [r["seconds"] + with_map * r["map_seconds"] for r in line]
            bad = np.array([r["status"] != "solved" for r in line])
            style.curve(axis, rows, whole, k, label)
            axis.plot(rows[bad], np.array(whole)[bad], "kx", ms=11)
        axis.set_title(title)
        axis.set_xlabel("training patterns (x: not solved)")
        axis.set_ylabel("processor seconds")
        axis.set_xscale("log")
        axis.set_yscale("log")
        style.plain(axis, "x", (1, 2, 5))
        style.plain(axis, "y", (1,))
    style.legend(figure, axes[0], 3)
    style.save(figure, folder, NAME)
