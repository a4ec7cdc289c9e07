"""Kernel models of at most B support vectors: accuracy, objective and time.

A full fit, then for each budget `widemargin.reduction.reduce` and others that cost as
much to predict with: the largest coefficients with the best intercept (pruned), other
rows with the refit of `reduce` (largest coefficients: largest; pivots of a randomly
pivoted Cholesky factor: pivots), Nystroem features of B random rows with scikit-learn's
LinearSVC (nystroem), and NuSVC with nu = B / m, pruned to B (nusvc). The objective is
that of the full problem, by the same code for all. Times are of the wall: nothing else
may run. Those of the first four and of the path are beside the full fit that they need.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.core.refit import refitted
from benchmarks.environment import RESULTS, list_of, machine
from benchmarks.kernel_sets import TASKS, divided
from widemargin import Kernel, Problem, solve
from widemargin.features.methods import feature_map
from widemargin.kernels.expansion import Expansion
from widemargin.reduction.reduce import reduce, reduce_path

SETS = ("a9a", "ijcnn1", "mnist", "w8a")
METHODS = ("reduce", "largest", "pivots", "pruned", "nystroem", "nusvc")
PATH = range(50, 501, 50)
COLUMNS = (
    *("set", "method", "budget", "vectors", "accuracy", "objective", "seconds"),
    "predict",  # wall time of a row to test, in microseconds
)
STYLES = {
    "reduce": ("-", "o"),
    "largest": ((0, (6, 2)), "x"),
    "pivots": ((0, (1, 1)), "+"),
    "pruned": (":", "v"),
    "nystroem": ("--", "s"),
    "nusvc": ("-.", "^"),
}


def main():
    """Measure the sets, print a table, write OUTPUT/budget.csv, .txt and .png."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(SETS), default=list(SETS))
    add("--methods", type=list_of(METHODS), default=list(METHODS))
    add("--budgets", type=lambda s: [int(v) for v in s.split(",")])
    add("--data", help="folder of the sets: NAME/train.svm[.bz2|.xz] and NAME/test...")
    add("--nusvc-iterations", type=int, default=100_000)
    add("--output", type=Path, default=RESULTS / "budget")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "budget.csv"
    with file.open("a", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        if file.stat().st_size == 0:
            writer.writeheader()
        for name in options.sets:
            for result in measure(name, options):
                row = dict(zip(COLUMNS, result, strict=True))
                print(*result, flush=True)
                writer.writerow(row)
                out.flush()
    report(options.output)


def measure(name, options):
    """Results of one set: the full fit, the methods by budget, and a path."""
    task, ((X, y), test) = TASKS[name], divided(name, options.data)
    kernel = Kernel("rbf", gamma=task.gamma)

    def result(method, budget, model, seconds):
        vectors, accuracy, objective, predict = judged(problem, test, model)
        seconds = f"{seconds:.3f}"
        return name, method, budget, vectors, accuracy, objective, seconds, predict

    begin = time.perf_counter()
    problem = Problem(X, y, task.C, kernel=kernel)
    solution = solve(problem)
    seconds = time.perf_counter() - begin
    J = np.flatnonzero(solution.w)
    yield result("full", len(J), (J, solution.w[J], solution.b), seconds)
    calls = {
        "reduce": lambda B: parts(reduce(problem, solution, B)),
        "largest": lambda B: parts(refitted(problem, solution, largest(solution.w, B))),
        "pivots": lambda B: parts(refitted(problem, solution, pivots(X, kernel, B))),
        "pruned": lambda B: pruned(problem, solution.w, solution.b, B),
        "nystroem": lambda B: nystroem(X, y, task, B),
        "nusvc": lambda B: nusvc(problem, X, y, task, B, options.nusvc_iterations),
    }
    for method in options.methods:
        for budget in options.budgets or (50, 100, 500, 1000):
            begin = time.perf_counter()
            model = calls[method](budget)
            yield result(method, budget, model, time.perf_counter() - begin)
    if "reduce" in options.methods:
        begin = time.perf_counter()
        model = parts(reduce_path(problem, solution, PATH)[-1])
        seconds = time.perf_counter() - begin
        yield result("path", PATH[-1], model, seconds)


def judged(problem, test, model):
    """Vectors of a model, accuracy, objective, and the time of a row to test."""
    J, c, b = model
    J, c = J[c != 0], c[c != 0]
    vectors, counts = problem.rows.take(J), np.array([len(c)])
    weights, kernel = c[np.newaxis], problem.kernel
    decide = Expansion(kernel, vectors, weights, np.array([b]), counts)
    begin = time.perf_counter()
    scores = decide(test[0])[:, 0]
    predict = 1e6 * (time.perf_counter() - begin) / len(scores)
    hits = np.mean((scores >= 0) == (test[1] > 0))
    whole = np.zeros(problem.shape[0])
    whole[J] = c
    primal = problem.primal(whole, b)
    return len(J), f"{100 * hits:.2f}", f"{primal:.2f}", f"{predict:.2f}"


def parts(model):
    """Rows, coefficients and intercept."""
    return model.rows, model.coefficients, model.b


def largest(w, budget):
    """The rows of the largest coefficients."""
    return np.sort(np.argsort(-np.abs(w), kind="stable")[:budget])


def pivots(X, kernel, budget):
    """Rows that span the kernel matrix, by chance in proportion to what they add."""
    z = feature_map(X, kernel, "nystroem", budget, landmarks="residual", random_state=0)
    return np.sort(z.landmarks)


def pruned(problem, w, b, budget):
    """The largest coefficients, with the best intercept."""
    J = largest(w, budget)
    c = np.zeros(len(w))
    c[J] = w[J]
    f = problem.columns.exact(np.arange(len(w)), J, c[J])
    return J, c[J], problem.intercept_for(f, c, b)


def nystroem(X, y, task, budget):
    """Features of random rows, and a linear SVM of them."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.svm import LinearSVC

    features = Nystroem(gamma=task.gamma, n_components=budget, random_state=0)
    Z = features.fit_transform(X)
    linear = LinearSVC(C=task.C, dual=False).fit(Z, y)
    beta = features.normalization_.T @ linear.coef_[0]
    return features.component_indices_, beta, float(linear.intercept_[0])


def nusvc(problem, X, y, task, budget, iterations):
    """The budget as a lower bound of the count of vectors, then pruned to it."""
    from sklearn.svm import NuSVC

    options = {"gamma": task.gamma, "cache_size": 1000, "max_iter": iterations}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it stopped at max_iter
        model = NuSVC(nu=budget / len(y), **options).fit(X, y)
    w = np.zeros(len(y))
    coefficients = model.dual_coef_
    if sparse.issparse(coefficients):
        coefficients = coefficients.toarray()
    w[model.support_] = np.ravel(coefficients)
    return pruned(problem, w, float(model.intercept_[0]), budget)


def report(folder):
    """The table and the picture of budget.csv; the last result of a kind counts."""
    with (folder / "budget.csv").open() as file:
        results = {
            (r["set"], r["method"], r["budget"]): r for r in csv.DictReader(file)
        }
    with (folder / "budget.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results.values())
    full = {r["set"]: r for r in results.values() if r["method"] == "full"}
    here = machine({})
    lines = [f"{here['cpu']}, {here['cores']} cores; {here['versions']}", ""]
    lines += table(results.values(), full)
    (folder / "budget.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    draw(folder, list(results.values()), full)


def table(results, full):
    """Lines of text; times the full fit: its time and that of the method together."""
    yield (
        f"{'set':8}{'method':10}{'budget':>7}{'vectors':>9}{'accuracy':>10}{'points':>8}"
        f"{'P / P*':>11}{'seconds':>9}{'times fit':>11}{'us a row':>10}"
    )
    for r in results:
        whole = full[r["set"]]
        points = float(r["accuracy"]) - float(whole["accuracy"])
        ratio = float(r["objective"]) / float(whole["objective"])
        seconds, fit = float(r["seconds"]), float(whole["seconds"])
        total = seconds + fit * (
            r["method"] not in ("full", "path", "nystroem", "nusvc")
        )
        yield (
            f"{r['set']:8}{r['method']:10}{r['budget']:>7}{r['vectors']:>9}"
            f"{r['accuracy']:>10}{points:>+8.2f}{ratio:>11.4g}{seconds:>9.2f}"
            f"{total / fit:>11.2f}{r['predict'] or '':>10}"
        )


def draw(folder, results, full):
    """Accuracy and the time of predictions against size, a column a set."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(3.4 * len(full), 5.2), layout="constrained")
    above, below = figure.subplots(
        2, len(full), squeeze=False, height_ratios=(3, 2), sharex="col"
    )
    for top, bottom, whole in zip(above, below, full.values(), strict=True):
        mine = [r for r in results if r["set"] == whole["set"]]
        title = f"{whole['set']}, full: {int(whole['vectors']):,} vectors"
        top.set_title(title, fontsize=9)
        top.set_xscale("log")
        bottom.set_yscale("log")
        bottom.yaxis.set_minor_formatter(NullFormatter())
        bottom.set_xlabel("support vectors", fontsize=8)
        for method in STYLES:
            plot(top, mine, method, "accuracy")
        plot(bottom, mine, "reduce", "predict")
        best = float(whole["accuracy"])
        top.set_ylim(best - 12, best + 1)
        for ax, column in ((top, "accuracy"), (bottom, "predict")):
            if whole[column]:
                ax.axhline(
                    float(whole[column]), color="0.6", linewidth=0.8, label="full"
                )
            ax.tick_params(labelsize=8)
            ax.grid(visible=True, color="0.9", linewidth=0.6)
    above[0].set_ylabel("test accuracy, %", fontsize=8)
    below[0].set_ylabel("prediction, us a row", fontsize=8)
    handles, names = above[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(folder / "budget.png", dpi=120)


def plot(ax, results, method, column):
    """One column of the results of a method against the budget."""
    mine = [r for r in results if r["method"] == method and r[column]]
    points = sorted((int(r["budget"]), float(r[column])) for r in mine)
    if points:
        line, marker = STYLES[method]
        ax.plot(
            *zip(*points, strict=True),
            linestyle=line,
            marker=marker,
            color="black" if method == "reduce" else "0.4",
            markersize=4.5,
            markerfacecolor="white",
            label=method,
        )


if __name__ == "__main__":
    main()
