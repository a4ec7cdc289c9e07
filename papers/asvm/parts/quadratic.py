"""Table 1's other columns: a QP solver and LIBSVM on the six sets of UCI.

Clarabel takes the place of CPLEX, LIBSVM that of SVM-light. Folds and nu are those of
part uci; milliseconds are of the processor.
"""

import time

from papers.asvm import conic, datasets, methods, others
from papers.asvm.parts import uci
from widemargin import Problem, solve

NAME = "quadratic"
CLARABEL, LIBSVM = "Clarabel", "LIBSVM"


def run(options):
    """A record for each set, problem and method: means over folds, medians of ms."""
    return [record for data in options.sets(datasets.UCI) for record in _compared(data)]


def _compared(data):
    found = {}
    for train, test in uci.folds(len(data.y), uci.FOLDS):
        X, y = data.X[train], data.y[train]
        for label, problem, share, ladders in _problems():
            nu = uci.chosen(X, y, problem)
            goals = {"goal": uci.GOAL, "limit": uci.LIMIT, "clock": time.process_time}
            race = others.Race(problem(X, y, nu), X, y, share * nu, **goals)
            for method, ladder in ladders.items():
                answer = race.run(ladder)
                cell = (answer.seconds, answer.gap, answer.w, answer.b, nu, train, test)
                found.setdefault((label, method), []).append(cell)
    shape = {"set": data.name, "rows": len(data.y), "columns": data.X.shape[1]}
    return [
        shape | {"problem": label, "method": method} | uci.mean(data, runs)
        for (label, method), runs in found.items()
    ]


def _problems():
    """Label, maker of the problem, C / nu, and who solves it: {method: ladder}."""
    libsvm, first = others.load("libsvm"), {"tol": uci.GOAL}
    solver = methods.SOLVERS[methods.PUBLISHED]
    both = {methods.DEFAULT: (_ours, [first]), CLARABEL: (conic.fit, conic.LADDER)}
    published = {methods.PUBLISHED: (_ours, [{**first, "solver": solver}])}
    yield "(7)", methods.as_problem, 0.5, published | both
    (settings,) = libsvm.ladders("hinge", "free")
    yield "(2)", methods.ordinary, 1.0, both | {LIBSVM: (libsvm.fit, settings)}


def _ours(X, y, C, loss, intercept, tol, solver="auto"):
    solution = solve(Problem(X, y, C, loss, intercept), solver, tol=tol)
    return solution.w, solution.b


def table(records):
    """Lines of text."""
    yield (
        f"{'set':17}{'problem':>8}  {'method':15}{'nu':>9}{'train %':>9}{'test %':>8}"
        f"{'ms':>10}{'largest gap':>13}"
    )
    for r in records:
        yield (
            f"{r['set']:17}{r['problem']:>8}  {r['method']:15}{r['nu']:9.2g}"
            f"{r['train']:9.2f}{r['test']:8.2f}{r['milliseconds']:10.3f}{r['gap']:13.0e}"
        )


def draw(records, folder):
    """No picture: the table says it."""
