"""Solutions in notebooks: pictures, tables and frames."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.cases.report_pages import clouds
from widemargin import SVC, LinearSVC, Problem, as_rows, solve


@pytest.fixture(scope="module")
def solution():
    return SVC(tol=1e-6, max_iter=1000).fit(*clouds(2, 3, 100, spread=3.0)).solution_


def test_the_picture_ends_at_the_certificate(solution):
    axes = Figure().subplots()
    assert solution.plot(axes) is axes
    drawn = {line.get_label(): line for line in axes.lines}
    assert {"relative gap", "primal", "dual", "certificate"} <= set(drawn)
    end = drawn["certificate"].get_xydata()[-1]
    assert tuple(end) == (solution.seconds, solution.certificate.relative_gap)
    assert axes.get_yscale() == "log"


def test_a_picture_of_two_points_says_so_and_joins_none():
    solution = SVC().fit(*clouds(2, 3, 100, spread=3.0)).solution_
    axes = solution.plot(Figure().subplots())
    assert "first and its last point only" in axes.texts[-1].get_text()
    drawn = {line.get_label(): line for line in axes.lines}
    assert drawn["relative gap"].get_linestyle() == "None"
    assert not drawn["primal"].get_clip_on()


def test_without_axes_there_is_a_figure(solution):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = solution.plot()
    assert axes.figure.number in pyplot.get_fignums()
    pyplot.close(axes.figure)


def test_drawing_is_not_imported_before_it_is_asked_for():
    code = "import sys; from widemargin.solution import Solution; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_the_trace_is_a_frame(solution):
    frame = solution.trace.to_frame()
    assert len(frame) == len(solution.trace)
    for name in ("iteration", "primal", "best_gap", *solution.trace[-1].details):
        np.testing.assert_array_equal(frame[name], solution.trace.column(name))


def test_a_prompt_shows_one_line():
    X, y = clouds(2, 3, 100, spread=3.0)
    problem = Problem(X, 2 * y - 1, C=0.5)
    found = solve(problem)
    gap = found.certificate.relative_gap
    assert repr(found).startswith(f"<Solution: solved, relative gap {gap:.1e}, ")
    m, n = X.shape
    loss = "loss='hinge', intercept='free'"
    assert repr(problem) == f"LinearProblem(shape=({m}, {n}), {loss})"
    assert repr(as_rows(X)) == f"MemoryRows(shape=({m}, {n}), dtype='float64')"
    for one in (found, problem, as_rows(X)):
        assert len(repr(one)) < 100


def test_a_notebook_shows_the_certificate(solution):
    page = solution._repr_html_()
    assert f"<td>{solution.certificate.relative_gap:.1e}</td>" in page
    assert page.count("<tr>") == page.count("</tr>") == 7
    assert "<p>Solved to" in page


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_notebook_says_what_helps():
    X, y = clouds(2, 3, 100, spread=3.0)
    stopped = LinearSVC(loss="hinge", max_iter=1, tol=1e-9).fit(X, y).solution_
    assert "Raise max_iter" in stopped._repr_html_()


@pytest.fixture(scope="module")
def several():
    return LinearSVC().fit(*clouds(3, 3, 20, spread=3.0))


def test_a_fit_of_several_problems_prints_all_of_them(several):
    certificates = [s.certificate for s in several.solutions_]
    worst = max(c.relative_gap for c in certificates)
    words = str(several.solution_)
    assert words.startswith(
        f"Solved 3 problems to relative gaps of at most {worst:.1e}"
    )
    assert f"total primal {sum(c.primal for c in certificates):.10g}" in words
    page = several.solution_._repr_html_()
    assert "3 solved" in page
    assert f"<td>{worst:.1e}</td>" in page
    assert "3 problems" not in str(several.solutions_[0])


def test_a_picture_of_one_of_several_problems_says_so(several):
    axes = several.solution_.plot(Figure().subplots())
    assert axes.get_title("left").endswith(" (problem 1 of 3; solutions_ has all)")
    axes = several.solutions_[1].plot(Figure().subplots())
    assert "problem" not in axes.get_title("left")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_problems_that_were_stopped_are_counted():
    X, y = clouds(3, 3, 20, spread=3.0)
    stopped = LinearSVC(loss="hinge", max_iter=5, tol=1e-12).fit(X, y).solution_
    assert str(stopped).startswith("Stopped (3 max_iter) at relative gaps of at most ")
    assert "Raise max_iter" in stopped._repr_html_()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_problems_of_which_nothing_was_proved_are_counted_without_a_gap():
    """It said "relative gaps of at most 9e+05"; a single problem has words for that."""
    X, y = clouds(3, 3, 20, spread=3.0)
    machine = LinearSVC(loss="hinge", max_iter=1, tol=1e-12).fit(X, y)
    gaps = [s.certificate.relative_gap for s in machine.solutions_]
    count = sum(gap >= 1.0 for gap in gaps)
    assert count > 0
    words = (
        f"before anything useful was proved of {count} of 3 problems (asked: relativ"
    )
    assert str(machine.solution_).startswith(f"Stopped (3 max_iter) {words}")
    assert "relative gaps of at most" not in str(machine.solution_)
    one = machine.solutions_[int(np.argmax(gaps))]
    assert "before anything useful was proved (asked: a relative" in str(one)
    older = {k: v for k, v in machine.solution_.together.items() if k != "unproved"}
    assert "at relative gaps of at most" in str(
        dataclasses.replace(machine.solution_, together=older)
    )


def test_of_reasons_that_differ_is_said_what_they_share(monkeypatch):
    monkeypatch.setattr(
        "widemargin.estimators.linear_choice.MOST_LINEAR", 0
    )  # one by one
    X, y = clouds(3, 3, 20, spread=3.0)
    pairs = LinearSVC(multi_class="ovo").fit(X[:-1], y[:-1])  # 40 rows, or 39
    assert " s by batch, because the problem is small.\n" in str(pairs.solution_)
    assert "batch, because" in str(pairs.solutions_[0])


def test_a_sum_with_an_infinite_objective_is_none(several):
    together = {**several.solution_.together, "primal": float("inf")}
    endless = dataclasses.replace(several.solution_, together=together)
    assert "total primal none  total dual " in str(endless)


def test_a_long_trace_is_cut_in_a_notebook(solution):
    trace = type(solution.trace)(solution.trace[-1:] * 50)
    page = trace._repr_html_()
    assert page.count("<tr>") == 11
    assert "50 steps" in page
