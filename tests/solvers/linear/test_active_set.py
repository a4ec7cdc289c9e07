"""The active set: finite Newton, and Algorithm 3.1 as published."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.problems import PROBLEMS
from widemargin import LinearSVC, Problem, as_rows, make_ndc, solve
from widemargin.solvers import ActiveSet, InteriorPoint
from widemargin.solvers.linear import active_set, published_asvm
from widemargin.solvers.linear import newton as penalty
from widemargin.solvers.linear.published_asvm import PublishedASVM

NDC = make_ndc(5000, 32, 0)


def problem_of(name, nu, intercept="penalized"):
    X, y = NDC if name == "ndc-raw" else PROBLEMS[name]()
    return Problem(X, y, 0.5 * nu, "squared_hinge", intercept)


@pytest.mark.cover(1)
@pytest.mark.parametrize("nu", [1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize(
    "name", ["ellipse", "breast_cancer", "breast_cancer_raw", "digits", "ndc-raw"]
)
def test_both_modes_agree_with_another_method(name, nu):
    """Section 11 of the specification: objectives to 1e-9, gaps that are none below."""
    interior = solve(problem_of(name, nu), InteriorPoint(), tol=1e-9)
    for mode in ("newton", "asvm"):
        solution = solve(problem_of(name, nu), ActiveSet(mode=mode), tol=1e-10)
        assert solution.status == "solved", (mode, solution.message)
        certificate = solution.certificate
        assert certificate.primal <= interior.certificate.primal * (1.0 + 1e-11)
        assert certificate.primal == pytest.approx(interior.certificate.primal, 2e-9)
        gaps = solution.trace.column("primal") - solution.trace.column("dual")
        assert np.all(gaps >= -1e-12 * solution.trace.column("primal"))


@pytest.mark.parametrize("promises", ["nothing", "what it may", "too much"])
def test_promises_of_a_step_decide_sweeps_but_never_what_is_proved(
    promises, monkeypatch
):
    expected, unseen = active_set.expected, 0
    if promises == "nothing":
        monkeypatch.setattr(active_set, "SURE", 0.0)
    if promises == "too much":
        monkeypatch.setattr(active_set, "SURE", 1e9)
        monkeypatch.setattr(
            active_set,
            "expected",
            lambda point, dv, gap: expected(point, dv, 0.0),
        )
    for tol in (1e-2, 1e-5, 1e-9):
        problem = problem_of("ndc-raw", 1.0)
        solution = solve(problem, ActiveSet(), tol=tol)
        assert solution.status == "solved"
        answer = problem.certify(solution.alpha, solution.w, solution.b)
        assert answer.gap <= tol * answer.primal
        looks = {step.sweeps for step in solution.trace}
        unseen += len(solution.trace) - len(looks)
    assert (unseen > 0) == (promises != "nothing")


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_one_sweep_a_step(intercept, monkeypatch):
    """Where the step is too long, the line search takes another one.

    A step that is certified at once takes none of its own.
    """
    searches, search = [], penalty.Piece._search

    def counted(self, *args):
        searches.append(1)
        return search(self, *args)

    monkeypatch.setattr(penalty.Piece, "_search", counted)
    for name, nu in [("breast_cancer", 1e4), ("digits", 1e4), ("ndc-raw", 1.0)]:
        searches.clear()
        solution = solve(problem_of(name, nu, intercept), ActiveSet(), tol=1e-9)
        looked_at = len({step.sweeps for step in solution.trace})
        assert looked_at >= len(solution.trace) - 1
        assert solution.status == "solved"
        assert solution.trace[-1].sweeps == looked_at + len(searches)
    assert not searches  # NDC needs none


def test_few_steps_for_raw_ndc():
    X, y = make_ndc(100_000, 32, 0)
    for start, most in (("sample", 6), (None, 9)):
        solution = solve(
            Problem(X, y, 0.005, "squared_hinge"), ActiveSet(begin_with=start), tol=1e-8
        )
        assert solution.status == "solved"
        # Rows 0..100,000; those of the sample are steps too, but no sweeps.
        assert solution.trace[-1].sweeps <= most
        assert (solution.trace[0].details["rows"] < 100_000) == (start == "sample")
        assert np.nansum(solution.trace.column("unseen")) == (start == "sample")


@pytest.mark.parametrize("kind", ["dense", "csr", "many columns"])
def test_the_matrix_of_the_rows_that_changed_is_that_of_all(kind, monkeypatch):
    X, y = PROBLEMS["digits"]()
    X = sparse.csr_array(X) if kind == "csr" else X
    if kind == "many columns":
        monkeypatch.setattr(penalty, "EAGER_ORDER", 0)
    found = []
    for share in (0.0, 0.7):
        monkeypatch.setattr(penalty, "CHANGED_SHARE", share)
        problem = Problem(X, y, 50.0, "squared_hinge")
        found.append(solve(problem, ActiveSet(), tol=1e-10))
    scale = np.abs(found[0].w).max()
    np.testing.assert_allclose(found[0].w, found[1].w, atol=1e-6 * scale)
    assert [s.status for s in found] == ["solved", "solved"]


@pytest.mark.parametrize("mode", ["newton", "asvm"])
def test_weights_are_repeated_rows(mode):
    X, y = PROBLEMS["noise"]()
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = Problem(X, y, 0.3 * times, "squared_hinge")
    repeated = Problem(
        np.repeat(X, times, axis=0), np.repeat(y, times), 0.3, "squared_hinge"
    )
    a, b = (solve(p, ActiveSet(mode=mode), tol=1e-10) for p in (weighted, repeated))
    assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-10)
    np.testing.assert_allclose(a.w, b.w, atol=1e-7)
    assert np.all(a.alpha[times == 0] == 0.0)


@pytest.mark.parametrize("order", [20, 200])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_more_columns_than_a_matrix_may_have(order, intercept, monkeypatch):
    """Through a matrix of the active rows, or conjugate gradients where they are many."""
    monkeypatch.setattr(penalty, "DENSE_ORDER", order)
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 500), density=0.05, rng=rng, format="csr")
    y = np.sign(np.asarray(X.sum(axis=1)).ravel() - 12.5)
    problem = Problem(X, y, 5.0, "squared_hinge", intercept)
    solution = solve(problem, ActiveSet(), tol=1e-8)
    other = solve(problem, InteriorPoint(), tol=1e-9)
    assert solution.status == "solved"
    assert solution.certificate.primal == pytest.approx(other.certificate.primal, 1e-8)


def test_a_path_of_C_takes_fewer_steps_from_the_last_answer():
    X, y = make_ndc(20_000, 16, 3)
    start, cold, warm = None, 0, 0
    for C in 10.0 ** np.arange(-4, 4):
        problem = Problem(X, y, C, "squared_hinge")
        alone = solve(problem, ActiveSet(), tol=1e-8)
        start = solve(problem, ActiveSet(), tol=1e-8, start=start)
        assert start.status == alone.status == "solved"
        cold, warm = cold + len(alone.trace), warm + len(start.trace)
    assert warm < 0.75 * cold


def test_results_do_not_depend_on_blocks_and_threads():
    X, y = make_ndc(30_000, 8, 1)
    found = []
    for options in ({}, {"memory_limit": 100_000}, {"n_jobs": 1}, {"n_jobs": 4}):
        rows = as_rows(X, **options)
        problem = Problem(rows, y, 1.0, "squared_hinge")
        found.append(solve(problem, ActiveSet(begin_with=None), tol=1e-9))
    for other in found[1:]:
        np.testing.assert_allclose(other.w, found[0].w, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(found[2].w, found[3].w)


# -- as published ----------------------------------------------------------------------


def test_short_form_on_overlapping_data_is_the_papers():
    """Steps (0)-(3) alone, a sweep each and one for the first face."""
    solution = solve(problem_of("ndc-raw", 0.01), ActiveSet(mode="asvm"), tol=1e-9)
    assert solution.status == "solved"
    assert np.all(solution.trace.column("safeguards") == 0)
    assert len(solution.trace) <= 8
    assert solution.trace[-1].sweeps == len(solution.trace) + 1
    assert np.all(np.diff(solution.trace.column("active")) < 0)  # rows only leave


def test_safeguards_bring_back_rows():
    solution = solve(problem_of("digits", 1e2), ActiveSet(mode="asvm"), tol=1e-9)
    assert solution.status == "solved"
    safeguards = solution.trace.column("safeguards")
    assert 0 < safeguards[-1] < ActiveSet.max_safeguards
    assert np.any(np.diff(solution.trace.column("active")) > 0)


@pytest.mark.parametrize("most", [0, 5])
def test_it_falls_through_where_safeguards_do_not_end(most):
    solver = ActiveSet(mode="asvm", max_safeguards=most)
    solution = solve(problem_of("digits", 1e4), solver, tol=1e-8)
    assert solution.status == "solved"
    safeguards = solution.trace.column("safeguards")
    assert np.nanmax(safeguards) == most  # then Newton's method, which has none
    assert np.isnan(safeguards[-1])


@pytest.mark.parametrize(
    ("name", "nu"), [("breast_cancer", 1e4), ("digits", 1e4), ("digits", 1e6)]
)
def test_it_ends_by_itself_beyond_fifty_safeguards(name, nu):
    """The finite termination of the paper, on a face that is the answer's."""
    solver = ActiveSet(mode="asvm", max_safeguards=10_000)
    solution = solve(problem_of(name, nu), solver, tol=1e-8, max_iter=10_000)
    assert solution.status == "solved"
    safeguards = solution.trace.column("safeguards")
    assert 50 < safeguards[-1] < 1000  # not NaN, so Newton's method was not called


def test_f_falls_at_every_step_that_is_taken():
    problem = problem_of("breast_cancer", 1e2)
    method = PublishedASVM(problem, 50)
    values = []
    for _ in method.steps(iter(range(1000))):
        values.append(method._value)
        u = np.asarray(method._state.u)
        assert np.all(u >= 0.0)
        if np.isfinite(method._value):
            A = problem.A.take(np.arange(len(u)))
            g = A.T @ u
            f = 0.5 * g @ g + np.sum(u * u / (4.0 * problem.C)) - u.sum()
            assert method._value == pytest.approx(f, rel=1e-9)
            np.testing.assert_allclose(method._g, g, atol=1e-8 * np.abs(g).max())
    finite = np.array(values[1:])
    assert np.all(np.diff(finite) <= 1e-12 * np.abs(finite[1:]))


def test_gradients_go_on_from_where_the_last_one_ended(monkeypatch):
    """(4b) until f is below a goal, here one that the first gradient does not reach."""
    problem, goal = problem_of("digits", 1.0), -0.2

    def projected():
        method = PublishedASVM(problem, 50)
        method._state.sweep(_at_zero)
        method._value = goal
        return method, method._project()

    with monkeypatch.context() as only_one:
        only_one.setattr(published_asvm, "MOST_PROJECTIONS", 1)
        method, reached = projected()
    assert not reached
    assert goal < method._value < 0.0
    method, reached = projected()  # by as many as the library allows
    assert reached
    u = np.asarray(method._state.u)
    assert np.all(u >= 0.0)
    g = problem.A.sweep(_product, method._state)
    f = 0.5 * g @ g + np.sum(u * u / (4.0 * problem.C)) - u.sum()
    assert f == pytest.approx(method._value, rel=1e-9)
    assert f < goal


def _at_zero(part):
    part.u = np.zeros_like(part.u)


def _product(block, part):
    return block.T @ part.u


# -- what is refused -------------------------------------------------------------------


def test_what_it_does_not_solve():
    X, y = PROBLEMS["noise"]()
    with pytest.raises(
        ValueError, match="ActiveSet solves the squared hinge loss only"
    ):
        solve(Problem(X, y), "active_set")
    with pytest.raises(ValueError, match="has no free intercept .* mode='newton'"):
        solve(Problem(X, y, 1.0, "squared_hinge", "free"), ActiveSet(mode="asvm"))
    with pytest.raises(
        ValueError, match="'mode' parameter of ActiveSet must be one of"
    ):
        ActiveSet(mode="oops")
    with pytest.raises(ValueError, match="'max_safeguards' parameter of ActiveSet"):
        ActiveSet(max_safeguards=-1)
    with pytest.raises(ValueError, match="must be 50 with mode='newton'.* Got 3 "):
        ActiveSet(max_safeguards=3)
    with pytest.raises(
        ValueError, match="'begin_with' parameter of ActiveSet must be one"
    ):
        ActiveSet(begin_with="oops")


def test_estimator_chooses_it():
    X, y = make_ndc(3000, 5, 0)
    # Without a limit small problems are solved all at once.
    model = LinearSVC(loss="squared_hinge", max_iter=100).fit(X, y)
    assert (model.solution_.solver, model.status_) == ("active_set", "solved")
    assert "active rows" in model.solution_.reason


def test_a_sample_of_one_class_is_none(monkeypatch):
    monkeypatch.setattr(active_set, "SAMPLE_ROWS", 1)
    monkeypatch.setattr(active_set, "SAMPLE_PER_COLUMN", 1)
    X, y = PROBLEMS["imbalanced"]()
    solution = solve(Problem(X, y, 1.0, "squared_hinge"), ActiveSet(), tol=1e-8)
    assert solution.status == "solved"


def test_a_fit_of_many_rows_reads_them_five_times():
    """Moments, three steps from the answer for a sample, the certificate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(51_000, 4))
    rows = as_rows(X)
    y = np.where(X @ [1.0, 1.0, -1.0, 0.5] + rng.normal(size=len(X)) > 0, 1, -1)
    LinearSVC(C=0.01, tol=1e-6).fit(rows, y)
    assert rows.sweeps <= 5
