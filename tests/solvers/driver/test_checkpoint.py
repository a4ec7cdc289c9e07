"""Runs that are killed, stopped or interrupted, and go on."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from tests.cases.problems import PROBLEMS
from tests.cases.waits import HANGS
from widemargin import Checkpoint, Kernel, Problem, open_rows, solve
from widemargin.solution import Certificate
from widemargin.solvers import (
    IRWLS,
    ActiveSet,
    AugmentedLagrangian,
    CoordinateDescent,
    InteriorPoint,
)
from widemargin.solvers.driver import limits
from widemargin.solvers.driver.best import Best
from widemargin.solvers.driver.checkpoint import Saver

RUNS = {
    "interior_point": (InteriorPoint(), "hinge", "free"),
    "interior_point-squared": (InteriorPoint(), "squared_hinge", "free"),
    "augmented_lagrangian": (AugmentedLagrangian(), "hinge", "free"),
    "band-less": (AugmentedLagrangian(reduction=None), "hinge", "penalized"),
    "active_set": (ActiveSet(), "squared_hinge", "penalized"),
    "asvm": (ActiveSet(mode="asvm"), "squared_hinge", "penalized"),
    "coordinate_descent": (CoordinateDescent(random_state=0), "hinge", "none"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_pieces_ends_at_the_same_answer(name, tmp_path):
    solver, loss, intercept = RUNS[name]
    X, y = PROBLEMS["breast_cancer"]()
    # Equal rows and a far mean: what the solver sees is another, equivalent problem.
    X, y = np.repeat(X, 25, axis=0) + 100.0 * (intercept == "free"), np.repeat(y, 25)

    def problem():
        return Problem(X, y, 0.1, loss, intercept)

    path = tmp_path / "run.checkpoint"
    whole = solve(problem(), solver, tol=1e-7)
    pieces, last = [], None
    for _ in range(60):
        start = 0 if last is None else last.trace[-1].iteration
        last = solve(problem(), solver, tol=1e-7, max_iter=start + 3, checkpoint=path)
        pieces.append(last)
        if last.status == "solved":
            break
        assert path.exists()
    assert last.status == "solved"
    assert not path.exists()
    assert last.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-7)
    gaps = [piece.trace[-1].best_gap for piece in pieces]
    assert gaps == sorted(gaps, reverse=True)
    if len(pieces) > 1:
        assert "(resumed at iteration " in last.reason
    if solver.name == "interior_point":  # as if there had been nothing in between
        assert last.trace[-1].iteration <= len(whole.trace) + len(pieces)


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", 0.01)])
def test_a_run_that_ends_within_a_step_goes_on_from_its_best_point(
    kernel, tmp_path, monkeypatch
):
    X, y = PROBLEMS["breast_cancer"]()
    path, solver = tmp_path / "run.checkpoint", IRWLS if kernel else InteriorPoint
    problem = Problem(X, y, 1.0, "hinge", "free", kernel=kernel)
    iterate, count = solver.iterate, 1 if kernel else 4

    def pressed(self, *given):
        """Ctrl-C comes after some steps."""
        yield from itertools.islice(iterate(self, *given), count + 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(solver, "iterate", pressed)
    first = solve(problem, solver(), tol=1e-7, checkpoint=path)
    assert first.status == "interrupted"
    assert path.exists()
    monkeypatch.setattr(solver, "iterate", iterate)
    last = solve(problem, solver(), tol=1e-7, checkpoint=path)
    assert last.status == "solved"
    assert "(resumed at iteration " in last.reason
    assert last.trace[0].best_gap <= first.trace[-1].best_gap * (1 + 1e-9)
    assert not path.exists()


@pytest.mark.parametrize(("seed", "last"), [(0, 11), (3, 9), (9, 7)])
def test_scores_of_a_checkpoint_do_not_make_bounds_infinite(tmp_path, seed, last):
    """Of rows that nearly all have alpha > 0: a resumed run had not made scores anew."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(60, 200))
    X = rng.normal(size=(m, 5))
    y = np.where(X[:, 0] + rng.normal(size=m) > 0, 1, -1)
    problem = Problem(X, y, 0.01, "squared_hinge", "free", kernel=Kernel("rbf", 0.01))
    path, solver = tmp_path / "run.checkpoint", IRWLS(working_set=32)
    gaps = []
    for most in (last, last + 1):
        found = solve(problem, solver, tol=1e-6, max_iter=most, checkpoint=path)
        gaps.append(found.certificate.relative_gap)
    assert gaps[1] <= gaps[0] < 1.0


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", 1e-3)])
def test_no_run_proves_less_than_its_checkpoint(tmp_path, monkeypatch, kernel):
    X, y = PROBLEMS["breast_cancer"]()
    path = tmp_path / "run.checkpoint"
    problem = Problem(X, y, 1.0, "hinge", "free", kernel=kernel)
    solver = IRWLS(working_set=32) if kernel else InteriorPoint()
    saved = solve(problem, solver, tol=1e-9, max_iter=14, checkpoint=path)
    assert saved.certificate.relative_gap < 0.4
    # The point of the file is older than its answer.
    monkeypatch.setattr(Best, "restore", lambda best, saved: None)
    found = solve(problem, solver, tol=1e-9, time_limit=1e-9, checkpoint=path)
    assert (found.status, saved.status) == ("time_limit", "max_iter")
    assert found.certificate.relative_gap <= saved.certificate.relative_gap
    again = problem.certify(found.alpha, found.w, found.b, tol=1e-9)
    assert again.relative_gap == pytest.approx(found.certificate.relative_gap, 1e-2)


@pytest.mark.parametrize("theirs", ["junk", "another problem"])
def test_an_answer_goes_into_no_other_file(tmp_path, monkeypatch, theirs):
    """Another process may write the same path meanwhile."""
    path, keep = tmp_path / "run.checkpoint", Saver.keep
    X, y = PROBLEMS["breast_cancer"]()

    def late(saver, answer):
        if theirs == "junk":
            path.write_bytes(b"junk")
        else:
            monkeypatch.setattr(Saver, "keep", keep)
            path.unlink()
            solve(
                Problem(2.0 * X, y, 1.0), InteriorPoint(), max_iter=9, checkpoint=path
            )
        before.append(path.read_bytes())
        keep(saver, answer)

    before = []
    monkeypatch.setattr(Saver, "keep", late)
    found = solve(Problem(X, y, 1.0), InteriorPoint(), max_iter=9, checkpoint=path)
    assert found.status == "max_iter"
    assert path.read_bytes() == before[-1]


def test_a_run_that_ends_before_its_first_step_keeps_its_start(tmp_path, monkeypatch):
    X, y = PROBLEMS["breast_cancer"]()
    problem, path = Problem(X, y, 1.0), tmp_path / "run.checkpoint"
    start = solve(problem, tol=1e-2)

    def pressed(self, *given):
        """Ctrl-C comes at once."""
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(InteriorPoint, "iterate", pressed)
    found = solve(problem, InteriorPoint(), tol=1e-7, start=start, checkpoint=path)
    assert found.status == "interrupted"
    assert found.certificate.primal <= start.certificate.primal * (1 + 1e-9)
    assert not path.exists()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    solve(Problem(X, y, 1.0), "interior_point", max_iter=2, checkpoint=path)
    message = r"a.checkpoint: expected a checkpoint of this problem \(total C 1138.0\)"
    with pytest.raises(ValueError, match=message):
        solve(Problem(X, y, 2.0), checkpoint=path)
    with pytest.raises(ValueError, match=r"\(rows 568\), found another one's \(569\)"):
        solve(Problem(X[1:], y[1:]), checkpoint=path)
    for text in (b"", b"something", path.read_bytes()[:-30]):
        path.write_bytes(text)
        with pytest.raises(ValueError, match="expected a checkpoint, found something"):
            solve(Problem(X, y), checkpoint=path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("checkpoint.json", json.dumps({"version": 99}))
    with pytest.raises(
        ValueError, match="expected a checkpoint of version 1, found 99"
    ):
        solve(Problem(X, y), checkpoint=path)


def test_a_checkpoint_of_other_margins_is_refused(tmp_path):
    """A solver gets margins in their unit, and was told of another C."""
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    given = Problem(X, y, 1.0, q=2.0)
    solve(given, "interior_point", max_iter=2, checkpoint=path)
    for q, size in ((1.0, "1.0"), (np.linspace(2.0, 4.0, len(y)), "3.0")):
        said = rf"\(size of the margins q {size}\d*\), found another one's \(2.0\)"
        with pytest.raises(ValueError, match=said):
            solve(Problem(X, y, 1.0, q=q), checkpoint=path)
    with pytest.raises(ValueError, match=r"problem \(total C"):
        solve(Problem(X, y, 3.0, q=2.0), checkpoint=path)
    assert "(resumed at" in solve(given, "interior_point", checkpoint=path).reason


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, ValueError, "'checkpoint' parameter of solve must be a path, a Checkpoint"),
        ([], TypeError, "'checkpoint' parameter of solve must be a path, a Checkpoint"),
        ({"path": 1}, ValueError, "'path' parameter of Checkpoint must be a str"),
        ({"path": "a", "every": 0}, ValueError, "'every' parameter of Checkpoint must"),
        ({"path": "a", "keep": "x"}, ValueError, "'keep' parameter of Checkpoint must"),
    ],
)
def test_parameters_are_checked(given, error, message):
    X, y = PROBLEMS["breast_cancer"]()
    with pytest.raises(error, match=message):
        solve(
            Problem(X, y),
            checkpoint=Checkpoint(**given) if isinstance(given, dict) else given,
        )


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
    def full(path, *args):
        raise OSError(28, "No space left on device")

    X, y = PROBLEMS["breast_cancer"]()
    monkeypatch.setattr("widemargin.solvers.driver.checkpoint.replacing", full)
    with pytest.warns(RuntimeWarning, match="no checkpoint: .*No space left"):
        solution = solve(
            Problem(X, y), checkpoint=Checkpoint(tmp_path / "a", every=1e-9)
        )
    assert solution.status == "solved"


SCRIPT = """
import sys, time
from widemargin import Checkpoint, Problem, open_rows, solve
folder, path, solver, loss = sys.argv[1:]
rows = open_rows(folder)
problem = Problem(rows, rows.vector("label"), 1.0, loss)
print("ready", flush=True)
solution = solve(
    problem, solver, tol=1e-7, checkpoint=Checkpoint(path, every=1e-3),
    callback=lambda step: time.sleep(0.02),  # or it would be over too soon
)
print(solution.status, repr(solution.certificate.primal), solution.reason, sep="|")
"""


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        pytest.param("interior_point", "hinge", marks=pytest.mark.full),
        ("augmented_lagrangian", "hinge"),
    ],
)
@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.full)])
def test_kill_9_at_random_moments(solver, loss, times, tmp_path):
    X, y = PROBLEMS["ndc"]()
    np.save(tmp_path / "X-0.npy", X)
    np.save(tmp_path / "y-0.npy", y.astype(np.int8))
    path = tmp_path / "run.checkpoint"
    whole = solve(Problem(X, y, 1.0, loss), solver, tol=1e-7)
    rng = np.random.default_rng(0)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(path), solver, loss]
    killed = 0
    for attempt in range(40):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        if attempt < times:
            time.sleep(rng.uniform(0.03, 0.3))
            process.send_signal(signal.SIGKILL)
        output, _ = process.communicate(timeout=HANGS)
        if process.returncode == 0:
            break
        killed += 1
        leftovers = {f for f in os.listdir(tmp_path) if f.endswith(".tmp")}
        assert len(leftovers) <= killed  # what was being written when it was killed
    assert killed >= 2
    status, primal, reason = output.strip().split("|")
    assert status == "solved"
    assert "resumed at iteration" in reason
    assert float(primal) == pytest.approx(whole.certificate.primal, rel=1e-7)
    assert not path.exists()


def test_stored_rows_go_on_too(tmp_path):
    X, y = PROBLEMS["ndc"]()
    np.save(tmp_path / "X-0.npy", X)
    rows = open_rows(tmp_path)
    rows._room = 0
    path = tmp_path / "a.checkpoint"
    first = solve(Problem(rows, y), "interior_point", max_iter=4, checkpoint=path)
    again = solve(Problem(open_rows(tmp_path), y), "interior_point", checkpoint=path)
    assert first.status == "max_iter"
    assert again.status == "solved"
    assert again.trace[0].iteration == 4
    gap = first.trace[-1].relative_gap
    assert again.trace[0].relative_gap == pytest.approx(gap, rel=1e-6)


def test_another_solver_goes_on_from_the_best_point(tmp_path):
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    first = solve(Problem(X, y), "interior_point", max_iter=5, checkpoint=path)
    again = solve(Problem(X, y), "augmented_lagrangian", checkpoint=path)
    assert again.status == "solved"
    assert again.trace[0].best_gap <= first.trace[-1].best_gap * (1.0 + 1e-9)


def test_a_run_without_time_keeps_what_was_saved(tmp_path):
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    first = solve(Problem(X, y), "interior_point", max_iter=5, checkpoint=path)
    late = solve(Problem(X, y), "interior_point", time_limit=1e-9, checkpoint=path)
    assert late.status == "time_limit"
    gap = first.certificate.relative_gap
    assert late.certificate.relative_gap <= gap * (1.0 + 1e-9)
    assert path.exists()


@pytest.mark.parametrize("what", ["labels", "C"])
def test_the_same_numbers_in_another_order_are_another_problem(what, tmp_path):
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    C = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    solve(Problem(X, y, C), "interior_point", max_iter=3, checkpoint=path)
    y, C = (y[::-1], C) if what == "labels" else (y, C[::-1])
    with pytest.raises(ValueError, match=f"this problem .checksum of .*{what}"):
        solve(Problem(X, y, C), checkpoint=path)


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", 0.01)])
@pytest.mark.parametrize("what", ["rows", "columns", "sign"])
def test_the_same_labels_with_other_rows_are_another_problem(what, kernel, tmp_path):
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    other = {
        "rows": X[np.random.default_rng(0).permutation(len(y))],
        "columns": X[:, ::-1],
        "sign": X * np.where(np.arange(X.shape[1]) == 3, -1.0, 1.0),
    }
    solve(Problem(X, y, kernel=kernel), max_iter=1, checkpoint=path)
    with pytest.raises(ValueError, match="this problem .fingerprint of X"):
        solve(Problem(other[what], y, kernel=kernel), checkpoint=path)
    assert solve(Problem(X, y, kernel=kernel), checkpoint=path).status == "solved"


def test_flipped_bits_are_one_sentence_or_none(tmp_path):
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    solve(Problem(X, y), "interior_point", max_iter=2, checkpoint=path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    problem = Problem(X, y)
    for _ in range(100):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            solve(problem, "interior_point", checkpoint=path)
        except ValueError as error:
            assert "a.checkpoint: expected a checkpoint" in str(error)


def test_a_place_that_cannot_be_written_to_is_refused_at_once(tmp_path):
    X, y = PROBLEMS["breast_cancer"]()
    with pytest.raises(FileNotFoundError, match="no such folder"):
        solve(Problem(X, y), checkpoint=tmp_path / "no" / "a")


def without_time(problem, monkeypatch, **options):
    """A run that has no time, not even for a certificate."""
    with monkeypatch.context() as patch:
        patch.setattr(limits, "GRACE", 0.0)
        return solve(problem, time_limit=1e-9, **options)


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", 0.01)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_run_that_has_no_time_ends_with_the_answer_of_its_file(
    kernel, loss, tmp_path, monkeypatch
):
    """It was a constant, or zero."""
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    solver = ActiveSet() if loss == "squared_hinge" else InteriorPoint()
    solver = IRWLS(working_set=32) if kernel else solver
    options = {"tol": 1e-12, "checkpoint": path}

    def problem():
        return Problem(X, y, 1.0, loss, kernel=kernel)

    most = 9 if isinstance(solver, InteriorPoint) else 6
    first = solve(problem(), solver, max_iter=most, **options)
    assert path.exists()
    assert 0.0 < first.certificate.relative_gap < 1.0
    for _ in range(2):
        late = without_time(problem(), monkeypatch, solver=solver, **options)
        assert late.status == "time_limit"
        assert late.certificate == first.certificate
        assert (late.b, late.rho) == (first.b, first.rho)
        assert np.array_equal(late.alpha, first.alpha)
        assert np.array_equal(late.w, first.w)
        assert late.trace[-1].iteration == first.trace[-1].iteration
        assert f"iterations {first.trace[-1].iteration}" in str(late)


def test_the_answer_of_other_rows_that_are_merged_alike_is_not_taken(
    tmp_path, monkeypatch
):
    """What a solver gets is the same problem, of rows in another order."""
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    options = {"solver": IRWLS(working_set=32), "tol": 1e-12, "checkpoint": path}

    def problem(X, y):
        return Problem(X, y, 1.0, kernel=Kernel("rbf", 0.01))

    solve(problem(np.repeat(X, 2, axis=0), np.repeat(y, 2)), max_iter=6, **options)
    X, y = np.tile(X, (2, 1)), np.tile(y, 2)
    late = without_time(problem(X, y), monkeypatch, **options)
    assert "(resumed at iteration 6)" in late.reason
    assert late.certificate == Certificate(np.inf, 0.0)
    proved = problem(X, y).certify(late.alpha, late.w, late.b)
    assert proved.primal < problem(X, y).zero_objective


@pytest.mark.parametrize("left_out", [0, 10])
def test_a_run_with_a_kernel_goes_on_with_its_scores(tmp_path, left_out):
    """It made them again, twice, before its first step."""
    path = tmp_path / "a.checkpoint"
    X, y = PROBLEMS["breast_cancer"]()
    C = np.where(np.arange(len(y)) < left_out, 0.0, 1.0)
    options = {"solver": IRWLS(working_set=32), "tol": 1e-6, "checkpoint": path}
    kernel = Kernel("rbf", 0.01)
    first = solve(Problem(X, y, C, kernel=kernel), max_iter=6, **options)
    again = solve(Problem(X, y, C, kernel=kernel), **options)
    assert again.trace[0].details["evaluations"] == 0.0
    assert again.trace[0].best_gap <= first.trace[-1].best_gap * (1.0 + 1e-9)
    assert again.status == "solved"


def test_scores_that_are_known_prove_nothing_and_lack_no_row():
    X, y = PROBLEMS["breast_cancer"]()
    problem = Problem(X, y, kernel=Kernel("rbf", 0.01))
    c = problem.signs * (np.arange(len(y)) % 3 == 0)
    c[y > 0] *= np.sum(c < 0) / np.sum(c > 0)
    values = problem.expand(c).values.copy()
    scores = problem.expand(c, np.where(np.arange(len(y)) % 2, values, np.nan))
    assert np.allclose(scores.values, values, rtol=1e-5)
    assert np.isinf(scores.sums().errors).all()
    assert problem.scores_at_hand is None
    with np.errstate(invalid="ignore"):  # as in the driver: 0 times infinity
        proved = problem.answer(np.abs(c), np.append(c, 0.0), 1e-6)
    assert proved[3].primal == pytest.approx(problem.primal(c, proved[2]), rel=1e-9)


def test_runs_that_end_within_a_step_get_on(tmp_path, monkeypatch):
    """They began again where the first one had."""
    X, y = PROBLEMS["breast_cancer"]()
    kernel, solver = Kernel("rbf", 0.01), IRWLS(working_set=32)
    iterate = IRWLS.iterate

    def pressed(self, *given):
        """Ctrl-C comes in the third step."""
        yield from itertools.islice(iterate(self, *given), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(IRWLS, "iterate", pressed)
    path, gaps, last = tmp_path / "a.checkpoint", [], 0
    for _ in range(3):
        problem = Problem(X, y, 1.0, kernel=kernel)
        found = solve(problem, solver, tol=1e-12, checkpoint=path)
        gaps.append(found.trace[-1].best_gap)
        assert found.trace[-1].iteration == last + 2
        last += 2
    assert gaps == sorted(gaps, reverse=True)
    assert len(set(gaps)) == 3
