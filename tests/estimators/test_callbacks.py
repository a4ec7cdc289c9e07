"""Callbacks of a fit, errors in them, and Ctrl-C."""

import _thread
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.cases.pairwise import pairwise
from widemargin import SVC, SVR, EnclosingBall, LinearSVC, NuSVC
from widemargin.solvers.kernel.irwls import IRWLS

SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))


@pytest.mark.skipif(
    SKLEARN < (1, 9), reason="sklearn.callback came with scikit-learn 1.9"
)
def test_scikit_learn_callbacks(binary, iris):
    class Recorder:
        def __init__(self, stop_at=None):
            self.events, self.scores, self.stop_at = [], [], stop_at

        def setup(self, estimator, context):
            self.events.append("setup")

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
            self.events.append(f"begin {context.task_name}")

        def on_fit_task_end(
            self, estimator, context, *, X=None, y=None, fitted_estimator=None
        ):
            self.events.append(f"end {context.task_name}")
            if fitted_estimator is not None:
                self.scores.append(fitted_estimator.score(X, y))
            return self.stop_at is not None and len(self.scores) >= self.stop_at

        def teardown(self, estimator, context):
            self.events.append("teardown")

    X, y = binary
    recorder = Recorder()
    clf = LinearSVC().set_callbacks(recorder).fit(X, y)
    steps = len(clf.solution_.trace)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.events.count("begin iteration") == steps
    assert recorder.events.count("end iteration") == steps
    assert len(recorder.scores) == steps
    assert recorder.scores[-1] == clf.score(X, y)
    stopper = Recorder(stop_at=3)
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        clf = LinearSVC().set_callbacks(stopper).fit(X, y)
    assert len(clf.solution_.trace) == 3
    for kernel in ("rbf", "linear", "laplacian"):
        recorder = Recorder()
        clf = SVC(kernel=kernel, solver=IRWLS(working_set=64)).set_callbacks(recorder)
        clf.fit(X, y)
        assert len(recorder.scores) == len(clf.solution_.trace)
        assert recorder.scores[-1] == pytest.approx(clf.score(X, y), abs=0.01)
    classes = Recorder()
    LinearSVC().set_callbacks(classes).fit(*iris)
    assert (
        classes.events.count("begin iteration")
        == classes.events.count("end iteration")
        > 3
    )


def test_ctrl_c_keeps_the_model_and_raises(binary):
    X, y = binary

    def press(step):
        if step.iteration == 5:
            _thread.interrupt_main()

    clf = LinearSVC(callback=press, tol=1e-10)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.score(X, y) > 0.9


def test_ctrl_c_reaches_all_classes(iris):
    X, y = iris

    def press(step):
        if step.iteration == 5 and not pressed:
            pressed.append(step)
            _thread.interrupt_main()

    pressed = []
    clf = LinearSVC(loss="hinge", callback=press, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert [s.status.value for s in clf.solutions_] == ["interrupted"] * 3
    assert all(s.trace[-1].iteration <= 6 for s in clf.solutions_)
    assert clf.score(X, y) > 0.8


def test_ctrl_c_keeps_the_model_of_a_kernel(binary, iris):
    for X, y in (binary, iris):

        def press(step):
            if step.iteration == 2:
                _thread.interrupt_main()

        solver = IRWLS(working_set=16)
        clf = SVC(callback=press, tol=1e-6, solver=solver)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
        assert clf.status_ == "interrupted"
        assert clf.predict(X).shape == y.shape
        assert all(s.trace[-1].iteration <= 3 for s in clf.solutions_)


@pytest.mark.one_of(2)
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
@pairwise(
    ("rows", "estimator", "classes"),
    [
        (rows, estimator, classes)
        for rows, estimator in (
            (200_000, 'LinearSVC(tol=1e-12, solver="interior_point")'),
            (20_000, "SVC(tol=1e-7, C=10)"),
        )
        for classes in (2, 4)
    ],
    strength=1,
)
def test_ctrl_c_from_a_terminal_ends_a_long_fit(rows, estimator, classes):
    script = textwrap.dedent(f"""
        import time, numpy as np
        from widemargin import SVC, SVR, LinearSVC, NuSVC
        from widemargin.estimators import training
        rng = np.random.default_rng(0)
        X = rng.normal(size=({rows}, 40)).astype(np.float32)
        y = rng.integers(0, {classes}, len(X))
        clf = {estimator}
        clf.fit(X[:200], y[:200])  # imports what a fit needs
        make = training.Callbacks
        def told(*given):  # data are checked: from here on Ctrl-C keeps a model
            print("fitting", flush=True)
            return make(*given)
        training.Callbacks = told
        try:
            clf.fit(X, y)
        except KeyboardInterrupt:
            print("raised", clf.status_, clf.predict(X[:5]).size, flush=True)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "fitting\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "raised interrupted 5\n"


@pytest.mark.parametrize(
    ("kind", "module"),
    [(LinearSVC, "classifier"), (SVR, "regressor"), (EnclosingBall, "enclosing_ball")],
)
def test_ctrl_c_without_a_model_says_so(binary, monkeypatch, kind, module):
    """Where data are read, and a second one: it was a traceback of what was at work."""
    X, y = binary
    machine = kind().fit(X, y)
    before = dict(vars(machine))

    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"widemargin.estimators.{module}.read_rows", pressed)
    said = (
        f"Ctrl-C ended the fit of {kind.__name__} at once: no model was kept, and the "
    )
    with pytest.raises(KeyboardInterrupt, match=said) as told:
        machine.fit(X, y)
    assert told.value.__suppress_context__
    assert vars(machine) == before


def test_callback_and_verbose(binary, capfd):
    X, y = binary
    steps = []
    LinearSVC(callback=steps.append, verbose=1).fit(X, y)
    assert [s.iteration for s in steps] == list(range(len(steps)))
    err = capfd.readouterr().err
    assert "gap" in err
    assert "1e-04" in err
    LinearSVC().fit(X, y)
    out, err = capfd.readouterr()
    assert out == err == ""


@pytest.mark.parametrize("error", [ValueError("boom"), RuntimeError("boom")])
@pytest.mark.parametrize("memory_limit", [None, 1 << 14])
def test_an_error_in_a_callback_ends_all_classes(iris, error, memory_limit):
    steps = []

    def fail(step):
        steps.append(step)
        if step.iteration == 2:
            raise error

    clf = LinearSVC(callback=fail, tol=1e-12, memory_limit=memory_limit)
    with pytest.raises(type(error), match="boom") as caught:
        clf.fit(*iris)
    assert caught.value is error
    assert steps[-1].iteration == 2
    assert not hasattr(clf, "classes_")


def test_an_error_in_a_callback_of_two_classes(binary):
    def fail(step):
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        LinearSVC(callback=fail).fit(*binary)


@pytest.mark.parametrize("memory_limit", [None, 1 << 14])
def test_keyboard_interrupt_of_a_callback_is_ctrl_c(binary, iris, memory_limit):
    def press(step):
        if step.iteration == 5:
            raise KeyboardInterrupt

    for data in (binary, iris):
        clf = LinearSVC(
            loss="hinge", callback=press, tol=1e-12, memory_limit=memory_limit
        )
        with pytest.raises(KeyboardInterrupt):
            clf.fit(*data)
        assert {s.status.value for s in clf.solutions_} == {"interrupted"}
        assert clf.predict(data[0]).shape == data[1].shape


@pytest.mark.parametrize("memory_limit", [None, 1 << 14])
def test_an_answer_that_stops_stops_all_classes(iris, memory_limit):
    def stop(step):
        seen.append(step.problem)
        return len(seen) == 10

    seen = []
    clf = LinearSVC(loss="hinge", callback=stop, tol=1e-12, memory_limit=memory_limit)
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        clf.fit(*iris)
    assert len(seen) == 10
    assert {s.status.value for s in clf.solutions_} == {"stopped_by_callback"}


def test_a_step_says_which_class_it_is_about(iris):
    steps = []
    clf = LinearSVC(callback=steps.append).fit(*iris)
    for k, solution in enumerate(clf.solutions_):
        assert [s for s in steps if s.problem == k] == solution.trace


@pytest.mark.skipif(
    SKLEARN < (1, 9), reason="sklearn.callback came with scikit-learn 1.9"
)
def test_callbacks_of_scikit_learn_end_when_a_fit_fails(binary):
    class Recorder:
        def __init__(self):
            self.events = []

        def setup(self, estimator, context):
            self.events.append("setup")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("boom")

        def teardown(self, estimator, context):
            self.events.append("teardown")

    recorder = Recorder()
    clf = LinearSVC().set_callbacks(recorder)
    before = vars(clf).keys()
    with pytest.raises(RuntimeError, match="boom"):
        clf.fit(*binary)
    assert recorder.events == ["setup", "teardown"]
    assert vars(clf).keys() == before


@pytest.mark.parametrize("kind", [SVC, LinearSVC, NuSVC, SVR])
def test_a_pipeline_and_a_search_where_nobody_listens_are_solved_as_fits_are(kind):
    X, y = load_iris(return_X_y=True)
    alone = kind().fit(StandardScaler().fit_transform(X), y)
    assert alone.solution_.solver == "batch"
    pipeline = make_pipeline(StandardScaler(), kind()).fit(X, y)
    assert pipeline[-1].solution_.solver == "batch"
    search = GridSearchCV(kind(), {"tol": [1e-3]}).fit(X, y)
    assert search.best_estimator_.solution_.solver == "batch"
