"""What auto chooses, and what happens where the choice was wrong."""

import numpy as np
import pytest
from scipy import sparse

from tests.conftest import PROBLEMS
from widemargin import Checkpoint, LinearSVC, LinearSVR, Problem, as_rows, solve
from widemargin.problems.regression import regression_problem
from widemargin.solution import Step
from widemargin.solvers import (
    AugmentedLagrangian,
    CoordinateDescent,
    InteriorPoint,
    auto,
)
from widemargin.solvers.driver.contract import ChosenSolver, Reserve
from widemargin.solvers.driver.driver import run
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.driver.start import Start
from widemargin.solvers.linear import rules


def random_problem(m, n, C, loss="hinge", intercept="penalized", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) / np.sqrt(n)
    return Problem(X, np.sign(X[:, 0] + 0.3 * rng.normal(size=m)), C, loss, intercept)


@pytest.mark.parametrize(
    ("shape", "C", "loss", "intercept", "name"),
    [
        ((300, 10), 0.1, "hinge", "penalized", "coordinate_descent"),
        ((300, 10), 0.1, "hinge", "free", "coordinate_descent"),
        ((300, 10), 1e3, "hinge", "penalized", "augmented_lagrangian"),
        ((26_000, 10), 0.1, "hinge", "penalized", "augmented_lagrangian"),
        ((60, 600), 5.0, "hinge", "none", "coordinate_descent"),
        ((50, 2000), 1.0, "hinge", "none", "coordinate_descent"),
        ((50, 2000), 1e5, "hinge", "none", "interior_point"),
        ((50, 2000), 1.0, "hinge", "free", "coordinate_descent"),
        ((50, 2000), 1e5, "hinge", "free", "interior_point"),
        ((300, 10), 0.1, "squared_hinge", "penalized", "active_set"),
        ((300, 10), 10.0, "squared_hinge", "free", "active_set"),
        ((60, 600), 0.5, "squared_hinge", "penalized", "coordinate_descent"),
        ((60, 600), 5.0, "squared_hinge", "penalized", "coordinate_descent"),
        ((60, 600), 5e4, "squared_hinge", "penalized", "active_set"),
        ((50, 2000), 1.0, "squared_hinge", "penalized", "coordinate_descent"),
        ((50, 2000), 1.0, "squared_hinge", "free", "coordinate_descent"),
    ],
)
def test_rules(shape, C, loss, intercept, name):
    problem = random_problem(*shape, C, loss, intercept)
    choice = auto.choose(problem)
    assert choice.solver.name == name
    assert choice.reason.startswith("because ")
    assert f"{shape[0]:,} rows x {shape[1]:,} features" in choice.reason
    assert all(r.solver.supports(problem) is None for r in choice.reserves)
    solution = solve(problem, tol=1e-6)
    assert (solution.status, solution.solver) == ("solved", name)
    assert solution.reason == choice.reason


@pytest.mark.parametrize(
    ("loss", "n", "kappa", "descends"),
    [
        ("hinge", 1000, 1e4, True),
        ("hinge", 400, 1e4, True),
        ("hinge", 200, 100.0, False),
        ("squared_hinge", 400, 1e4, True),
        ("squared_hinge", 200, 10.0, False),
    ],
)
def test_sparse_rows_of_some_hundred_columns(loss, n, kappa, descends):
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, n), density=0.02, rng=rng, format="csr")
    y = np.where(rng.random(600) < 0.5, 1.0, -1.0)
    C = kappa / Problem(X, y, loss=loss).kappa
    assert rules.Facts.of(Problem(X, y, C=C, loss=loss), 1e-4).descends == descends
    dense = rules.Facts.of(Problem(X.toarray() + 1e-9, y, C=C, loss=loss), 1e-4)
    assert dense.descends == (loss == "squared_hinge" and 600 * kappa <= 2 * n * n)


@pytest.mark.parametrize(("kind", "times"), [("classes", 5.0), ("targets", 1.8)])
def test_tall_sparse_rows_of_some_hundred_columns(kind, times):
    m, n = 3000, 600
    rng = np.random.default_rng(0)
    X = sparse.random_array((m, n), density=0.02, rng=rng, format="csr")
    t = rng.normal(size=m)

    if kind == "classes":
        made = lambda C: Problem(X, np.sign(t), C, loss="squared_hinge")  # noqa: E731
    else:
        made = lambda C: regression_problem(X, t, C, 0.1, "squared_hinge", "free")  # noqa: E731
    facts = rules.Facts.of(made(1.0), 1e-4)
    border = times * n / m * np.sqrt(n**3 / X.nnz)
    assert facts._replace(kappa=0.99 * border).descends
    assert not facts._replace(kappa=1.01 * border).descends


@pytest.mark.parametrize(
    ("m", "loss", "kind", "border"),
    [
        (1000, "hinge", "classes", 12_000.0),
        (1000, "hinge", "targets", 12_000.0),
        (20_000, "hinge", "classes", 1.5),
        (20_000, "hinge", "targets", 1.5),
        (7900, "squared_hinge", "classes", 20_000.0),
        (8100, "squared_hinge", "classes", 22.58),
        (2000, "squared_hinge", "targets", 20_000.0),
        (4000, "squared_hinge", "targets", 2.0),
    ],
)
def test_wide_sparse_rows(m, loss, kind, border):
    """They are descended also where kappa is large, if they are few."""
    forms = loss == "hinge", kind == "classes", True, 1e-4
    places = m if kind == "classes" else 2 * m
    facts = rules.Facts(places, m, 2000, 0.001, 1.0, *forms)
    assert facts._replace(kappa=0.999 * border).descends
    assert not facts._replace(kappa=1.001 * border).descends


def text(m, n, noise, seed=0):
    """Rows of 20 words, and the signs of a linear function with noise."""
    rng = np.random.default_rng(seed)
    words = (n * rng.random((m, 20)) ** 2).astype(int)
    rows = np.repeat(np.arange(m), 20)
    X = sparse.csr_matrix((np.ones(20 * m), (rows, words.ravel())), shape=(m, n))
    X.sum_duplicates()
    t = X @ rng.normal(size=n)
    return X, np.sign(t / t.std() - 0.8 + noise * rng.normal(size=m))


@pytest.mark.parametrize(
    ("loss", "newton"), [("hinge", "interior_point"), ("squared_hinge", "active_set")]
)
@pytest.mark.parametrize(("noise", "stands"), [(0.0, True), (1.0, False)])
def test_descent_is_tried_where_few_rows_may_be_near_the_margin(
    loss, newton, noise, stands
):
    X, y = text(3000, 700, noise)
    problem = Problem(X, y, 1.0, loss, "penalized")
    facts = rules.Facts.of(problem, 1e-4)
    problem = Problem(X, y, 10.0 * facts.border / problem.kappa, loss, "penalized")
    facts = rules.Facts.of(problem, 1e-4)
    assert facts.is_tried
    assert not facts.descends
    assert "coordinate descent is tried" in auto.choose(problem).reason
    solution = solve(problem)
    expected = "coordinate_descent" if stands else newton
    assert (solution.status, solution.solver) == ("solved", expected)
    visits = [step.details.get("updates", 0.0) for step in solution.trace]
    assert (max(visits) >= 2.0 * rules.TRIAL) == stands

    beyond = facts._replace(kappa=1.01 * rules.TRIED * facts.border)
    assert beyond.is_tried == (loss != "hinge")  # whose trials are short
    if loss == "hinge":
        assert rules.solver_for(beyond).solver.name == newton
    for others in ({"is_class": False}, {"is_in_memory": False}):
        assert not facts._replace(**others).is_tried


def test_a_trial_ends_by_the_rows_and_the_visits_that_are_left():
    facts = rules.Facts(4000, 4000, 1000, 0.01, 0.0, False, True, True, 1e-4)
    facts = facts._replace(kappa=32.0 * facts.border)  # half of the rows may be left
    soon = facts.factor_cost / 2.0  # the root of 4 rows a column
    assert soon > rules.TRIAL

    def ends(*steps):
        """Whether the last of some steps (visits, active, left) ends descent."""
        enough = rules.solver_for(facts).reserves[0].enough
        for visits, active, left in steps:
            step = Step(1, 1.0, 0.0, 0.0, active)
            step.details = {"updates": visits, "left": left}
            found = enough(step)
        return found

    assert not ends((rules.TRIAL - 1.0, 2100, 0.0))
    assert ends((rules.TRIAL, 2100, 0.0))
    assert not ends((rules.TRIAL, 1900, 0.0))
    assert not ends((rules.TRIAL, 1900, 0.0), (rules.TRIAL + 4.0, 4000, 0.0))
    assert not ends((rules.TRIAL, 2100, soon - rules.TRIAL))
    assert ends((rules.TRIAL, 2100, soon - rules.TRIAL + 0.1))
    assert ends((rules.TRIAL, 1900, 0.0), (facts.visits, 1, 0.0))


def test_a_trial_is_not_longer_than_newtons_method():
    """With the squared loss: where a factor costs much beside a visit of all rows."""
    facts = rules.Facts(8000, 8000, 1000, 0.03, 50.0, False, True, True, 1e-4)
    assert facts.is_tried
    for others in ({"density": 0.9}, {"n": 300}, {"n": 1600}):
        changed = facts._replace(**others)
        changed = changed._replace(kappa=2.0 * changed.border)
        assert not changed.is_tried, others


def test_an_interior_point_starts_as_far_from_the_end_as_its_start_is():
    """After descent that has proved nothing it starts as if there were no start."""
    X, y = text(3000, 700, 1.0)
    problem = Problem(X, y, 20.0, "hinge", "penalized")
    first = solve(problem, "interior_point", tol=1e-4)

    def after(gap):
        start = Start(np.zeros(problem.order), np.zeros(3000), gap=gap)
        steps = InteriorPoint().iterate(problem, start, 1e-4)
        return next(steps).details["mu"]

    assert after(1.0) == pytest.approx(first.trace[0].details["mu"])
    assert after(0.3) == pytest.approx(0.4 * after(1.0))
    assert after(0.0) == pytest.approx(after(0.1))


def test_descent_gives_up_where_many_visits_are_left():
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, size=(1000, 40)) - 1, 2999)
    rows = np.repeat(np.arange(1000), 40)
    X = sparse.csr_matrix((np.ones(40_000), (rows, words.ravel())), shape=(1000, 3000))
    t = X @ rng.normal(size=3000)
    hard = regression_problem(X, t / t.std(), 1.0, 0.1, "squared_hinge", "penalized")
    solution = solve(hard, tol=1e-6)
    assert (solution.status, solution.solver) == ("solved", "active_set")
    spent = [step.details.get("updates", 0.0) for step in solution.trace]
    assert 0.0 < max(spent) < rules.SQUARED_UPDATES


@pytest.mark.parametrize(
    ("m", "n", "share", "kind", "descends"),
    [
        (600, 150, 0.9, "classes", True),
        (600, 150, 1.1, "classes", False),
        (600, 150, 0.9, "targets", True),  # of twice as many rows
        (600, 150, 1.1, "targets", False),
        (5_000, 150, 0.9, "classes", True),
        (600, 100, 0.1, "classes", False),
    ],
)
def test_dense_rows_of_more_than_a_hundred_columns(m, n, share, kind, descends):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    t = np.where(np.arange(m) % 2, 1.0, -1.0)

    def made(C):
        if kind == "classes":
            return Problem(X, t, C, "squared_hinge", "free")
        return regression_problem(X, t, C, 0.1, "squared_hinge", "free")

    copies = 1 if kind == "classes" else 2
    problem = made(share * 2.0 * n * n / (copies * m) / made(1.0).kappa)
    choice = auto.choose(problem)
    assert (choice.solver.name == "coordinate_descent") == descends
    if descends:
        enough, left = choice.reserves[0].enough, 0.1 * n
        here = Step(0, 1.0, 0.0, 0.0, m, {"updates": 0.05 * n, "left": left})
        assert not enough(here)
        here.details["updates"] = 0.11 * n
        assert enough(here)


def test_many_columns_and_very_many_rows_descend_up_to_kappa_1():
    facts = rules.Facts.of(random_problem(50, 10, 1.0, "squared_hinge"), 1e-4)
    many = facts._replace(m=10**6, samples=10**6, n=600)
    assert many._replace(kappa=0.9).descends
    assert not many._replace(kappa=1.1).descends
    assert not many._replace(kappa=0.9, n=500).descends


def heavy_tails(m, n):
    """Columns of heavy tails, and a target that is linear in them, without noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(m, n))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    t = X @ rng.normal(size=n)
    return X, t / t.std()


@pytest.mark.parametrize(
    ("loss", "constant", "solver"),
    [
        ("squared_epsilon_insensitive", "LEAST_SQUARED_SWEEPS", "active_set"),
        ("epsilon_insensitive", "LEAST_SWEEPS", "augmented_lagrangian"),
    ],
)
def test_an_interior_point_goes_on_where_newtons_method_is_far_off(
    loss, constant, solver, monkeypatch
):
    X, t = heavy_tails(700, 270)
    machine = LinearSVR(C=1000.0, epsilon=0.1, loss=loss)
    found = machine.fit(X, t).solution_
    assert (found.status, found.solver) == ("solved", "interior_point")
    assert found.reason.startswith(f"after {solver} got no further")
    assert found.trace[-1].sweeps < 200
    monkeypatch.setattr(rules, constant, np.inf)
    assert machine.fit(X, t).solution_.trace[-1].sweeps > 400


def test_newtons_method_that_is_near_goes_on():
    problem = random_problem(2000, 300, 10.0, "squared_hinge")
    facts = rules.Facts.of(problem, 1e-4)
    inside = auto.choose(problem).reserves[-1]
    enough = inside.enough
    assert inside.solver.name == "interior_point"
    far, near = (Step(9, 1.0, dual, 0.0, 2000) for dual in (-0.1, 0.1))
    for sweeps, done in ((44, False), (45, True)):
        far.sweeps = near.sweeps = sweeps
        assert (enough(far), enough(near)) == (done, False)
    near.sweeps = 10_000
    assert not enough(near)
    sparse_rows = facts._replace(density=0.1)
    far.sweeps = 10_000
    for others in (sparse_rows, facts._replace(samples=1600, n=1600)):
        assert not rules.newton_for(others).reserves[-1].enough(far)
    bounded = rules.newton_for(facts._replace(is_bounded=True)).reserves
    names = [one.solver.name for one in bounded[-2:]]
    assert names == ["interior_point", "augmented_lagrangian"]


def test_kappa_is_that_of_the_rows():
    problem = random_problem(400, 7, 0.3)
    X = problem.rows.take(np.arange(400))
    expected = 0.3 * np.mean(np.sum(X * X, axis=1) + 1.0)
    assert problem.kappa == pytest.approx(expected, rel=1e-12)


def test_rows_out_of_memory_are_not_descended():
    class Double:
        rank = 10

        def map(self, block):
            return 2.0 * block

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    rows = as_rows(X).mapped(Double())
    problem = Problem(rows, np.sign(X[:, 0]), 1e-3, intercept="penalized")
    assert auto.choose(problem).solver.name == "augmented_lagrangian"


def test_a_start_without_dual_variables_is_refused():
    problem = random_problem(300, 10, 0.1)
    with pytest.raises(TypeError, match="a Solution or a tuple"):
        solve(problem, start=(None, np.zeros(10), 0.0))


def test_the_seed_reaches_the_solver():
    problem = random_problem(300, 10, 0.1)
    assert auto.choose(problem, random_state=7).solver.random_state == 7


# -- reserves --------------------------------------------------------------------------


def hard():
    """Coordinate descent needs thousands of epochs here."""
    X, y = PROBLEMS["ndc"]()
    return Problem(X, y, 1e3, intercept="penalized")


def after(updates):
    return lambda step: step.details["updates"] >= updates


def test_a_reserve_goes_on_where_the_first_has_had_enough():
    problem = hard()
    choice = ChosenSolver(
        CoordinateDescent(), "because", (Reserve(AugmentedLagrangian(), after(20)),)
    )
    solution = run(problem, choice, Limits(tol=1e-8))
    assert (solution.status, solution.solver) == ("solved", "augmented_lagrangian")
    assert solution.reason == ("after coordinate_descent got no further (because)")
    numbers = solution.trace.column("iteration")
    assert np.all(np.diff(numbers) >= 0)
    assert np.all(np.diff(solution.trace.column("best_dual")) >= 0.0)
    updates = solution.trace.column("updates")
    penalty = solution.trace.column("penalty")
    assert np.nanmax(updates) < 100.0
    assert np.isnan(penalty[0])
    assert not np.isnan(penalty[-1])


def test_reserves_follow_each_other():
    choice = ChosenSolver(
        CoordinateDescent(),
        "because",
        (
            Reserve(AugmentedLagrangian(), after(5)),
            Reserve(InteriorPoint(), lambda step: step.iteration > 0 and True),
        ),
    )
    solution = run(hard(), choice, Limits(tol=1e-8))
    assert (solution.status, solution.solver) == ("solved", "interior_point")
    assert solution.reason.count("got no further") == 2


def test_a_reserve_replaces_a_solver_that_breaks_down():
    class Broken(AugmentedLagrangian):
        name = "broken"

        def iterate(self, problem, start, tol):
            yield from ()
            raise FloatingPointError

    choice = ChosenSolver(
        Broken(), "because", (Reserve(InteriorPoint(), lambda step: False),)
    )
    solution = run(hard(), choice, Limits(tol=1e-6))
    assert (solution.status, solution.solver) == ("solved", "interior_point")


def test_limits_count_for_all_solvers_together():
    reserves = (Reserve(InteriorPoint(), after(5)),)
    choice = ChosenSolver(CoordinateDescent(), "because", reserves)
    solution = run(hard(), choice, Limits(tol=1e-10, max_iter=12))
    assert solution.status == "max_iter"
    assert solution.solver == "interior_point"
    assert solution.trace[-1].iteration == 12


def test_a_resumed_run_says_which_solver_got_no_further(tmp_path):
    reserves = (Reserve(InteriorPoint(), after(5)),)
    choice = ChosenSolver(CoordinateDescent(), "because", reserves)

    def run_to(tol, max_iter):
        saved = Checkpoint.of(tmp_path / "run.checkpoint", "solve")
        return run(hard(), choice, Limits(tol, max_iter, checkpoint=saved))

    first, last = run_to(1e-10, 12), run_to(1e-8, None)
    assert (first.status, last.status) == ("max_iter", "solved")
    assert first.solver == last.solver == "interior_point"
    assert first.reason == "after coordinate_descent got no further (because)"
    assert last.reason == f"{first.reason} (resumed at iteration 12)"


def test_a_user_who_asks_for_a_solver_gets_no_other():
    problem = hard()
    solution = solve(problem, CoordinateDescent(), max_iter=5, tol=1e-8)
    assert (solution.status, solution.solver) == ("max_iter", "coordinate_descent")


def test_linear_svc_says_why():
    X, y = PROBLEMS["breast_cancer"]()
    options = {"loss": "hinge", "intercept": "penalized", "tol": 1e-8}
    options["max_iter"] = 10_000  # not at once, with other problems
    clf = LinearSVC(C=1e-3, **options).fit(X, y)
    assert clf.solution_.solver == "coordinate_descent"
    assert "mean C times mean |x|^2 = 0.031, at most" in clf.solution_.reason


@pytest.mark.parametrize(
    ("m", "n", "is_class", "solver"),
    [
        (3_000, 1_000, False, "interior_point"),
        (3_000, 1_000, True, "interior_point"),
        (1_500, 1_000, False, "interior_point"),
        (1_500, 1_000, True, "augmented_lagrangian"),
        (21_000, 1_000, False, "augmented_lagrangian"),
        (3_000, 1_600, False, "augmented_lagrangian"),
        (1_000, 256, False, "augmented_lagrangian"),
    ],
)
def test_sparse_rows_of_some_hundred_columns_go_inside(m, n, is_class, solver):
    places = m if is_class else 2 * m
    facts = rules.Facts(places, m, n, 0.01, 1e9, True, is_class, True, 1e-4)
    assert not facts.descends
    assert rules.solver_for(facts).solver.name == solver


@pytest.mark.parametrize("is_class", [False, True])
def test_a_rough_gap_is_descended_to_where_a_small_one_is_not(is_class):
    """There the border of kappa is the root of n^3 / stored and that of tol."""

    def descends(kappa, tol, n=1_000):
        places = 3 * n if is_class else 6 * n
        forms = True, is_class, True
        facts = rules.Facts(places, 3 * n, n, 10.0 / n, kappa, *forms, tol)
        return facts.descends

    times = rules.INSIDE_CLASSES if is_class else rules.INSIDE_TARGETS
    border = times * (1e9 / 3e4) ** 0.5 * 1e-4**0.25
    assert descends(0.99 * border, 1e-4)
    assert not descends(1.01 * border, 1e-4)
    assert descends(5.6 * border, 0.1)
    assert not descends(5.7 * border, 0.1)
    assert not descends(0.99 * border, 1e-4, n=990)


def test_the_gap_that_is_asked_for_reaches_the_rules():
    rng = np.random.default_rng(0)
    X = sparse.random_array((900, 400), density=0.025, rng=rng, format="csr")
    X.data[:] = 1.0
    t = X @ rng.normal(size=400)
    problem = regression_problem(X, t, 4.0, 0.1, "hinge", "penalized")
    found = [solve(problem, tol=tol) for tol in (0.1, 1e-4)]
    assert [one.solver for one in found] == ["coordinate_descent", "interior_point"]
    machine = LinearSVR(C=4.0, epsilon=0.1, intercept="penalized", tol=0.1).fit(X, t)
    assert (machine.solution_.solver, machine.status_) == ("batch", "solved")
    machine.set_params(tol=1e-4).fit(X, t)
    assert machine.solution_.solver == "interior_point"

    # Where a factor costs much descent has more visits before it gives up.
    facts = rules.Facts.of(problem, 0.1)
    assert facts.visits == pytest.approx(15.0 * (400**3 / X.nnz) ** 0.5)
    assert facts.visits > facts.least_visits == rules.MOST_UPDATES
    facts = facts._replace(is_bounded=False)
    assert facts.visits == pytest.approx(10.0 * (400**3 / X.nnz / 2.25) ** 0.5)
    assert facts._replace(n=1600).visits == facts._replace(n=1600).least_visits
