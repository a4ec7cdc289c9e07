"""Fits of EnclosingBall: scikit-learn's checks, limits, Ctrl-C, copies, bad input."""

import _thread
import contextlib
import pickle
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
)

from tests.cases.pairwise import checks_by_turns
from tests.cases.problems import PROBLEMS
from widemargin import (
    SVC,
    Checkpoint,
    EnclosingBall,
    Kernel,
    Problem,
    as_rows,
    solve,
)
from widemargin.solvers.kernel.ball_descent import BallDescent

# Few rows, or a low price: most are outside then, which test_contamination.py is about.
pytestmark = pytest.mark.filterwarnings("ignore:.*lie outside of the ball:UserWarning")


@checks_by_turns(
    [
        EnclosingBall(),
        EnclosingBall(C=10.0),
        EnclosingBall(kernel="linear"),
        EnclosingBall(contamination=0.1),
        EnclosingBall(C=None, contamination=0.2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# These want outliers among the rows of the fit, which a hard ball has not.
WITH_OUTLIERS = ("check_outliers_train", "check_outliers_fit_predict")


def test_scikit_learn_checks_of_the_hard_ball():
    for estimator, check in estimator_checks_generator(EnclosingBall(C=None)):
        if getattr(check, "func", check).__name__ not in WITH_OUTLIERS:
            with contextlib.suppress(SkipTest):
                check(estimator)


def points(m=90, n=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, n)) * rng.uniform(0.5, 2.0, n) + rng.uniform(-1, 1, n)


# -- how a fit ends --------------------------------------------------------------------


def test_a_soft_ball_of_a_large_gap_is_rough():
    """It was called usable up to a gap of one half."""
    X, _ = PROBLEMS["breast_cancer"]()
    ball = EnclosingBall(C=0.1, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="The model is ") as caught:
        ball.fit(X)
    assert 0.1 < ball.dual_gap_ < 0.5
    assert "The model is rough: its objective may be " in str(caught[0].message)


def test_limits_are_a_warning_with_the_gap():
    X, _ = PROBLEMS["breast_cancer"]()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 steps at a relative gap of .* above the smallest") as caught:  # fmt: skip
        ball = EnclosingBall(C=None, max_iter=3).fit(X)
    assert caught[0].filename == __file__
    assert (ball.status_, ball.n_iter_) == ("max_iter", 3)
    assert ball.dual_gap_ > 1e-3
    np.testing.assert_array_equal(ball.predict(X), 1)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=1e-09 s"):
        ball = EnclosingBall(time_limit=1e-9, C=0.1).fit(X)
    assert ball.status_ == "time_limit"
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        ball = EnclosingBall(callback=lambda step: True).fit(X)
    assert ball.status_ == "stopped_by_callback"


def test_ctrl_c_keeps_the_ball_and_raises():
    X = points(500)

    def press(step):
        _thread.interrupt_main()

    ball = EnclosingBall(C=None, callback=press)
    with pytest.raises(KeyboardInterrupt):
        ball.fit(X)
    assert ball.status_ == "interrupted"
    np.testing.assert_array_equal(ball.predict(X), 1)


def test_callback_and_verbose(capfd):
    steps = []
    X = points(500)
    ball = EnclosingBall(callback=steps.append, verbose=1).fit(X)
    assert steps[-1].iteration == ball.n_iter_
    assert steps[-1].details["support_vectors"] == len(ball.support_)
    # A step reads a row, computed before the first time.
    reads = steps[-1].details["hits"] + steps[-1].details["evaluations"]
    assert reads >= ball.n_iter_ * len(X)
    assert steps[-1].details["hits"] > 0
    assert np.all(np.diff([step.dual for step in steps]) >= -1e-6)
    out, err = capfd.readouterr()
    assert out == ""
    assert "1e-03" in err


def test_the_driver_runs_it():
    """Its steps are stamped with the best bounds; problems of others are refused."""
    steps, X = [], points(500)
    EnclosingBall(callback=steps.append).fit(X)
    best = np.array([(step.best_primal, step.best_dual) for step in steps])
    assert np.all(np.isfinite(best[-1]))
    gaps = (best[:, 0] - best[:, 1]) / best[:, 0]
    assert np.nanmin(gaps) == gaps[-1] <= 1e-3
    problem = Problem(X, np.sign(X[:, 0]), kernel=Kernel("rbf", gamma=1.0))
    with pytest.raises(ValueError, match="BallDescent solves the problems of balls"):
        solve(problem, BallDescent())


def test_a_failed_fit_changes_nothing():
    X = points(50)
    ball = EnclosingBall().fit(pd.DataFrame(X, columns=list("abcd")))
    before = dict(vars(ball))
    assert list(ball.feature_names_in_) == list("abcd")
    for spoiled in (np.full((5, 2), np.nan), np.ones((3, 2, 1))):
        with pytest.raises(ValueError, match=r"NaN|dim"):
            ball.fit(spoiled)
    ball.set_params(callback=lambda step: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ball.fit(X[:, :2])
    ball.set_params(callback=None)
    after = vars(ball)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


def test_pipelines_copies_and_equal_seeds():
    X = points(400)
    ball = EnclosingBall(C=0.1, random_state=3)
    pipe = make_pipeline(StandardScaler(), ball).fit(X)
    again = clone(pipe).fit(X)
    expected = pipe.decision_function(X)
    np.testing.assert_array_equal(again.decision_function(X), expected)
    copy = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(copy.decision_function(X), expected)
    np.testing.assert_array_equal(pipe.fit_predict(X), pipe.predict(X))
    np.testing.assert_array_equal(pipe.predict(X) == 1, expected >= 0)
    np.testing.assert_allclose(
        expected, pipe.score_samples(X) - pipe[-1].offset_, atol=1e-15
    )
    # For a row the same whatever is in its batch, and for any number of threads.
    scaled = pipe[0].transform(X)
    np.testing.assert_array_equal(pipe[-1].decision_function(scaled[:7]), expected[:7])
    one, two = (
        EnclosingBall(C=0.1, n_jobs=k).fit(X).decision_function(X) for k in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


# -- checkpoints -----------------------------------------------------------------------

BALLS = {
    "hard": {"C": None},
    "soft": {"C": 0.1},
    "empty": {"C": 1e-6},  # sigma < 1: the radius is 0
    "linear": {"C": 1e-4, "kernel": "linear"},
}


@pytest.mark.filterwarnings("ignore:No point lies inside")
@pytest.mark.parametrize("name", BALLS)
def test_a_fit_in_pieces_ends_at_the_same_gap(name, tmp_path):
    X, path = points(700, 6), tmp_path / "a.checkpoint"
    form = {"gamma": 0.1, "tol": 1e-5} | BALLS[name]
    whole, n_steps, pieces = EnclosingBall(**form).fit(X), 0, []
    while not pieces or pieces[-1].status_ == "max_iter":
        n_steps += max(1, whole.n_iter_ // 4)
        ball = EnclosingBall(**form, max_iter=n_steps, checkpoint=path)
        with contextlib.suppress(ConvergenceWarning):
            ball.fit(X)
        pieces.append(ball)
        if ball.status_ == "max_iter":
            assert ball.n_iter_ == n_steps
            assert path.exists()
    gaps = [ball.dual_gap_ for ball in pieces]
    assert gaps == sorted(gaps, reverse=True)
    assert len(pieces) > 1
    assert pieces[-1].status_ == whole.status_ == "solved"
    assert not path.exists()
    assert pieces[-1].n_iter_ <= 2 * whole.n_iter_
    np.testing.assert_allclose(pieces[-1].radius_, whole.radius_, rtol=1e-3)


def test_ctrl_c_leaves_a_checkpoint_that_a_fit_goes_on_from(tmp_path):
    X, path = points(700, 6), tmp_path / "a.checkpoint"
    form = {"C": 0.1, "gamma": 0.1, "tol": 1e-5, "checkpoint": Checkpoint(path, 1e-9)}

    def press(step):
        _thread.interrupt_main()

    with pytest.warns(ConvergenceWarning, match="max_iter=200"):
        EnclosingBall(**form, max_iter=200).fit(X)
    ball = EnclosingBall(**form, callback=press)
    with pytest.raises(KeyboardInterrupt):
        ball.fit(X)
    assert path.exists()
    steps = []
    again = EnclosingBall(**form, callback=steps.append).fit(X)
    assert (again.status_, path.exists()) == ("solved", False)
    assert steps[0].iteration == ball.n_iter_ == 200


def test_a_fit_without_time_keeps_the_ball_of_its_checkpoint(tmp_path):
    X, path = points(700, 6), tmp_path / "a.checkpoint"
    form = {"C": None, "gamma": 0.1, "tol": 1e-9, "checkpoint": path}
    with pytest.warns(ConvergenceWarning, match="max_iter=200"):
        ball = EnclosingBall(**form, max_iter=200).fit(X)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        late = EnclosingBall(**form, time_limit=1e-9).fit(X)
    assert late.dual_gap_ <= 1.0001 * ball.dual_gap_


def test_the_checkpoint_of_something_else_is_refused(tmp_path):
    X, path = points(700, 6), tmp_path / "a.checkpoint"
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        EnclosingBall(checkpoint=path, max_iter=20).fit(X)
    for form, words in (
        ({"C": None}, r"\(loss hard ball\), found another one's \(soft ball"),
        ({"C": 2.0}, r"\(total C 1400.0\), found another one's \(700.0"),
        ({"gamma": 3.0}, r"\(gamma 3.0\)"),
        ({"kernel": "laplacian"}, r"\(kernel laplacian\)"),
    ):
        with pytest.raises(ValueError, match=words):
            EnclosingBall(checkpoint=path, **form).fit(X)
    with pytest.raises(ValueError, match=r"rows 700.*intercept|loss hinge"):
        SVC(checkpoint=path).fit(X, np.sign(X[:, 0]))
    with pytest.raises(ValueError, match="'checkpoint' parameter of EnclosingBall"):
        EnclosingBall(checkpoint=3).fit(X)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0}, ValueError, r"The 'C' parameter of EnclosingBall must be a float in the range \(0, inf\) or None. Got 0 instead."),
        ({"C": -1.0}, ValueError, "'C' parameter"),
        ({"C": "1"}, ValueError, "'C' parameter"),
        ({"C": np.nan}, ValueError, "'C' parameter"),
        ({"contamination": 0.0}, ValueError, r"'contamination' parameter of EnclosingBall must be a float in the range \(0, 0.5\], 'auto' or None. Got 0.0 instead"),
        ({"contamination": 0.51}, ValueError, "'contamination' parameter"),
        ({"contamination": True}, ValueError, "'contamination' parameter"),
        ({"contamination": "none"}, ValueError, "'contamination' parameter"),
        ({"contamination": np.nan}, ValueError, "'contamination' parameter"),
        ({"contamination": [0.1]}, TypeError, "'contamination' parameter"),
        ({"kernel": "gauss"}, ValueError, "'kernel' .* one of"),
        ({"gamma": 0.0}, ValueError, "'gamma' parameter"),
        ({"gamma": "wide"}, ValueError, "'gamma' .* one of"),
        ({"degree": 0}, ValueError, "'degree' parameter"),
        ({"step": "newton"}, ValueError, "'step' .* one of 'toward', 'away', 'pairwise', 'swap'. Got 'newton'"),
        ({"tol": 0}, ValueError, "'tol' parameter"),
        ({"max_iter": 0}, ValueError, "'max_iter' parameter"),
        ({"time_limit": -1}, ValueError, "'time_limit' parameter"),
        ({"memory_limit": 5}, ValueError, "'memory_limit' parameter"),
        ({"memory_limit": 1 << 14}, ValueError, "'memory_limit' parameter must be at least .* bytes"),
        ({"n_jobs": 0}, ValueError, "'n_jobs' parameter"),
        ({"random_state": -1}, ValueError, "'random_state' parameter"),
        ({"verbose": "a"}, ValueError, "'verbose' parameter"),
        ({"callback": 3}, ValueError, "'callback' parameter"),
        ({"kernel": "sigmoid", "coef0": -9.0}, ValueError, r"must have k\(x, x\) >= 0.* Got -.* at row \d+ instead"),
        ({"kernel": "precomputed"}, ValueError, r"must be a square matrix .* Got shape \(300, 4\)"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(parameters, error, message):
    ball = EnclosingBall(**parameters)
    with pytest.raises(error, match=message):
        ball.fit(points(300))
    assert not hasattr(ball, "radius_")


@pytest.mark.parametrize(
    ("X", "weights", "message"),
    [
        ([[1.0], [np.nan]], None, "Got NaN at row 1, column 0"),
        ([[np.inf], [0.0]], None, "Got infinity at row 0, column 0"),
        (np.empty((0, 3)), None, "0 sample"),
        ([1.0, 2.0], None, "Expected 2D array"),
        ([[1.0], [2.0]], [1.0], "'sample_weight' .* length 2. Got length 1"),
        ([[1.0], [2.0]], [1.0, -1.0], "nonnegative. Got -1.0 at row 1"),
        ([[1.0], [2.0]], [0.0, 0.0], "all samples have zero or negative weights"),
    ],
)
def test_bad_data(X, weights, message):
    with pytest.raises(ValueError, match=message):
        EnclosingBall().fit(X, sample_weight=weights)


def test_no_room_for_two_rows_of_the_kernel():
    X = np.arange(100_000.0)[:, None]
    with pytest.raises(ValueError, match="'memory_limit' .* room for two rows"):
        EnclosingBall(memory_limit=1_500_000).fit(X)


def test_bad_data_to_predict():
    X = points(30)
    with pytest.raises(NotFittedError):
        EnclosingBall().predict(X)
    for kernel in ("rbf", "linear"):
        ball = EnclosingBall(kernel=kernel).fit(X)
        with pytest.raises(ValueError, match="expecting 4 features"):
            ball.predict(X[:, :2])
        with pytest.raises(ValueError, match="X has 2 features, but the model expects"):
            ball.predict(as_rows(X[:, :2].copy()))
        spoiled = X.copy()
        spoiled[3, 1] = np.nan
        with pytest.raises(ValueError, match="Got NaN at row 3, column 1"):
            ball.predict(spoiled)
