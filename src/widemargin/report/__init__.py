"""One self-contained page on a training: how good, how long, and on what data."""

import importlib.metadata
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.files import missing_extra, replacing
from widemargin.model import Model
from widemargin.parameters import Checker
from widemargin.report import html, weights
from widemargin.solution import Solution, Status

Vector = NDArray[np.float64]
Labels = NDArray[np.intp]

# Rows of a table, and classes of a confusion matrix; of more, the worst are shown.
MOST = 30
# Classes of a confusion matrix that is no wider than a picture.
WIDE = 10


def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    test: tuple[Any, ArrayLike] | None = None,
    title: str | None = None,
    notes: Sequence[tuple[str, str]] | None = None,
) -> None:
    """Write one HTML page that says how a training went.

    The page holds its pictures, and needs neither a network nor a script. It can be
    read on a phone, in print without color, and by a screen reader.

    Parameters
    ----------
    path : str or path
        File to write. It appears, or is replaced, when the page is complete.
    estimator : LinearSVC
        Fitted.
    X : array, sparse matrix or Rows (m, n)
        The training data.
    y : array (m,)
        The training labels.
    test : tuple of X and y, or None, default=None
        Data that was not trained on, for the accuracy and the confusion matrix. None:
        these are of the training data, and say so.
    title : str or None, default=None
        Heading of the page; None: "Training report".
    notes : sequence of (str, str) or None, default=None
        Labels and texts to show as a table, such as the timings of other programs.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If ``estimator`` is no such estimator, but a pipeline, say.
    ValueError
        If X and y are not of the same length, or are not what was trained on.
    OSError
        If the file cannot be written.

    Notes
    -----
    Reads the training data four times and the test data once; takes about m (2 c + 8)
    numbers of memory for c classes. The same estimator and data give the same bytes.

    Examples
    --------
    >>> from widemargin import LinearSVC
    >>> from widemargin.report import write_report
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], ["a", "a", "b", "b"]
    >>> write_report("report.html", LinearSVC().fit(X, y), X, y)  # doctest: +SKIP
    """
    check_matplotlib()
    run = _run(estimator, X, y, test)
    tables = [
        html.section("Certificate", _certificate(run)),
        html.section(
            "Largest weights", weights.table(run.model, run.names, run.columns)
        ),
        html.section("Data", _data(run)),
        html.section("Settings", _settings(estimator)),
        html.section("Notes", _notes(notes)) if notes else "",
        html.section("Versions", html.facts("Versions", _versions())),
    ]
    wide = 2 * (len(run.solutions) > 1)  # so many tables have a column a class
    content = [
        _summary(run),
        html.section("How the training went", _figures(run)),
        *tables[:wide],
        f'<div class="columns">{"".join(tables[wide:])}</div>\n',
    ]
    heading = html.plain(title or "Training report")
    page = html.page(heading, "".join(content))
    with replacing(path) as file:
        file.write(page.encode())


def check_matplotlib() -> None:
    """Raise ImportError if the pictures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("a report", "plot") from None


# -- what the page is about ------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """A training and its scores, computed once.

    Labels and guesses (m,) are indices of classes, -1 for a label that is none of them.
    """

    estimator: Any
    model: Model
    solutions: list[Solution]
    names: list[str]
    rows: Rows
    scores: Vector
    training: tuple[Labels, Labels]
    test: tuple[Labels, Labels] | None

    @property
    def judged(self) -> tuple[Labels, Labels]:
        """Labels and guesses that count: of the test data, if there are any."""
        return self.test or self.training

    @property
    def data(self) -> str:
        """Where these are from."""
        return "test" if self.test else "training"

    @property
    def columns(self) -> list[str]:
        """Names of the columns, or their numbers where the data had no names."""
        names = weights.columns(self.model)
        if isinstance(names, range):
            return [f"column {j}" for j in names]
        return [html.plain(name) for name in names]


def _run(
    estimator: Any, X: Any, y: ArrayLike, test: tuple[Any, ArrayLike] | None
) -> _Run:
    """Score the data; ValueError where it does not fit together."""
    if not hasattr(type(estimator), "model_"):
        check = Checker("write_report")
        check.refuse_model("estimator", "a fitted LinearSVC", estimator)
    model, rows = estimator.model_, as_rows(X)
    labels = _indices("y", model.classes, y, rows)
    if not np.any(labels >= 0):
        raise ValueError(
            "y must hold the classes that the estimator was fitted on. "
            f"Got {html.plain(np.ravel(y)[0])} instead."
        )
    scores = model.scores(rows)
    tested = None
    if test is not None:
        others = as_rows(test[0])
        truth = _indices("y of test", model.classes, test[1], others)
        tested = truth, _indices("", model.classes, model.predict(others), others)
    guesses = _indices("", model.classes, model.decide(scores), rows)
    names = [html.plain(c) for c in model.classes]
    solutions = list(estimator.solutions_)
    training = labels, guesses
    return _Run(estimator, model, solutions, names, rows, scores, training, tested)


def _indices(name: str, classes: NDArray[Any], y: ArrayLike, rows: Rows) -> Labels:
    """Index of each label among the sorted classes: (m,), -1 where it is none."""
    y, m = np.ravel(np.asarray(y)), rows.shape[0]
    if len(y) != m:
        raise ValueError(f"{name} must have length {m}. Got length {len(y)} instead.")
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[place] == y, place, -1)


# -- the sentence ----------------------------------------------------------------------


def _summary(run: _Run) -> str:
    """What was trained, how good, how long; and what to do where that failed."""
    truth, guesses = run.judged
    accuracy = f"{run.data} accuracy {html.percent(np.mean(truth == guesses))}"
    sentence = f"{_what(run)} {_outcome(run)}; {accuracy}."
    paragraphs = [
        f'<p class="lead">{html.prose(sentence)}</p>',
        f"<p>{html.prose(_comparison(run))}</p>",
    ]
    worst = max(run.solutions, key=lambda s: s.certificate.relative_gap)
    if worst.status is not Status.SOLVED:
        advice = f"<strong>Not solved.</strong> {html.prose(worst.message)}"
        paragraphs.insert(1, f'<p class="note">{advice}</p>')
    return "\n".join(paragraphs) + "\n"


def _what(run: _Run) -> str:
    (m, n), settings = run.rows.shape, run.estimator.get_params(deep=False)
    loss = settings["loss"].replace("_", " ")
    classes = f", {len(run.names)} classes" if len(run.names) > 2 else ""
    problem = f"{loss}, C = {settings['C']:g}{classes}"
    return f"A linear SVM ({problem}) on {m:,} rows × {n:,} features"


def _outcome(run: _Run) -> str:
    k = len(run.solutions)
    gap = max(s.certificate.relative_gap for s in run.solutions)
    time = html.seconds(max(s.seconds for s in run.solutions))
    failed = sum(s.status is not Status.SOLVED for s in run.solutions)
    if failed:
        which = f"{failed} of {k} binary problems" if k > 1 else "it"
        goal = f"the relative gap of {run.solutions[0].tol:.0e} asked for"
        return f"was stopped after {time}, before {which} reached {goal}"
    if k > 1:
        gaps = f"certified relative gaps of at most {gap:.1e}"
        return f"was solved to {gaps}, the slowest class in {time}"
    return f"was solved to a certified relative gap of {gap:.1e} in {time}"


def _comparison(run: _Run) -> str:
    """The accuracy of a constant answer, and that on the training data."""
    labels, guesses = run.training
    common = int(np.argmax(np.bincount(labels[labels >= 0])))
    words = (
        "For comparison: always answering the most frequent class "
        f"({run.names[common]}) would be right for "
        f"{html.percent(np.mean(run.judged[0] == common))}"
    )
    if run.test is None:
        return f"{words}. No test data were given: this is about the training data."
    training = html.percent(np.mean(labels == guesses))
    return f"{words}; the training accuracy is {training}."


# -- pictures --------------------------------------------------------------------------


def _figures(run: _Run) -> str:
    """Pictures of the solves, of the margins and of two features; the confusions."""
    from widemargin.report import pictures

    labels, _ = run.training
    known = labels >= 0
    margin = _margins(run.scores[known], labels[known])
    solutions, names = run.solutions, run.names
    with pictures.style():
        if len(names) == 2:
            drawn = [
                pictures.convergence(solutions[0]),
                pictures.margins(margin, labels[known], names),
            ]
        else:
            drawn = [
                pictures.convergence_of_many(solutions, names),
                pictures.margins_of_many(margin),
            ]
        drawn.append(pictures.activity(solutions, names))
        figures = [*(html.figure(*picture) for picture in drawn), _confusions(run)]
        if run.rows.shape[1] == 2:
            support = run.estimator.support_
            plane = pictures.Plane(
                run.model, run.rows, labels, support, names, run.columns
            )
            figures.append(html.figure(*pictures.regions(plane)))
    if len(figures) == 3 and len(names) <= WIDE:
        figures[1:] = figures[:0:-1]  # the small matrix fills the column of the first
    return f'<div class="grid">{"".join(figures)}</div>'


def _margins(scores: Vector, labels: Labels) -> Vector:
    """Y f(x), or the score of the true class less the best other: (m,)."""
    if scores.ndim == 1:
        return np.where(labels == 1, scores, -scores)
    rows = np.arange(len(labels))
    others = scores.copy()
    others[rows, labels] = -np.inf
    return np.asarray(scores[rows, labels] - others.max(axis=1))


def _confusions(run: _Run) -> str:
    """Which class was taken for which: a matrix, or of many classes the worst pairs."""
    truth, guesses = run.judged
    c = len(run.names)
    counts = np.zeros((c + 1, c), dtype=np.intp)
    np.add.at(counts, (truth, guesses), 1)  # the last row for the label -1
    names = [*run.names, "another label"][: c + bool(counts[c].any())]
    counts = counts[: len(names)]
    right = f"{np.trace(counts):,} of {len(truth):,} {run.data} rows are right"
    if c > MOST:
        pairs = _worst_pairs(counts, names, run.names)
        return html.figure("Largest confusions", pairs, f"{right}.")
    caption = (
        f"{right}: those on the diagonal (bold). A line holds the rows of one true "
        "class; a dark cell off the diagonal is a frequent error."
    )
    table = html.matrix(counts, names, run.names)
    return html.figure("Confusion matrix", table, caption, wide=c > WIDE)


def _worst_pairs(counts: Labels, names: list[str], guesses: list[str]) -> str:
    """The most frequent errors of a confusion matrix, as a table."""
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST]
    pairs = [divmod(int(place), len(guesses)) for place in order if wrong.flat[place]]
    shares = [html.percent(wrong[i, j] / counts[i].sum()) for i, j in pairs]
    rows = [
        [names[i], guesses[j], f"{wrong[i, j]:,}", share]
        for (i, j), share in zip(pairs, shares, strict=True)
    ]
    header = ["true class", "taken for", "rows", "share of the class"]
    return html.table("Largest confusions", header, rows, words=["taken for"])


# -- tables ----------------------------------------------------------------------------


def _certificate(run: _Run) -> str:
    """Bounds of the optimum, for each binary problem."""
    words = (
        "The dual value is a lower bound of the smallest possible objective, so that "
        "the objective (primal) is at most the gap above it. Both are recomputed from "
        "the answer."
    )
    bounds = [(s.certificate.primal, s.certificate.dual) for s in run.solutions]
    digits = html.decimals(np.abs(bounds).max())
    proofs = [_proof(solution, digits) for solution in run.solutions]
    if len(proofs) == 1:
        return f"<p>{words}</p>{html.facts('Certificate', proofs[0].items())}"
    gaps = np.array([s.certificate.relative_gap for s in run.solutions])
    shown = np.sort(np.argsort(-gaps, kind="stable")[:MOST])
    if len(proofs) > MOST:
        words += f" These are the {MOST} largest relative gaps of {len(proofs)}."
    header = ["class against the rest", *proofs[0]]
    rows = [[run.names[k], *proofs[k].values()] for k in shown]
    return f"<p>{words}</p>{html.table('Certificates', header, rows, words=['status'])}"


def _proof(solution: Solution, digits: int) -> dict[str, str]:
    """The figures of one solution, by name."""
    certificate, last = solution.certificate, solution.trace[-1]
    return {
        "status": solution.status.value,
        "primal": f"{certificate.primal:,.{digits}f}",
        "dual": f"{certificate.dual:,.{digits}f}",
        "gap": f"{certificate.gap:.1e}",
        "relative gap": f"{certificate.relative_gap:.1e}",
        "tol": f"{solution.tol:.0e}",
        "iterations": f"{last.iteration:,}",
        "sweeps": f"{last.sweeps:,}",
        "time": html.seconds(solution.seconds),
        "support vectors": f"{np.count_nonzero(solution.alpha):,}",
    }


def _data(run: _Run) -> str:
    """Facts on the training data, and its classes."""
    rows, (m, n) = run.rows, run.rows.shape
    share = rows.sweep(_count_nonzeros) / (m * n)
    repeated = _repeated_rows(rows)
    repeats = f"{repeated:,} ({html.percent(repeated / m)}) equal an earlier row"
    facts = [
        ("rows", f"{m:,}"),
        ("columns", f"{n:,}"),
        ("numbers", f"{rows.dtype}, {html.percent(share)} nonzero"),
        ("repeated rows", repeats if repeated else "none"),
        *_scales(rows, run.columns),
    ]
    return html.facts("Data", facts) + _classes(run)


def _count_nonzeros(block: Any, part: None) -> int:
    return int((block != 0).sum())


def _repeated_rows(rows: Rows) -> int:
    """Rows equal to an earlier one up to rounding: seen from two random directions."""
    std = rows.moments.std
    directions = np.random.default_rng(0).standard_normal((len(std), 2))
    seen = rows.matvec(directions / np.where(std > 0, std, np.inf)[:, np.newaxis])
    seen = seen[np.argsort(seen[:, 0])]
    steps = np.abs(np.diff(seen, axis=0))
    return int(np.count_nonzero(np.all(steps <= 1e-10 * np.abs(seen).max(), axis=1)))


def _scales(rows: Rows, columns: list[str]) -> list[tuple[str, str]]:
    """Which columns do not vary, and which vary least and most."""
    mean, std = rows.moments
    varying = np.flatnonzero(std > 1e-7 * np.abs(mean))  # below, it is rounding
    constant = np.delete(np.arange(len(std)), varying)
    named = ", ".join(columns[j] for j in constant[:5]) + ", …" * (len(constant) > 5)
    facts = [("constant columns", f"{len(constant):,}: {named}" if named else "none")]
    if varying.size:
        order = varying[np.argsort(std[varying], kind="stable")]
        low, high = order[0], order[-1]
        words = (
            f"standard deviations from {std[low]:.2g} ({columns[low]}) "
            f"to {std[high]:.2g} ({columns[high]}): "
            f"a factor of {std[high] / std[low]:,.1f}"
        )
        facts.append(("scale of columns", words))
    return facts


def _classes(run: _Run) -> str:
    """Rows of each class, and how many of them are right."""
    c, (labels, _), (truth, guesses) = len(run.names), run.training, run.judged
    sizes, judged, right = (
        np.bincount(chosen[chosen >= 0], minlength=c)
        for chosen in (labels, truth, truth[truth == guesses])
    )
    support = run.estimator.n_support_
    header = ["class", "rows", "share", "support vectors", f"right on {run.data} rows"]
    rows = [
        [
            run.names[k],
            f"{sizes[k]:,}",
            html.percent(sizes[k] / sizes.sum()),
            f"{support[k]:,}",
            html.percent(right[k] / judged[k]) if judged[k] else "no rows",
        ]
        for k in range(c)
    ]
    if c <= MOST:
        return html.table("Classes", header, rows)
    half, order = MOST // 2, np.argsort(-sizes, kind="stable")
    ends = [rows[k] for k in (*order[:half], *order[-half:])]
    words = f"<p>The {half} largest and the {half} smallest of {c} classes:</p>"
    return words + html.table("Classes", header, ends)


def _settings(estimator: Any) -> str:
    """Which solver was chosen and why, and the parameters."""
    reasons = sorted({f"{s.solver}, {s.reason}" for s in estimator.solutions_})
    facts = [("solver chosen", html.plain(reason)) for reason in reasons]
    parameters = estimator.get_params(deep=False)
    parameters.pop("callback", None)  # who watched says nothing on the model
    for name, value in parameters.items():
        # The address of a function or an object differs from run to run.
        facts.append((name, html.plain(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)))))
    return html.facts("Settings", facts)


def _notes(notes: Sequence[tuple[str, str]]) -> str:
    pairs = [(html.plain(label), html.plain(words)) for label, words in notes]
    return html.facts("Notes", pairs)


def _versions() -> list[tuple[str, str]]:
    packages = ("widemargin", "numpy", "scipy", "scikit-learn", "matplotlib")
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return [
        *((name, importlib.metadata.version(name)) for name in packages),
        ("Python", platform.python_version()),
        ("machine", machine),
    ]
