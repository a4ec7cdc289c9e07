"""The models that the benchmark of budgets compares."""

import numpy as np

from benchmarks.budget import models
from benchmarks.core.refit import refitted
from widemargin import Kernel, Problem, solve
from widemargin.reduction.reduce import reduce


def test_every_model_has_the_budget_and_ours_the_least_objective():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where((X**2).sum(axis=1) + 0.3 * rng.normal(size=300) < 1.5, 1.0, -1.0)
    task = models.TASKS["a9a"]._replace(gamma=0.5)
    problem = Problem(X, y, task.C, kernel=Kernel("rbf", gamma=task.gamma))
    solution = solve(problem)
    ours = reduce(problem, solution, 10).certificate.primal
    chosen = models.pivots(X, problem.kernel, 10)
    found = [
        models.parts(refitted(problem, solution, models.largest(solution.w, 10))),
        models.parts(refitted(problem, solution, chosen)),
        models.pruned(problem, solution.w, solution.b, 10),
        models.nystroem(X, y, task, 10),
        models.nusvc(problem, X, y, task, 10, 10_000),
    ]
    for J, c, b in found:
        assert len(J) <= 10
        w = np.zeros(300)
        w[J] = c
        assert ours <= problem.primal(w, b) * (1.0 + 1e-12)  # ours has rounding too


def test_nystroem_has_the_scores_of_its_pipeline():
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    task = models.TASKS["a9a"]
    J, c, b = models.nystroem(X, y, task, 9)
    features = Nystroem(gamma=task.gamma, n_components=9, random_state=0)
    expected = make_pipeline(features, LinearSVC(C=task.C, dual=False)).fit(X, y)
    scores = Kernel("rbf", gamma=task.gamma)(X, X[J]) @ c + b
    np.testing.assert_allclose(scores, expected.decision_function(X), rtol=1e-7)
