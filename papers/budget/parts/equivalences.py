"""What the budget machines are: C-SVC, nu-SVC and their ridge forms, beside LIBSVM."""

import warnings
from itertools import product

import numpy as np
from sklearn.svm import SVC, NuSVC

from papers import measure, style
from papers.budget import methods, smo

NAME = "equivalences"
POINTS, BUDGETS, TOL = 300, (10, 20, 40, 80, 120, 160, 200, 240, 270, 300), 1e-9
# C of the norms: that of Section 5, which depends on B (None), and one that does not.
FACTORS = (None, 1.0)
# Of LIBSVM: what it stops at, and a C that leaves out the box.
LIBSVM_TOL, NO_BOX = 1e-9, 1e8


def run(options):
    """A record for each norm, C, budget and split: differences beside LIBSVM."""
    records = []
    for split in options.problems(POINTS):
        K = methods.kernel(split.X, split.X)
        for kind, C, budget in product(methods.NORMS, FACTORS, BUDGETS):
            if budget <= len(split.y):
                records.append(_compared(kind, split, K, budget, C))
        print(f"  split {split.seed} is done", flush=True)
        if split.seed >= 1:
            break
    return records


def _compared(kind, split, K, budget, C=None):
    """Our optimum beside that of C-SVC or nu-SVC with the ridge on the diagonal."""
    y, rule = split.y, "Section 5" if C is None else f"{C:g}"
    C = methods.heuristic(kind, budget) if C is None else C
    found = methods.ours(kind, split.X, y, budget, C, TOL)
    ridge, capped = found.extras["ridge"], bool(found.extras["capped"])
    cap = C * (budget if kind == "L1" else np.sqrt(budget))
    ridged = K + ridge * np.eye(len(y))
    theirs = _nu(ridged, y, cap, C) if capped else _csvc(ridged, y, kind, C)
    mine, other = _half(K, y, found.alpha), _half(K, y, theirs)
    return {
        "norm": kind,
        "C": rule,
        "split": split.seed,
        "points": len(y),
        "B": budget,
        "form": ("nu-SVC" if capped else "C-SVC") + (" + ridge" if ridge else ""),
        "sum": measure.rounded(float(found.alpha.sum()) / cap),
        "ridge": measure.rounded(ridge),
        "theta": measure.rounded(found.extras["theta"]),
        "gap": found.certificate.relative_gap,
        "objective": abs(smo.dual(theirs, y, K) / smo.dual(found.alpha, y, K) - 1.0),
        "half_square": abs(other / mine - 1.0),
    }


def _half(K, y, alpha):
    c = y * alpha
    return 0.5 * float(c @ K @ c)


def _csvc(K, y, kind, C):
    """Dual variables of C-SVC; with L2 it has no box, and alpha is of length C."""
    box = C if kind == "L1" else NO_BOX
    alpha = _fitted(SVC(kernel="precomputed", C=box, tol=LIBSVM_TOL), K, y)
    return alpha if kind == "L1" else alpha * (C / np.linalg.norm(alpha))


def _nu(K, y, cap, top):
    """Dual variables of nu-SVC with this sum and a bound of ``top`` each.

    LIBSVM has alpha <= 1 and a sum of nu m, so nu = cap / (top m), which is B / m with
    the norm L1; with L2 the bound is not active, as no alpha is longer than C. It
    divides what it found by rho: alpha is scaled to the sum.
    """
    model = NuSVC(kernel="precomputed", nu=cap / (top * len(y)), tol=LIBSVM_TOL)
    alpha = _fitted(model, K, y)
    return alpha * (cap / alpha.sum())


def _fitted(model, K, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(K, y)
    return np.abs(measure.coefficients(model, len(y)))


def table(records):
    """Lines of text."""
    yield (
        "Relative differences beside LIBSVM (tol 1e-9) of the objective of (4) and of "
        "|f|^2 / 2; sum: sum alpha over the cap"
    )
    yield (
        f"{'norm':6}{'C':10}{'split':>6}{'B':>5}  {'is':16}{'sum':>8}{'theta':>9}"
        f"{'ridge':>11}{'gap':>10}{'objective':>11}{'|f|^2 / 2':>11}"
    )
    for r in records:
        yield (
            f"{r['norm']:6}{r['C']:10}{r['split']:6}{r['B']:5}  {r['form']:16}"
            f"{r['sum']:8.4f}{r['theta']:9.5f}{r['ridge']:11.3g}{r['gap']:10.1e}"
            f"{r['objective']:11.1e}{r['half_square']:11.1e}"
        )


def draw(records, folder):
    """Differences over B; the cap binds on gray ground."""
    figure, axes = style.panels(2, 2, width=4.8, height=3.4)
    rules = dict.fromkeys(r["C"] for r in records)
    for axis, (rule, kind) in zip(axes, product(rules, methods.NORMS), strict=True):
        mine = [
            r for r in records if (r["norm"], r["C"], r["split"]) == (kind, rule, 0)
        ]
        budgets = [r["B"] for r in mine]
        for k, (key, label) in enumerate(
            (("objective", "dual objective"), ("half_square", "|f|^2 / 2"))
        ):
            # Zero has no place on a logarithmic axis.
            values = [max(r[key], 1e-16) for r in mine]
            style.curve(axis, budgets, values, k, label)
        last = max((r["B"] for r in mine if r["form"].startswith("nu")), default=0)
        axis.axvspan(0, last, color="0.93", zorder=0, label="the cap binds: nu-SVC")
        axis.set(yscale="log", ylim=(5e-17, 1e-5), xlabel="budget B")
        C = "C of Section 5" if rule == "Section 5" else f"C = {rule}"
        axis.set(title=f"budget-{kind}, {C}")
        axis.set_ylabel("difference to LIBSVM")
    style.legend(figure, axes[0], 3)
    style.save(figure, folder, NAME)
