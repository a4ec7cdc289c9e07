"""Whom a fit tells of its steps: the user, the printer and scikit-learn's callbacks."""

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from widemargin.estimators.progress import Printer
from widemargin.solution import Status, Step

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin of scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Leave a fit method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Callbacks", "with_callbacks"]


# Attributes with which a point predicts.
Predicting = Callable[..., dict[str, Any]]


class Callbacks:
    """The callbacks of one fit, called one at a time.

    Parameters
    ----------
    estimator : the estimator in `fit`, with its ``classes_``
    n_solves : int, binary problems that report
    data : tuple (X, y, sample_weight), as `fit` got them
    """

    def __init__(
        self, estimator: Any, n_solves: int, data: tuple[Any, Any, Any]
    ) -> None:
        self._estimator, self._data = estimator, data
        self._lock = threading.Lock()
        self._stop = False
        self._error: BaseException | None = None
        self._printer = Printer(estimator.tol, n_solves) if estimator.verbose else None
        self._binary = n_solves == 1
        self._context = None
        # A pipeline or a search gives its parts a context also where nobody listens.
        self._has_listeners = bool(getattr(estimator, "_skl_callbacks", None))
        if self._has_listeners or hasattr(estimator, "_parent_callback_ctx"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._facts())

    @property
    def is_silent(self) -> bool:
        """Whether nobody is told of single steps, but for the line of a slow fit."""
        if self._has_listeners or self._printer is not None:
            return False
        told = self._estimator.callback
        return told is None or isinstance(told, Printer)

    def of(self, problem: int, at: Predicting) -> Callable[[Step], bool]:
        """The callback of one binary problem.

        ``at`` gives the attributes with which a point of the only problem predicts. An
        answer that stops the fit, and an error, reach all problems: each ends at its
        next step.
        """
        return functools.partial(self._call, problem, at)

    def finish(
        self, problems: Iterable[int], gaps: Sequence[float], statuses: Sequence[Status]
    ) -> None:
        """Show how problems ended; Ctrl-C ends those that come after them too."""
        with self._lock:
            for shown in (self._printer, self._estimator.callback):
                if isinstance(shown, Printer):
                    shown.finish(problems, gaps)
        if Status.INTERRUPTED in statuses:
            self.interrupt()

    def interrupt(self) -> None:
        """Let problems that come now end at their first step, as Ctrl-C does."""
        with self._lock:
            if self._error is None:
                self._error = KeyboardInterrupt()

    def count(self, done: int, of: int) -> None:
        """Show how many rows have features."""
        with self._lock:
            for shown in (self._printer, self._estimator.callback):
                if isinstance(shown, Printer):
                    shown.count(done, of)

    def close(self) -> None:
        """End the line of the printer and the task of scikit-learn."""
        if self._printer is not None:
            self._printer.close()
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator, **self._facts()
            )

    def _call(self, problem: int, at: Predicting, step: Step) -> bool:
        """Whether the fit is to stop; raises the error of any problem's callback."""
        step.problem = problem
        with self._lock:
            if self._error is not None:
                raise self._error
            try:
                self._stop = self._stop or self._tell(step, at)
            except BaseException as error:
                self._error = error
                raise
            return self._stop

    def _tell(self, step: Step, at: Predicting) -> bool:
        """Tell all of a step; True if one of them asks to stop."""
        if self._printer is not None:
            self._printer(step)
        stop = bool(self._estimator.callback and self._estimator.callback(step))
        return self._tell_scikit_learn(step, at) or stop

    def _tell_scikit_learn(self, step: Step, at: Predicting) -> bool:
        """One iteration as a subtask of the fit; True if a callback asks to stop."""
        if self._context is None or not self._has_listeners:
            return False
        task = self._context.subcontext(task_name="iteration")
        facts = self._facts()
        task.call_on_fit_task_begin(estimator=self._estimator, **facts)
        if self._binary:
            facts["reconstruction_attributes"] = lambda: _fitted(step, at)
        return bool(task.call_on_fit_task_end(estimator=self._estimator, **facts))

    def _facts(self) -> dict[str, Any]:
        X, y, weights = self._data
        return {
            "X": X,
            "y": y,
            "metadata": None if weights is None else {"sample_weight": weights},
        }


def _fitted(step: Step, at: Predicting) -> dict[str, Any]:
    """What an estimator needs to predict with the model of a step."""
    gap = step.relative_gap
    return at(*step.point()) | {
        "dual_gap_": gap,
        "status_": "running",
        "_meta": {"dual_gap": gap, "status": "running"},
        "_scheme": "binary",
        "_certified": None,
    }
