"""Theorems 1 and 2 with its corollary, and the dual (4), in numbers."""

import numpy as np

from papers import measure, style
from papers.budget import methods, norms
from widemargin import Kernel, Problem, solve
from widemargin.losses import BudgetL1, BudgetL2, Mahalanobis

NAME = "theorems"
VECTORS, POWERS = 60, (1.5, 2.0, 3.0)
# How near a margin is to that of place B to count as equal, and above which alpha is
# not zero for Theorem 2; the problems are solved to a gap of 1e-8.
TIE, ZERO, TOL = 1e-6, 1e-8, 1e-8
POINTS, BUDGETS = 300, (5, 10, 20, 40, 60, 80, 100, 150, 200, 300)
# Correlations of the slacks of the Mahalanobis problems.
CORRELATIONS = (0.0, 0.5, 0.9)


def run(options):
    """Records of four kinds: see their functions."""
    records = [*_first(), *_mahalanobis(6 if options.quick else 24), _separable()]
    for split in options.problems(POINTS):
        records += _second(split)
        print(f"  split {split.seed} is done", flush=True)
        if split.seed >= 1:
            break
    return records


def _first():
    """Theorem 1: the largest errors over random vectors."""
    rng = np.random.default_rng(0)
    errors = {"sum": 0.0, "library, integer": 0.0, "library, real": 0.0}
    inside = dict.fromkeys(POWERS, True)
    library = 0.0
    for _ in range(VECTORS):
        v = rng.normal(size=rng.integers(5, 40))
        m, size = len(v), np.abs(v)
        budget, t = int(rng.integers(1, m + 1)), rng.uniform(1.0, m)
        exact = norms.by_linear_program(v, budget)
        largest = np.sort(size)[::-1][:budget].sum()
        mine = BudgetL1(budget=float(budget)).value(size, np.ones(m))
        real = BudgetL1(budget=t).value(size, np.ones(m))
        between = norms.by_linear_program(v, t)
        for name, one, other in (
            ("sum", largest, exact),
            ("library, integer", mine, exact),
            ("library, real", real, between),
        ):
            errors[name] = max(errors[name], abs(one - other) / other)
        for p in POWERS:
            value = norms.by_search(v, p, budget ** (1.0 / p))
            low, high = norms.bounds(v, p, budget)
            inside[p] &= low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
        value = norms.by_search(v, 2.0, np.sqrt(budget))
        two = BudgetL2(budget=float(budget)).value(size, np.ones(m))
        library = max(library, abs(two - value) / value)
    for name, worst in errors.items():
        yield {"kind": "theorem 1", "what": f"p = 1, {name}", "error": worst}
    yield {"kind": "theorem 1", "what": "p = 2, library", "error": library}
    for p, held in inside.items():
        yield {"kind": "theorem 1", "what": f"p = {p:g}, bounds", "held": bool(held)}


def _second(split):
    """Theorem 2: whether it held, and how many support vectors of which kind."""
    K = methods.kernel(split.X, split.X)
    for budget in BUDGETS:
        if budget > len(split.y):
            continue
        for kind in methods.NORMS:
            found = methods.ours(kind, split.X, split.y, budget, tol=TOL)
            top = methods.heuristic(kind, budget) if kind == "L1" else np.inf
            margins = split.y * (K @ found.w + found.b)
            at = float(np.sort(margins)[budget - 1])
            beyond = found.alpha[margins > at + TIE]
            ties = int(np.sum(np.abs(margins - at) <= TIE))
            yield {
                "kind": "theorem 2",
                "norm": kind,
                "split": split.seed,
                "points": len(split.y),
                "B": budget,
                **methods.counts(found.alpha, top),
                "capped": float(found.extras["capped"]),
                "theta": measure.rounded(found.extras["theta"]),
                "margin": measure.rounded(at),
                "below": int(np.sum(margins < 1.0 - TIE)),
                "ties": ties,
                "beyond": measure.rounded(float(beyond.max(initial=0.0))),
                "gap": found.certificate.relative_gap,
            }


def _separable():
    """Separable points: fewer than B margins below 1, and more support vectors."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(30, 2)) + 3.0 * y[:, np.newaxis]
    about, norm = Kernel("linear"), BudgetL1(budget=1.0)
    found = solve(Problem(X, y, 1e3, kernel=about, norm=norm), tol=TOL)
    margins = y * (X @ (X.T @ found.w) + found.b)
    return {
        "kind": "separable",
        "B": 1,
        "below": int(np.sum(margins < 1.0 - TIE)),
        "vectors": int(np.count_nonzero(found.alpha)),
    }


def _mahalanobis(m=24):
    """The dual (4) beside (2) with and without xi >= 0, and our two forms."""
    rng, C = np.random.default_rng(1), 2.0
    X = rng.normal(size=(m, 2))
    y = np.where(X[:, 0] + rng.normal(size=m) > 0, 1.0, -1.0)
    K = methods.kernel(X, X)
    about = Kernel("rbf", gamma=0.5)
    for share in CORRELATIONS:
        M = share * np.ones((m, m)) + (1.0 - share) * np.eye(m)
        with_, _ = norms.mahalanobis_primal(K, y, M, C, nonnegative=True)
        free, least = norms.mahalanobis_primal(K, y, M, C, nonnegative=False)
        mine = {}
        for nonneg in (True, False):
            norm = Mahalanobis(M=M, nonneg_slack=nonneg)
            solution = solve(Problem(X, y, C, kernel=about, norm=norm), tol=1e-6)
            mine[nonneg] = solution.certificate.primal
        yield {
            "kind": "dual (4)",
            "correlation": share,
            "printed": norms.mahalanobis_dual(K, y, M, C),
            "primal": with_,
            "free": free,
            "least": least,
            "ours": mine[True],
            "ours_free": mine[False],
        }


def _of(records, kind):
    return [r for r in records if r["kind"] == kind]


def table(records):
    """Lines of text."""
    yield f"Theorem 1, {VECTORS} random vectors: relative error beside a program"
    for r in _of(records, "theorem 1"):
        shown = f"{r['error']:.1e}" if "error" in r else ("held" if r["held"] else "no")
        yield f"  {r['what']:28}{shown:>10}"
    yield ""
    yield (
        "Theorem 2: margin of place B, rows below 1, rows tied at place B, support "
        "vectors (at C, free), largest alpha of a row beyond, gap"
    )
    head = "".join(
        f"{n:>9}" for n in ("margin", "below", "tied", "SVs", "at C", "free")
    )
    yield f"  {'norm':5}{'split':>6}{'B':>5}{'cap':>5}{head}{'beyond':>9}{'gap':>9}"
    for r in _of(records, "theorem 2"):
        cap = "yes" if r["capped"] else "no"
        numbers = "".join(f"{r[n]:9}" for n in ("below", "ties", "vectors"))
        yield (
            f"  {r['norm']:5}{r['split']:6}{r['B']:5}{cap:>5}{r['margin']:9.3f}"
            f"{numbers}{r['bounded']:9}{r['free']:9}{r['beyond']:9.1e}{r['gap']:9.0e}"
        )
    yield ""
    for r in _of(records, "separable"):
        yield (
            f"Separable points, B = {r['B']}: {r['below']} margins below 1, "
            f"{r['vectors']} support vectors"
        )
    yield ""
    yield "The dual (4) for M = r 11' + (1 - r) I beside (2); our optima"
    names = ("(4)", "xi >= 0", "xi free", "least xi", "ours", "ours, free")
    yield f"  {'r':>5}" + "".join(f"{n:>13}" for n in names)
    for r in _of(records, "dual (4)"):
        keys = ("printed", "primal", "free", "least", "ours", "ours_free")
        yield f"  {r['correlation']:5g}" + "".join(f"{r[k]:13.8f}" for k in keys)


def draw(records, folder):
    """Support vectors over B: all, and those at C."""
    found = [r for r in _of(records, "theorem 2") if r["split"] == 0]
    if not found:
        return
    figure, axes = style.panels(1, 2, width=4.8, height=4.0)
    for axis, kind in zip(axes, methods.NORMS, strict=True):
        mine = [r for r in found if r["norm"] == kind]
        budgets = [r["B"] for r in mine]
        style.curve(axis, budgets, [r["vectors"] for r in mine], 0, "support vectors")
        if kind == "L1":
            label = "of them at C"
            style.curve(axis, budgets, [r["bounded"] for r in mine], 1, label)
        axis.plot(budgets, budgets, color="black", lw=0.8, label="B")
        title = f"budget-{kind}-SVM, {mine[0]['points']} points"
        axis.set(title=title, xlabel="budget B", ylabel="rows")
        axis.legend()
    style.save(figure, folder, NAME)
