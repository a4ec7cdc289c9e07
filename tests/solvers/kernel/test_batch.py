"""Many problems in one call: the answers, and what may end it before."""

import dataclasses
import functools
import signal
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.svm import SVC as Peer

from tests.cases.kernels import NAMED, SEMIDEFINITE, plain
from tests.cases.many import alone, classes, many, regression
from tests.cases.pairwise import product
from tests.conftest import INTERCEPTS, SETTINGS
from widemargin import SVC, Kernel, _core, solve
from widemargin.kernels import grouped
from widemargin.kernels.given import GivenSamples
from widemargin.solution import Status
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.batch import solve_many
from widemargin.system.deadline import Deadline

RBF = Kernel("rbf", gamma=0.4)
MEMORY = 1 << 28
ONE_AGAINST_ALL = [(0, 1, 2), (2, 1), (1, 0, 2)]


def answers(problems, *, memory=MEMORY, threads=1, **limits):
    return solve_many(problems, Limits(**limits), memory, threads)


# What kernel values in float32 have digits for, where these are large.
LEAST = {"linear": 1e-5, "poly": 1e-4}


def overlapping(m=1500, n=10, C=1e3):
    """Labels by chance: with a large C it takes longer than a question to stop."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(m, n)), rng.integers(0, 2, m)
    return many(X, group, Kernel("rbf", gamma=0.05), C=C)


@product(name=SEMIDEFINITE, setting=SETTINGS, m=[45, 210], tol=[1e-3, 1e-6])
def test_answers_are_those_of_working_sets(name, setting, m, tol):
    X, group, C = classes(m)
    X = np.abs(X) if name == "chi2" else X
    kernel, tol = (
        dataclasses.replace(NAMED[name], gamma=0.3),
        max(tol, LEAST.get(name, 0)),
    )
    problems = many(X, group, kernel, C, *setting, ONE_AGAINST_ALL)
    found = answers(problems, tol=tol)
    for answer, (one, own) in zip(found, alone(problems, X, kernel), strict=True):
        assert answer.status == "solved"
        assert answer.certificate.relative_gap <= tol
        best = solve(one, "irwls", tol=1e-8).certificate
        size = abs(best.primal)
        assert answer.certificate.primal <= best.dual + (tol + 1e-8) * size
        assert answer.certificate.dual >= best.primal - (tol + 2e-8) * size
        order = problems.order[own] - own.start
        assert (answer.alpha >= 0.0).all()
        assert (answer.alpha[one.C[order] == 0] == 0.0).all()
        signs = problems.y[own][order]
        assert answer.w.tolist() == (signs * answer.alpha).tolist()
        bound = setting[0] == "hinge"
        at_bound = (answer.alpha > 0) & (answer.alpha == one.C[order])
        assert answer.at_bound == (at_bound.sum() if bound else None)


@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
def test_float32_alone_solves_a_chain_to_a_rough_gap(loss, intercept, monkeypatch):
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    X, group, C = classes(m=210, kinds=2)
    chain = [((1, 0), -1, 0.01), ((1, 0), 0, 0.1), ((1, 0), 1, 1.0)]
    for answer in answers(many(X, group, RBF, C, loss, intercept, chain), tol=1e-3):
        assert answer.status == "solved"


def with_a_margin(seed, m, apart, C):
    """Two classes of many columns, linear: a few of all rows are support vectors."""
    rng = np.random.default_rng(seed)
    group, X = rng.integers(0, 2, m), rng.normal(size=(m, 256))
    X[:, :60] += np.where(group, apart, -apart)[:, np.newaxis]
    return many(X, group, Kernel("linear", gamma=1.0), C=C)


@pytest.mark.parametrize("seed", range(4))
def test_rounding_is_told_by_the_size_of_kernel_values(seed):
    """As of values up to 1, a gap of 1e-3 counted as one of 1e-4."""
    problems = with_a_margin(seed, 800, 0.3, C=1e3)
    found = batch.solve_places(problems, Limits(tol=1e-4), MEMORY, 1)
    assert found.solved(1e-4).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_intercept_leaves_as_much_room_to_both_classes(seed):
    """At a margin that was met exactly, rounding took 1e-2 of the objective."""
    problems = with_a_margin(seed, 400, 0.5, C=1e4)
    found = batch.solve_places(problems, Limits(tol=1e-4), MEMORY, 1)
    margins = problems.y * (found.scores + found.b[0])
    least = [margins[problems.y == sign].min() for sign in (1.0, -1.0)]
    assert min(least) >= 1.0
    assert least[0] == pytest.approx(least[1], abs=1e-12)


def test_problems_end_where_many_rows_move_soon():
    X, group = overlapping().samples._X, np.arange(1500) % 2
    problems = many(X, group, RBF)
    limits, brief = Limits(tol=1e-6), batch.Brief(1_000_000, moved=0.1)
    some = batch.solve_places(problems, limits, MEMORY, 1, brief=brief)
    assert some.steps[0] == 1500 // 8 + 1
    assert not some.solved(1e-6).any()
    few = batch.solve_places(
        problems, limits, MEMORY, 1, brief=brief._replace(moved=0.5)
    )
    assert few.solved(1e-6).all()


@pytest.mark.parametrize("simd", _core.simd_levels())
def test_threads_change_no_bit(simd, monkeypatch):
    monkeypatch.setattr(batch, "SHARED_WORK", 0)
    solve_batch = functools.partial(_core.solve_batch, simd=simd)
    monkeypatch.setattr(_core, "solve_batch", solve_batch)
    X, group, C = classes(m=300, kinds=5)
    chain = [((0, 1), -1, 1.0), ((0, 1), 0, 2.0), ((2, 3), -1, 1.0), ((2, 3), 2, 0.3)]
    problems = many(X, group, RBF, C, groups=[*chain, (4, 0, 1, 2, 3), (3, 1), (4, 2)])
    first, *others = [answers(problems, threads=t, tol=1e-5) for t in (1, 2, 5)]
    for found in others:
        for one, other in zip(first, found, strict=True):
            assert one.w.tolist() == other.w.tolist()
            assert (one.b, one.certificate) == (other.b, other.certificate)


@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
def test_a_chain_along_C_ends_where_a_cold_start_does(loss, intercept):
    X, group, C = classes(m=150, kinds=2)
    chain = [((1, 0), -1, 0.1), ((1, 0), 0, 1.0), ((1, 0), 1, 10.0), ((1, 0), 2, 3.0)]
    cold = [((1, 0), -1, factor) for _, _, factor in chain]
    found = answers(many(X, group, RBF, C, loss, intercept, chain), tol=1e-5)
    other = answers(many(X, group, RBF, C, loss, intercept, cold), tol=1e-5)
    for one, two in zip(found, other, strict=True):
        assert one.status == two.status == "solved"
        assert one.certificate.primal <= two.certificate.dual * (1.0 + 3e-5)
        assert two.certificate.primal <= one.certificate.dual * (1.0 + 3e-5)


def test_a_chain_starts_at_the_answer_before():
    X, group, _ = classes(m=200, kinds=2)
    problems = many(X, group, RBF, groups=[((1, 0), -1, 1.0), ((1, 0), 0, 1.0)])
    first, second = answers(problems, tol=1e-4)
    assert first.extras["steps"] > 2 * second.extras["steps"]


def test_a_chain_stays_where_no_variable_is_at_its_bound():
    X = np.random.default_rng(0).normal(size=(120, 2))
    group = (X[:, 0] > 0.0).astype(int)
    X[:, 0] += np.where(group, 1.0, -1.0)
    chain = [((1, 0), -1, 10.0), ((1, 0), 0, 100.0)]
    first, second = answers(many(X, group, RBF, groups=chain), tol=1e-4)
    assert 0 < first.w.max() < 10.0
    assert first.extras["steps"] > 5 * second.extras["steps"]


def nearly_apart(chain):
    """Two classes; with C = 10 steps leave losses, which no intercept takes away."""
    X = np.random.default_rng(6).normal(size=(240, 2))
    group = (X[:, 0] > 0.0).astype(int)
    X[:, 0] += np.where(group, 0.3, -0.3)
    return many(X, group, RBF, groups=chain, intercept="none")


def test_an_answer_whose_losses_grow_little_stays_as_it_is():
    chain = [((1, 0), -1, 10.0), ((1, 0), 0, 100.0), ((1, 0), 1, 1e6)]
    first, second, third = answers(nearly_apart(chain), tol=1e-4)
    assert second.b == first.b
    assert np.array_equal(second.w, first.w)
    grown = second.certificate.primal - first.certificate.primal
    assert grown > 0.0
    assert third.extras["steps"] > 0  # its losses would be too large
    assert max(one.certificate.relative_gap for one in (first, second, third)) <= 1e-4


def test_losses_of_an_answer_that_stays_grow_with_each_C():
    chain = [((1, 0), -1, 10.0), ((1, 0), 0, 100.0)]
    first, second = answers(nearly_apart(chain), tol=1e-4)
    before, after = first.certificate.primal, second.certificate.primal
    losses = (after - before) * 100.0 / 90.0  # of C = 100
    large = 100.0 * (1.0 + 2e-4 * after / losses)
    chain.append(((1, 0), 1, large))
    *_, third = answers(nearly_apart(chain), tol=1e-4)
    assert third.certificate.relative_gap <= 1e-4
    # It begins at the same point without the answer that stays between.
    chain[1:] = [((1, 0), 0, large)]
    _, same = answers(nearly_apart(chain), tol=1e-4)
    assert third.extras["steps"] == same.extras["steps"] > 0
    np.testing.assert_array_equal(third.w, same.w)


def test_a_chain_at_bounds_grows_with_them():
    X, group, _ = classes(m=200, kinds=2)
    chain = [((1, 0), -1, 1e-3), ((1, 0), 0, 2e-3)]
    first, second = answers(many(X, group, RBF, groups=chain), tol=1e-4)
    assert (first.alpha[first.alpha > 0.0] == 1e-3).mean() > 0.9
    assert first.extras["steps"] > 5 * second.extras["steps"]


def test_a_chain_whose_weights_change_unevenly_starts_at_zero():
    X, group, _ = classes(m=120, kinds=2)
    problems = many(X, group, RBF, groups=[((1, 0), -1, 1.0), ((1, 0), 0, 1.0)])
    problems.C[-30:] = 0.3
    _, second = answers(problems, tol=1e-5)
    assert second.status == "solved"
    assert second.alpha.max() <= 1.0


def folds(left_out, C=0.02, m=400, times=(1.0, 3.0)):
    """Chains of the same problem, each without some of its places."""
    X, group, _ = classes(m=m, kinds=2)
    chains = []
    for _ in left_out:
        begin = len(chains)
        for k, factor in enumerate(times):
            chains.append(((1, 0), begin + k - 1 if k else -1, factor))
    problems = many(X, group, RBF, C, groups=chains)
    for k, own in enumerate(left_out):
        for t in range(k * len(times), (k + 1) * len(times)):
            problems.C[problems.starts[t] : problems.ends[t]][own] = 0.0
    return problems


def in_turn(n):
    """Places that folds leave out: of both classes."""
    return [slice(k, None, n) for k in range(n)]


def test_a_fold_starts_near_the_answer_of_another_one():
    first, after, *others = answers(folds(in_turn(5), m=1000), tol=1e-4)
    for begin, follows in zip(others[::2], others[1::2], strict=True):
        assert first.extras["steps"] > 10 * begin.extras["steps"]
        assert 1.2 * follows.extras["steps"] < after.extras["steps"]


@pytest.mark.parametrize("C", [0.02, 3.0])
@pytest.mark.parametrize(
    "left_out",
    [
        in_turn(3),
        [slice(0, 1), slice(0, 150), slice(0, 199)],  # of one class alone
        [slice(150), slice(200, 350), slice(20)],
    ],
)
def test_folds_end_where_each_alone_does(left_out, C):
    problems = folds(left_out, C)
    starts = np.full(len(problems.ends), -1)
    found = answers(problems, tol=1e-5)
    for k, one in enumerate(found):
        part = dataclasses.replace(problems, after=starts).part([k], 0.0 * problems.C)
        (two,) = answers(part, tol=1e-5)
        assert one.status == two.status == "solved"
        assert one.certificate.primal <= two.certificate.dual * (1.0 + 3e-5)
        assert two.certificate.primal <= one.certificate.dual * (1.0 + 3e-5)
        assert abs(one.w.sum()) <= 1e-12 * one.alpha.sum()


@pytest.mark.parametrize(
    ("left_out", "m"),
    [
        (in_turn(4), 400),
        ([slice(0, 1), slice(0, 199)], 400),
        (in_turn(4), 1200),
        ([slice(0, 1), slice(0, 599), slice(1)], 1200),
    ],
)
def test_folds_do_not_depend_on_threads(left_out, m, monkeypatch):
    monkeypatch.setattr(batch, "SHARED_WORK", 0)
    problems = folds(left_out, m=m, times=(1.0, 3.0, 1e3, 1e5))
    first, *others = [answers(problems, threads=t, tol=1e-5) for t in (1, 2, 5)]
    for found in others:
        for one, other in zip(first, found, strict=True):
            assert one.w.tolist() == other.w.tolist()
            assert (one.b, one.certificate) == (other.b, other.certificate)


def long_folds(left_out, C, apart=0.0):
    """The same of two classes without noise, with C and three times C."""
    X = np.random.default_rng(0).normal(size=(1200, 4))
    group = (X[:, 0] > 0.0).astype(int)
    X[:, 0] += np.where(group, apart, -apart)
    t = 2 * len(left_out)
    chains = [((1, 0), k - 1 if k % 2 else -1, 1.0 + 2.0 * (k % 2)) for k in range(t)]
    problems = many(X, group, RBF, C, groups=chains)
    for C, own in zip(problems.C.reshape(-1, 2, len(X)), left_out, strict=True):
        C[:, own] = 0.0
    return problems


def test_few_long_folds_follow_their_own_smaller_C():
    first, second, third = in_turn(3)
    problems = long_folds([first, second, third], C=30.0)
    others = long_folds([first, third, second], C=30.0)
    others.C[3 * 1200 : 4 * 1200] = problems.C[3 * 1200 : 4 * 1200]
    found, again = (answers(both, tol=1e-4) for both in (problems, others))
    assert found[3].extras["steps"] > 0
    assert found[2].w.tolist() != again[2].w.tolist()  # another fold
    assert found[3].w.tolist() != again[3].w.tolist()  # the same, from there


def test_long_folds_of_other_weights_follow_their_own_chain():
    problems = long_folds(in_turn(3), C=30.0)
    problems.C[-1200:] *= 1.1  # the larger C of the last one
    found = answers(problems, tol=1e-4)
    assert {one.status for one in found} == {"solved"}
    assert found[-1].extras["steps"] > 0


def test_few_long_folds_stay_where_their_model_stays():
    found = answers(long_folds(in_turn(3), C=1e3, apart=0.1), tol=1e-3)
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one.extras["steps"] > other.extras["steps"] == 0
        assert one.w.tolist() == other.w.tolist()


def test_a_start_that_is_given_is_kept_where_another_fold_is_solved():
    problems = folds(in_turn(2), times=(1.0,))
    known = np.abs(np.concatenate([one.w for one in answers(problems, tol=1e-6)]))
    c = np.where(problems.C > 0.0, problems.y * known[np.argsort(problems.order)], 0.0)
    again = dataclasses.replace(problems, begin_at=c)
    assert [one.extras["steps"] for one in answers(again, tol=1e-3)] == [0, 0]


def test_slow_steps_go_on_while_the_dual_objective_rises():
    form = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.05}
    X, y = make_classification(1500, 4, **form, random_state=0)
    machine = SVC(C=1000.0, tol=1e-3).fit(X, y)
    assert machine.solution_.solver == "batch"
    assert machine.dual_gap_ <= 1e-3


def test_steps_end_soon_where_the_dual_objective_rises_without_end():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(100, 2)), np.arange(100) % 2
    kernel = Kernel("sigmoid", gamma=0.5)
    (found,) = answers(many(X, group, kernel, loss="squared_hinge"), tol=1e-4)
    assert found.certificate.dual > 1e3 * 100  # the objective at zero is 100
    assert found.extras["steps"] < 100_000


def test_slow_steps_in_float64_are_fewer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    t, kernel = X[:, 0] ** 2 + rng.normal(size=300), Kernel("poly", gamma=0.5, coef0=1)
    problems = regression(X, t, kernel, C=1e3)
    ends = batch.solve_places(problems, Limits(tol=1e-4), MEMORY, 1, exactly=True)
    assert ends.steps[0] < 200_000  # not solved by 1.6 million steps


def test_problems_that_are_not_begun_have_scores_of_zero(monkeypatch):
    one = overlapping(m=3000)
    problems = (
        dataclasses.replace(  # the same twice, and the core ends within the first
            one,
            groups=np.tile(one.groups, 2),
            group_ends=np.array([2, 4]),
            ends=np.array([3000, 6000]),
            y=np.tile(one.y, 2),
            C=np.tile(one.C, 2),
            after=np.array([-1, 0]),
        )
    )
    problems.samples.pack()
    asked = problems.groups, problems.group_ends, problems.ends, problems.after
    data, c, form = problems.data, problems.start(), (False, batch.INTERCEPTS["free"])
    monkeypatch.setattr(grouped, "aligned", lambda m, _: np.full(m, np.nan))
    scores, _, counts, interrupted = problems.samples.solve(
        asked, data, c, form, (1e-6, 10**6, MEMORY, 1, False), lambda: True
    )
    assert counts[:, 2].tolist() == [2, 0]
    assert not interrupted
    assert np.isfinite(scores[:3000]).all()
    assert (scores[3000:] == 0.0).all()


@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
def test_a_start_out_of_its_bounds_is_clipped(loss, intercept):
    X, group, C = classes(m=100)
    problems = many(X, group, RBF, C, loss, intercept)
    c = np.full(len(problems.y), 5.0)
    problems.samples.solve(
        (problems.groups, problems.group_ends, problems.ends, problems.after),
        problems.data,
        c,
        (loss == "squared_hinge", batch.INTERCEPTS[intercept]),
        (1e-3, 0, MEMORY, 1, False),
        lambda: False,
    )
    most = problems.loss.upper(problems.C)
    alpha = problems.y * c
    assert (alpha[problems.C == 0.0] == 0.0).all()
    assert (alpha >= 0.0).all()
    assert (alpha <= np.where(problems.C > 0, most, 0.0)).all()


def test_a_time_limit_keeps_what_there_is(monkeypatch):
    monkeypatch.setattr(batch, "MOST_STEPS", 1_000)
    (answer,) = answers(overlapping(m=3000), tol=1e-6, time_limit=0.05)
    assert answer.status == "time_limit"
    assert np.isfinite(answer.certificate.primal)
    assert answer.certificate.dual >= -1e-6 * answer.certificate.primal


@pytest.mark.parametrize("mass", [False, True])  # with a start whose rows are made
def test_a_limit_ends_while_rows_of_many_columns_are_made(mass, monkeypatch):
    # The least number of steps between two looks at the gap makes all rows of K: a tenth
    # of these takes any processor longer than the time between two questions.
    m, n, made = 2500, 4000, []
    X = np.random.default_rng(0).normal(size=(m, n))
    kernel, labels = Kernel("rbf", gamma=1.0 / n), np.arange(m) % 2
    problems = many(X, labels, kernel)
    if mass:
        problems = dataclasses.replace(problems, q=0.0, mass=np.array([0.9 * m]))
    ask = type(problems.samples)._ask

    def counted(*args):
        made.append(ask(*args))
        return made[-1]

    monkeypatch.setattr(type(problems.samples), "_ask", counted)
    limits = Limits(time_limit=1.0)
    limits.clock.seconds = lambda: 2.0
    (answer,) = solve_many(problems, limits, 1 << 30, 1)
    assert answer.status == "time_limit"
    assert made[0][0] <= 0.1 * m * m


class Pressed(Deadline):
    """A deadline that is asked for, and is Ctrl-C the n-th time."""

    asked, at = 0, 1

    @property
    def left(self):
        self.asked += 1
        if self.asked == self.at:
            raise KeyboardInterrupt
        return 1.0


@dataclasses.dataclass(frozen=True)
class PressedLimits(Limits):
    """Limits whose deadline, or that of the answer, is Ctrl-C."""

    pressed: tuple = ()

    @property
    def deadline(self):
        return self._of("deadline")

    @property
    def grace(self):
        return self._of("grace")

    def _of(self, name):
        return Pressed(self.clock.seconds, 1.0) if name in self.pressed else None


def test_ctrl_c_keeps_the_answer(monkeypatch):
    monkeypatch.setattr(batch, "FEW_VISITS", 10**9)  # longer than a question
    limits = PressedLimits(tol=1e-6, pressed=("deadline",))
    (answer,) = solve_many(overlapping(m=3000), limits, MEMORY, 1)
    assert answer.status is Status.INTERRUPTED
    assert np.isfinite(answer.certificate.primal)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_certificates_are_made(presses, monkeypatch):
    X, group, _ = classes()
    problems, asked = many(X, group, RBF), []
    bounds = type(problems).bounds

    def pressed(*args):
        asked.append(args)
        if len(asked) <= presses:
            raise KeyboardInterrupt
        return bounds(*args)

    monkeypatch.setattr(type(problems), "bounds", pressed)
    if presses == 2:
        with pytest.raises(KeyboardInterrupt):
            answers(problems)
        return
    found = answers(problems)
    assert {one.status for one in found} == {Status.INTERRUPTED}
    assert max(one.certificate.relative_gap for one in found) < 1e-3


@pytest.mark.parametrize(("classes", "solver"), [(2, "irwls"), (3, "batch")])
def test_few_problems_are_solved_here_up_to_fewer_rows(classes, solver, monkeypatch):
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS_ALONE", 10)
    X = np.random.default_rng(0).normal(size=(60, 40))
    fit = SVC(n_jobs=1).fit(X, np.arange(60) % classes)
    assert {one.solver for one in fit.solutions_} == {solver}


def test_a_real_signal_ends_a_fit_with_a_model(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 40)), rng.integers(0, 3, 6000)
    clf = SVC(gamma=0.01, C=1e4, tol=1e-6, n_jobs=1)
    main = threading.main_thread().ident
    press = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    solve_batch = _core.solve_batch

    def begun(*args):
        press.start()
        return solve_batch(*args)

    monkeypatch.setattr(_core, "solve_batch", begun)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # or ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
    finally:
        press.join()
        signal.signal(signal.SIGINT, before)
    assert clf.status_ == "interrupted"
    assert clf.predict(X[:5]).shape == (5,)


def test_kernel_values_stay_within_their_memory():
    problems = overlapping(C=1.0)  # K has 9 MiB
    (whole,) = answers(problems, tol=1e-4)
    assert whole.status == "solved"
    (answer,) = answers(problems, tol=1e-4, memory=1 << 20)
    assert answer.status == "stalled"
    assert 0 < answer.extras["steps"] < 0.1 * whole.extras["steps"]
    assert answer.certificate.dual > 0.0


def test_no_problem_begins_without_memory():
    X, group, _ = classes(m=300)
    for answer in answers(many(X, group, RBF), memory=0)[1:]:
        assert answer.status == "stalled"
        assert answer.extras["steps"] <= 10


@pytest.mark.parametrize("C", [1e300, 1e39, 1e-39, 1e-300])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_weights_of_any_size_end_with_a_finite_point(C, loss, intercept):
    X, group, _ = classes()
    for kernel in (RBF, Kernel("linear", gamma=1.0)):
        for answer in answers(many(0.0 * X, group, kernel, C, loss, intercept)):
            assert np.isfinite(answer.alpha).all()
            assert np.isfinite(answer.b)
        for answer in answers(many(X, group, kernel, C, loss, intercept)):
            assert np.isfinite(answer.alpha).all()
            assert not np.isnan(answer.certificate.primal)
            assert answer.certificate.dual <= answer.certificate.primal


def test_equal_rows_of_both_classes_end():
    X, group, _ = classes(m=40, kinds=2)
    problems = many(np.repeat(X, 2, axis=0), np.tile([0, 1], 40), RBF, C=1e6)
    (answer,) = answers(problems, tol=1e-4)
    assert answer.certificate.dual == pytest.approx(80e6, rel=1e-3)


def test_classes_of_one_row():
    X, group, _ = classes(m=30)
    group = np.where(np.arange(30) == 4, 3, group)
    group = np.where(np.arange(30) == 17, 4, group)
    found = answers(many(X, group, RBF, groups=[(3, 4), (3, 0), (1, 3), (4, 0, 1)]))
    assert {one.status for one in found} == {Status.SOLVED}
    assert found[0].alpha.tolist() == [1.0, 1.0]


def test_a_problem_is_given_up_after_many_steps(monkeypatch):
    problems = overlapping()
    m = len(problems.y)
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    monkeypatch.setattr(batch, "FEW_VISITS", 0)
    (answer,) = answers(problems, tol=1e-6)
    assert answer.status == "stalled"
    assert answer.extras["steps"] <= batch.MOST_STEPS * m
    monkeypatch.setattr(batch, "FEW_VISITS", 10 * m * m)
    (longer,) = answers(problems, tol=1e-6)
    assert answer.extras["steps"] < longer.extras["steps"] <= 10 * m


def long_chain(noise, C):
    """Two values of C on 1,100 rows, of which 100 are held out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 4))
    group = (X[:, 0] + noise * rng.normal(size=1100) > 0).astype(int)
    chain = [((0, 1), -1, C), ((0, 1), 0, 3.0 * C)]
    problems = many(X, group, Kernel("rbf", gamma=0.5), groups=chain)
    problems.C[:100] = problems.C[1100:1200] = 0.0
    return problems


def test_settled_variables_of_long_problems_take_no_time(monkeypatch):
    problems = long_chain(0.4, 200.0)
    monkeypatch.setattr(batch, "FEW_VISITS", 0)
    found = answers(problems, tol=1e-4)
    assert [answer.status for answer in found] == ["solved"] * 2
    assert found[1].extras["steps"] > 2 * batch.MOST_STEPS * 1100
    for one, other in zip(found, answers(problems, tol=1e-4, threads=2), strict=True):
        assert one.w.tolist() == other.w.tolist()


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("C", [100.0, 1e4])
def test_long_problems_end_where_few_variables_are_not_settled(noise, C):
    for answer in answers(long_chain(noise, C), tol=1e-3):
        assert answer.certificate.relative_gap <= 0.05


def test_what_steps_in_float32_cannot_solve_is_given_up_soon(monkeypatch):
    monkeypatch.setattr(batch, "MOST_STEPS", 1_000)
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    group = (X[:, 0] + rng.normal(size=500) > 0).astype(int)
    problems = many(X, group, Kernel("rbf", gamma=0.02), C=1e3)
    (answer,) = answers(problems, tol=1e-13)
    assert answer.status == "stalled"
    assert answer.certificate.relative_gap < 1e-6
    assert answer.extras["steps"] < 0.2 * 1_000 * 500


def test_small_problems_go_on_in_float64():
    X, group, _ = classes(m=120, kinds=2)
    # Float32 ends at a gap of 5e-4, with every instruction set.
    problems = many(X, group, Kernel("rbf", gamma=1e-5), C=1e5)
    for start in (False, True):
        ends = batch.solve_places(problems, Limits(tol=1e-5), MEMORY, 1, exactly=start)
        assert ends.solved(1e-5).all()


@pytest.mark.parametrize("kind", ["classes", "given", "regression"])
def test_scores_in_float64_reach_gaps_that_float32_hides(kind, monkeypatch):
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    X, group, _ = classes(m=400, n=10, kinds=2)
    problems = many(X, group, RBF, C=1e3)
    if kind == "given":
        values = plain(RBF, X, X)
        problems = dataclasses.replace(problems, samples=GivenSamples(values, group))
    if kind == "regression":
        problems = regression(X, X[:, 0] * X[:, 1], RBF, 0.1, 1e2)
    (answer,) = answers(problems, tol=1e-6)
    assert answer.status == "solved"


@pytest.mark.parametrize("is_sparse", [False, True])
def test_scores_in_float64_of_products_are_those_of_weights(is_sparse, monkeypatch):
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 400))
    if is_sparse:
        X[rng.random(X.shape) < 0.9] = 0.0
    group = (X[:, :5].sum(axis=1) + 0.1 * rng.normal(size=300) > 0.0).astype(int)
    rows = sparse.csr_array(X) if is_sparse else X
    problems = many(rows, group, Kernel("linear", 1.0), C=1e3)
    ends = batch.solve_places(problems, Limits(tol=1e-7), MEMORY, 1)
    assert ends.solved(1e-7).all()
    scores = X[problems.rows] @ (X[problems.rows].T @ ends.c)
    seen = ends.c != 0.0
    np.testing.assert_allclose(ends.scores[seen], scores[seen], rtol=0, atol=1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(("gamma", "most"), [(0.25, 50_000), (0.5, 12_000)])
def test_scores_of_free_variables_that_are_a_little_off_are_no_losses(
    gamma, most, intercept
):
    rng = np.random.default_rng(0)
    X = rng.random((800, 16))
    group = (np.sin(1.5 * X.sum(axis=1)) > 0.0).astype(int)
    problems = many(X, group, Kernel("rbf", gamma), C=1e3, intercept=intercept)
    ends = batch.solve_places(problems, Limits(tol=1e-3), MEMORY, 1)
    assert np.count_nonzero((ends.c != 0.0) & (np.abs(ends.c) < 1e3)) > 400
    assert ends.gaps[0] <= 1e-3
    assert ends.steps[0] < most


def test_what_float64_cannot_solve_is_given_up_soon():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(27, 5)) * 10.0 ** np.linspace(-4.0, 4.0, 5)
    group = (X[:, 0] * 1e4 + rng.normal(size=27) > 0).astype(int)
    problems = many(X, group, Kernel("linear", gamma=1.0), C=1e3)
    ends = batch.solve_places(problems, Limits(tol=1e-4), MEMORY, 1, exactly=True)
    assert not ends.solved(1e-4).any()
    assert ends.steps[0] < 75_000  # of 333,333


def test_distances_that_float32_is_too_rough_for_are_solved_in_float64():
    X, group, _ = classes(m=90, kinds=3)
    assert not many(X, group, Kernel("rbf", gamma=1e3)).samples.is_fit
    clf = SVC(gamma=1e3, tol=1e-5).fit(X, group)
    assert {one.solver for one in clf.solutions_} == {"batch"}
    assert clf.status_ == "solved"


def test_scores_of_many_rows_are_float64_where_float32_is_too_rough():
    # Working sets, which went on with more than 4,000 rows, took longer.
    X, y = make_classification(4_100, 33, n_informative=5, flip_y=0.0, random_state=0)
    clf = SVC(C=100.0, gamma=0.01, tol=1e-4, solver="batch").fit(X, y)
    assert (clf.solution_.solver, clf.status_) == ("batch", "solved")


def test_memory_of_other_fits_changes_no_bit():
    sets = [make_classification(m, 6, flip_y=0.2, random_state=m) for m in (1_500, 800)]
    first, *others = [
        SVC(C=100.0, tol=1e-3, solver="batch").fit(*sets[k]) for k in (0, 1, 0, 1, 0)
    ]
    for other in others[1::2]:
        assert other.solution_.alpha.tolist() == first.solution_.alpha.tolist()
        assert (other.solution_.b, other.dual_gap_) == (
            first.solution_.b,
            first.dual_gap_,
        )


def test_no_problem_ends_with_a_larger_gap_for_going_on():
    X, group, _ = classes(m=120, kinds=3)
    problems = many(X, group, RBF, C=1.0, groups=[((0, 1), -1, 1.0), ((2, 0), -1, 1.0)])
    ends = batch.solve_places(problems, Limits(tol=1e-2), MEMORY, 1)
    closer = batch.solve_places(problems, Limits(tol=1e-6), MEMORY, 1)
    which, sizes = np.arange(2), problems.sizes
    worse = closer.with_some(which, sizes, ends)
    for name in ("c", "scores", "b", "proofs"):
        assert getattr(worse, name).tolist() == getattr(closer, name).tolist()
    some = closer._replace(proofs=np.where([[True], [False]], closer.proofs, np.inf))
    better = ends.with_some(which, sizes, some)
    first = slice(sizes[0])
    assert better.c[first].tolist() == closer.c[first].tolist()
    assert better.c[sizes[0] :].tolist() == ends.c[sizes[0] :].tolist()
    assert better.gaps.tolist() == [closer.gaps[0], ends.gaps[1]]
    assert better.steps.tolist() == (ends.steps + closer.steps).tolist()


def test_stalled_problems_go_on_elsewhere(monkeypatch):
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    X, group, _ = classes(m=120, kinds=2)
    clf = SVC(C=1e7, gamma=1e-5, tol=1e-5).fit(X, group)
    (answer,) = answers(many(X, group, Kernel("rbf", gamma=1e-5), C=1e7), tol=1e-5)
    assert answer.status == "stalled"
    assert clf.solution_.solver == "irwls"
    assert clf.status_ == "solved"


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_predictions_are_those_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    clf, peer = SVC(tol=1e-6).fit(X, y), Peer(tol=1e-6).fit(X, y)
    assert {one.solver for one in clf.solutions_} == {"batch"}
    assert (clf.predict(X) == peer.predict(X)).mean() > 0.999
    assert clf.support_.tolist() == pytest.approx(peer.support_.tolist())
    assert clf.dual_coef_ == pytest.approx(peer.dual_coef_, abs=1e-2)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_rows_without_weights_are_as_good_as_none(intercept):
    X, group, _ = classes(400, kinds=2)
    kept = np.ones(400, bool)  # runs in the middle of a class, and at the end of one
    for kind, run in ((0, slice(37, 121)), (1, slice(150, 200))):
        kept[np.flatnonzero(group == kind)[run]] = False
    (some,) = answers(many(X, group, RBF, 30.0 * kept, "hinge", intercept), tol=1e-5)
    rest = many(X[kept], group[kept], RBF, 30.0, "hinge", intercept)
    (alone_,) = answers(rest, tol=1e-5)
    assert some.status == alone_.status == "solved"
    assert some.certificate.dual == pytest.approx(alone_.certificate.dual, rel=2e-5)
    assert some.extras["steps"] == pytest.approx(alone_.extras["steps"], rel=0.2)


def test_a_problem_may_follow_one_of_other_labels_and_weights():
    X, group, C = classes(210, kinds=2)
    problems = many(X, group, RBF, C, groups=[((0, 1), -1, 1.0), ((0, 1), 0, 1.0)])
    y, C = problems.y.copy(), problems.C.copy()
    y[210:] *= np.where(np.arange(210) % 9 == 0, -1.0, 1.0)
    C[210:] = 2.0 * np.roll(C[210:], 40)
    problems = dataclasses.replace(problems, y=y, C=C)
    found = answers(problems, tol=1e-5)
    for answer, (one, _) in zip(found, alone(problems, X, RBF), strict=True):
        assert answer.status == "solved"
        best = solve(one, "irwls", tol=1e-8).certificate
        assert answer.certificate.primal == pytest.approx(best.dual, rel=2e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_few_rows_have_their_last_digits_also_after_many_steps(kernel):
    """With the linear kernel of few columns a row takes more than twenty steps."""
    X = np.random.default_rng(0).normal(size=(100, 5))
    y = np.repeat(np.arange(10), 10)
    X[:, 0] += y
    solutions = SVC(kernel=kernel).fit(X, y).solutions_
    assert {solution.solver for solution in solutions} == {"batch"}
    assert max(solution.certificate.relative_gap for solution in solutions) < 1e-10
