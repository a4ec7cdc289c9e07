"""What the budget machines are: C-SVC, nu-SVC and their ridge forms, beside LIBSVM."""

import warnings

import numpy as np
from sklearn.svm import SVC, NuSVC

from papers.budget import measure
from papers.budget.measure import style

NAME = "equivalences"
POINTS, BUDGETS, TOL = 300, (10, 20, 40, 80, 120, 160, 200, 240, 270, 300), 1e-9
# Of LIBSVM: what it stops at, and a C that leaves out the box.
LIBSVM_TOL, NO_BOX = 1e-9, 1e8


def run(options):
    """A record for each norm, budget and split: relative differences beside LIBSVM."""
    records = []
    for split in options.problems(POINTS):
        K = measure.kernel(split.X, split.X)
        for kind in measure.NORMS:
            for budget in BUDGETS:
                if budget <= len(split.y):
                    records.append(_compared(kind, split, K, budget))
        print(f"  split {split.seed} is done", flush=True)
        if split.seed >= 1:
            break
    return records


def _compared(kind, split, K, budget):
    """Our optimum beside that of C-SVC or nu-SVC with the ridge on the diagonal."""
    y, C = split.y, measure.heuristic(kind, budget)
    found = measure.ours(kind, split.X, y, budget, tol=TOL)
    ridge, capped = found.extras["ridge"], bool(found.extras["capped"])
    cap = C * (budget if kind == "L1" else np.sqrt(budget))
    K = K + ridge * np.eye(len(y))
    top = C if kind == "L1" else NO_BOX
    theirs = _nu(K, y, cap, C) if capped else _csvc(K, y, top)
    mine, other = _half(K, y, found.alpha), _half(K, y, theirs)
    return {
        "norm": kind,
        "split": split.seed,
        "points": len(y),
        "B": budget,
        "form": ("nu-SVC" if capped else "C-SVC") + (" + ridge" if ridge else ""),
        "sum": measure.rounded(float(found.alpha.sum()) / cap),
        "ridge": measure.rounded(ridge),
        "theta": measure.rounded(found.extras["theta"]),
        "gap": found.certificate.relative_gap,
        "objective": abs(_dual(K, y, theirs) / _dual(K, y, found.alpha) - 1.0),
        "half_square": abs(other / mine - 1.0),
    }


def _half(K, y, alpha):
    c = y * alpha
    return 0.5 * float(c @ K @ c)


def _dual(K, y, alpha):
    return float(alpha.sum()) - _half(K, y, alpha)


def _csvc(K, y, top):
    """Dual variables of C-SVC."""
    return _fitted(SVC(kernel="precomputed", C=top, tol=LIBSVM_TOL), K, y)


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
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(np.ravel(model.dual_coef_))
    return alpha


def table(records):
    """Lines of text."""
    yield (
        "Relative differences beside LIBSVM (tol 1e-9) of the dual objective and of "
        "|f|^2 / 2 with the ridge; sum: sum alpha over the cap"
    )
    yield (
        f"{'norm':6}{'split':>6}{'B':>5}  {'is':16}{'sum':>8}{'theta':>9}{'ridge':>11}"
        f"{'gap':>10}{'objective':>11}{'|f|^2 / 2':>11}"
    )
    for r in records:
        yield (
            f"{r['norm']:6}{r['split']:6}{r['B']:5}  {r['form']:16}{r['sum']:8.4f}"
            f"{r['theta']:9.5f}{r['ridge']:11.3g}{r['gap']:10.1e}"
            f"{r['objective']:11.1e}{r['half_square']:11.1e}"
        )


def draw(records, folder):
    """Differences over B."""
    figure, axes = style.panels(1, 2, width=4.8, height=3.8)
    for axis, kind in zip(axes, measure.NORMS, strict=True):
        mine = [r for r in records if r["norm"] == kind and r["split"] == 0]
        budgets = [r["B"] for r in mine]
        for k, (key, label) in enumerate(
            (("objective", "dual objective"), ("half_square", "|f|^2 / 2 with ridge"))
        ):
            # Zero has no place on a logarithmic axis.
            values = [max(r[key], 1e-16) for r in mine]
            style.curve(axis, budgets, values, k, label)
        last = max((r["B"] for r in mine if r["form"].startswith("nu")), default=0)
        if last:
            axis.axvspan(0, last, color="0.93", zorder=0, label="the cap binds")
        axis.set(yscale="log", ylim=(5e-17, 1e-3), xlabel="budget B")
        axis.set(title=f"budget-{kind}-SVM, {mine[0]['points']} points")
        axis.set_ylabel("relative difference to LIBSVM")
        axis.legend()
    style.save(figure, folder, NAME)
