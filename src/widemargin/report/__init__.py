"""One self-contained page on a training: how good, how long, and on what data."""

import importlib.metadata
import os
import platform
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.features.scaling import ROUNDING, uneven
from widemargin.losses.norms import LossNorm
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS
from widemargin.parameters import Checker
from widemargin.report import certificates, html, outliers, regression, weights
from widemargin.report.run import (
    SAMPLE,
    Counts,
    Labels,
    Run,
    check_estimator,
    run_of,
    time_of,
)
from widemargin.report.timing import Timing as Timing
from widemargin.solution import Status
from widemargin.system.files import missing_extra, replacing

# Rows of a table, and classes of a confusion matrix; of more, the worst are shown.
MOST = 30
# Classes of a confusion matrix that is no wider than a picture.
WIDE = 10


def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    test: tuple[Any, ArrayLike | None] | None = None,
    title: str | None = None,
    notes: Sequence[tuple[str, str] | Timing] | None = None,
) -> None:
    """Write one HTML page that says how a training went.

    The page holds its pictures, and needs neither a network nor a script. It can be
    read on a phone, in print without color, and by a screen reader.

    Parameters
    ----------
    path : str or path
        File to write. It appears, or is replaced, when the page is complete.
    estimator : LinearSVC, SVC, NuSVC, BudgetSVC, LinearSVR, SVR, NuSVR or OneClassSVM
        Fitted; or `LinearSVCCV`, `SVCCV`, `LinearSVRCV` or `SVRCV`, whose scores are
        drawn too.
    X : array, sparse matrix or Rows (m, n)
        The training data as the estimator got them: after a pipeline those of
        ``pipeline[:-1].transform(X)``. What the page says of data is about these.
    y : array (m,)
        The training labels, or targets. For a `OneClassSVM`, which has none, and in
        ``test`` then, it says nothing and may be None.
    test : tuple of X and y, or None, default=None
        Data that was not trained on, for the accuracy and the confusion matrix, the
        errors of predictions, or the share of outliers. None:
        these are of the training data, and say so.
    title : str or None, default=None
        Heading of the page; None: "Training report".
    notes : sequence of (str, str) and `Timing`, or None, default=None
        Labels and texts to show as a table; each `Timing`, what a program took for a
        problem, is a bar at the top of the page.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If ``estimator`` is of another kind, a pipeline for instance.
    ValueError
        If X and y are not of the same length, have other columns than the training
        data, or no class that was trained on.
    OSError
        If the file cannot be written.

    Notes
    -----
    Reads the training data five times and the test data once; takes about m (2 c + 8)
    numbers of memory for c classes. Of rows that are not in memory it takes about m
    numbers, and draws the margins of a sample of at most 262,144 rows. The same
    estimator and data give the same bytes.

    Examples
    --------
    >>> from widemargin import LinearSVC
    >>> from widemargin.report import write_report
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], ["a", "a", "b", "b"]
    >>> write_report("report.html", LinearSVC().fit(X, y), X, y)  # doctest: +SKIP
    """
    check_matplotlib()
    check_estimator(estimator)
    _check_data(estimator.model_, X, y, test)
    run: Any = _begin(estimator.model_)(estimator, X, y, test)
    largest = ""
    if run.model.has_weights:
        table = weights.table(run.model, run.names, run.columns)
        largest = html.section("Largest weights", table)
    times = [note for note in notes or () if isinstance(note, Timing)]
    told = [note for note in notes or () if not isinstance(note, Timing)]
    tables = [
        html.section("Certificate", certificates.section(run)),
        largest,
        html.section("Data", _data(run)),
        html.section("Settings", _settings(estimator)),
        html.section("Notes", _notes(told)) if told else "",
        html.section("Versions", html.facts("Versions", _versions())),
    ]
    wide = 2 * (len(run.solutions) > 1)  # tables that have a column for each class
    content = [
        _summary(run),
        html.section("Beside other programs", _bars(times)) if times else "",
        html.section("How the training went", _drawn(run)),
        *tables[:wide],
        f'<div class="columns">{"".join(tables[wide:])}</div>\n',
    ]
    heading = html.plain(title or "Training report")
    page = html.page(heading, "".join(content))
    with replacing(path) as file:
        file.write(page.encode())


def _bars(timings: Sequence[Timing]) -> str:
    """Seconds and gaps of this library and of others."""
    from widemargin.report import drawing
    from widemargin.report.bars import bars

    with drawing.style():
        return html.figure(*bars(timings))


def check_matplotlib() -> None:
    """Raise ImportError if the pictures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("a report", "plot") from None


def _check_data(model: Model, X: Any, y: Any, test: Any) -> None:
    """Refuse labels or targets that were forgotten, and a test that is no pair."""
    check = Checker("write_report")
    has_labels = model.scheme != ONE_CLASS
    if y is None and has_labels:
        expected = f"hold a label or target for each of {as_rows(X).shape[0]:,} rows"
        check.refuse_part("y", expected, "None")
    if test is None:
        return
    if not (isinstance(test, tuple | list) and len(test) == 2):
        found = f"{len(test)} of them" if isinstance(test, tuple | list) else ""
        found = found or f"one {type(test).__name__}"
        check.refuse_part("test", "be a pair (X, y) or None", found)
    if test[1] is None and has_labels:
        check.refuse_part("test", "be a pair (X, y) or None", "None as its y")


def _begin(model: Model) -> Callable[..., Any]:
    """What reads the data for a model."""
    if model.scheme == ONE_CLASS:
        return outliers.run_of
    return regression.run_of if model.is_regression else run_of


def _drawn(run: Any) -> str:
    """The pictures of a classifier, of a regression, or of one class."""
    if run.model.scheme == ONE_CLASS:
        return outliers.figures(run)
    return regression.figures(run) if run.model.is_regression else _figures(run)


# -- the sentence ----------------------------------------------------------------------


def _summary(run: Any) -> str:
    """What was trained, how good, how long; and what to do where that failed."""
    if run.model.is_regression:
        how_good, comparison = regression.judgment(run), regression.comparison(run)
    elif run.model.scheme == ONE_CLASS:
        how_good, comparison = outliers.judgment(run), outliers.comparison(run)
    else:
        how_good = f"{run.data} accuracy {html.percent(_right(run.judged))}"
        comparison = _comparison(run)
    sentence = f"{_what(run)} {_outcome(run)}; {how_good}."
    paragraphs = [
        f'<p class="lead">{html.prose(sentence)}</p>',
        f"<p>{html.prose(comparison)}</p>",
    ]
    if _is_cut(run):
        paragraphs.append(f"<p>{html.prose(_cut(run))}</p>")
    worst = max(run.solutions, key=lambda s: s.certificate.relative_gap)
    if worst.status != Status.SOLVED:
        advice = f"<strong>Not solved.</strong> {html.prose(worst.message)}"
        paragraphs.insert(1, f'<p class="note">{advice}</p>')
    return "\n".join(paragraphs) + "\n"


def _what(run: Run) -> str:
    (m, n), settings = run.rows.shape, run.estimator.get_params(deep=False)
    loss = run.model.meta["loss"].replace("_", " ")
    if settings.get("budget") is not None:
        kind = "support vectors" if _is_cut(run) else "losses"
        loss += f", a budget of {settings['budget']} {kind}"
    if isinstance(settings.get("norm"), LossNorm):
        loss += f", {settings['norm']}"
    if (z := getattr(run.estimator, "feature_map_", None)) is not None:
        loss += f", rank {z.rank:,} by {z.method}, error {html.percent(z.error)}"
        if z.landmarks is not None:  # else it says nothing
            loss += f", {html.percent(z.trace_residual)} of the trace left"
    classes = f", {len(run.names)} classes" if len(run.names) > 2 else ""
    if "nu" in settings:
        weight = f"nu = {settings['nu']:g}"
    else:
        weight = f"C = {settings.get('C') or run.estimator.C_:g}"
    problem = f"{loss}, {weight}{classes}"
    kernel, kind = getattr(run.estimator, "kernel_", None), "SVM"
    if run.model.scheme == ONE_CLASS:
        kind = "machine of one class"
    if run.model.is_regression:
        kind = "support vector regression"
        problem = f"{loss}, epsilon = {run.model.meta['epsilon']:g}, {weight}"
    if kernel is None or kernel.name == "linear":
        return f"A linear {kind} ({problem}) on {m:,} rows × {n:,} features"
    name, *numbers = kernel.facts.items()
    of_kernel = "".join(f"{key} = {value:.4g}, " for key, value in numbers)
    article = "An" if kind == "SVM" else "A"
    return (
        f"{article} {kind} with the kernel {name[1]} ({of_kernel}{problem}) on "
        f"{m:,} rows × {n:,} features"
    )


def _outcome(run: Run) -> str:
    k = len(run.solutions)
    gap = max(s.certificate.relative_gap for s in run.solutions)
    time = time_of(run.estimator)
    failed = sum(s.status != Status.SOLVED for s in run.solutions)
    if failed:
        which = f"{failed} of {k} binary problems" if k > 1 else "it"
        goal = f"the relative gap of {run.solutions[0].tol:.0e} asked for"
        return f"was stopped after {time}, before {which} reached {goal}"
    if k > 1:
        return f"was solved to certified relative gaps of at most {gap:.1e} in {time}"
    return f"was solved to a certified relative gap of {gap:.1e} in {time}"


def _is_cut(run: Run) -> bool:
    """Whether support vectors were left out on purpose."""
    return getattr(run.estimator, "method", "norm") != "norm"


def _cut(run: Run) -> str:
    """What a budget left out, and what that costs."""
    before = sum(np.count_nonzero(solution.alpha) for solution in run.solutions)
    kept, worst = len(run.estimator.support_), float(run.estimator.increase_.max())
    advice = "; a larger budget helps" if html.is_too_small(run.estimator) else ""
    counted = ", counted once for each binary problem" if len(run.solutions) > 1 else ""
    return (
        f"The model that predicts keeps {kept:,} support vectors, and its objective is "
        f"at most {html.above(worst)} the optimum without a budget{advice}. The "
        "certificate and the convergence belong to the machine before the cut, with "
        f"{before:,} support vectors{counted}."
    )


def _comparison(run: Run) -> str:
    """The accuracy of a constant answer, and that on the training data."""
    common = int(np.argmax(run.training[:-1].sum(axis=1)))
    judged = run.judged
    words = (
        "For comparison: always answering the most frequent class "
        f"({run.names[common]}) would be right for "
        f"{html.percent(judged[common].sum() / judged.sum())}"
    )
    if run.test is None:
        return f"{words}. No test data were given: this is about the training data."
    training = html.percent(_right(run.training))
    return f"{words}; the training accuracy is {training}."


def _right(counts: Counts) -> float:
    """Share of the rows that are right."""
    return float(np.trace(counts) / counts.sum())


# -- pictures --------------------------------------------------------------------------


def _figures(run: Run) -> str:
    """Pictures of the solves, of the margins and of two features; the confusions."""
    from widemargin.report import course, drawing, pictures, thresholds

    labels = run.labels if run.drawn is None else run.labels[run.drawn]
    known = labels >= 0
    labels = labels[known]
    margin = _margins(run.scores[known], labels)
    which = (
        "" if run.drawn is None else f" Drawn are {len(run.drawn):,} rows, at random."
    )
    solutions, names, scheme = run.solutions, run.names, run.model.scheme
    with drawing.style():
        if len(names) == 2:
            drawn = [
                course.convergence(solutions[0]),
                pictures.margins(margin, labels, names, which),
            ]
        else:
            drawn = [
                course.convergence_of_many(solutions, run.problems, scheme),
                pictures.margins_of_many(margin, which, scheme),
            ]
        drawn += course.activity(solutions, run.problems)
        if run.curves is not None:
            drawn += thresholds.pictures_of(run.curves, names, run.data)
        if hasattr(run.estimator, "Cs_"):
            drawn.append(pictures.selection(run.estimator))
        figures = [*(html.figure(*picture) for picture in drawn), _confusions(run)]
        if run.rows.shape[1] == 2:
            support = np.sort(run.estimator.support_)
            plane = pictures.Plane(
                run.model, run.rows, run.labels, support, names, run.columns
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


def _confusions(run: Run) -> str:
    """Which class was taken for which: a matrix, or of many classes the worst pairs."""
    c, counts = len(run.names), run.judged
    names = [*run.names, "another label"][: c + bool(counts[c].any())]
    counts = counts[: len(names)]
    right = f"{np.trace(counts):,} of {counts.sum():,} {run.data} rows are right"
    if c > MOST:
        from widemargin.report import drawing, pictures

        with drawing.style():
            drawn = html.figure(*pictures.heat(counts, names, run.names))
        pairs = _worst_pairs(counts, names, run.names)
        return drawn + html.figure("Largest confusions", pairs, f"{right}.")
    caption = (
        f"{right}: see the diagonal (bold). A line holds the rows of one true "
        "class; a dark cell off the diagonal is a frequent error."
    )
    table = html.matrix(counts, names, run.names)
    return html.figure("Confusion matrix", table, caption, wide=c > WIDE)


def _worst_pairs(counts: Counts, names: list[str], guesses: list[str]) -> str:
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


def _data(run: Any) -> str:
    """Facts on the training data, and its classes, or errors of a regression."""
    rows, (m, n) = run.rows, run.rows.shape
    share = rows.sweep(_count_nonzeros) / (m * n)
    facts = [
        ("rows", f"{m:,}"),
        ("columns", f"{n:,}{weights.counting(run.model)}"),
        ("numbers", f"{rows.dtype}, {html.percent(share)} nonzero"),
        *_scaling(run.model),
        ("repeated rows", _repeats(rows)),
        *_scales(rows, run.columns),
    ]
    return html.facts("Data", facts) + _judged(run)


def _judged(run: Any) -> str:
    """A table of the classes, of errors, or of outliers."""
    if run.model.scheme == ONE_CLASS:
        return outliers.table(run)
    return regression.targets(run) if run.model.is_regression else _classes(run)


def _scaling(model: Model) -> list[tuple[str, str]]:
    """How the columns were scaled before, where the model keeps the word for it."""
    if "scale" not in model.meta:
        return []
    words = f"{html.plain(model.meta['scale'])}: this page has the scaled columns"
    return [("scaling", words)]


def _repeats(rows: Rows) -> str:
    """How many rows equal an earlier one, in words; seeing it takes memory."""
    m = rows.shape[0]
    if not rows.is_in_memory and m > SAMPLE:
        return f"not counted in more than {SAMPLE:,} rows in files"
    repeated = _repeated_rows(rows)
    share = html.percent(repeated / m)
    return f"{repeated:,} ({share}) equal an earlier row" if repeated else "none"


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
    varying = np.flatnonzero(std > ROUNDING * np.abs(mean))
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
        if uneven(rows) is not None:
            facts.append(("advice", _SCALE))
    return facts


_SCALE = (
    "Scale the columns: with scales as far apart as these the largest ones decide "
    "alone, and a fit takes longer. StandardScaler() in a pipeline does it, or "
    "widemargin train --scale standard."
)


def _classes(run: Run) -> str:
    """Rows of each class, and how many of them are right."""
    c = len(run.names)
    sizes, judged = (counts[:-1].sum(axis=1) for counts in (run.training, run.judged))
    right = np.diag(run.judged)
    support = run.estimator.n_support_
    guessed = run.judged.sum(axis=0)
    recall, precision = f"recall ({run.data})", f"precision ({run.data})"
    header = ["class", "rows", "share", run.model.vectors_name, recall, precision]
    rows = [
        [
            run.names[k],
            f"{sizes[k]:,}",
            html.percent(sizes[k] / sizes.sum()),
            f"{support[k]:,}",
            html.percent(right[k] / judged[k]) if judged[k] else "no rows",
            html.percent(right[k] / guessed[k]) if guessed[k] else "never said",
        ]
        for k in range(c)
    ]
    said = (
        "<p>Recall: the share of a class that is found. Precision: the share of the "
        "rows taken for a class that are of it.</p>"
    )
    if c <= MOST:
        return said + html.table("Classes", header, rows)
    half, order = MOST // 2, np.argsort(-sizes, kind="stable")
    ends = [rows[k] for k in (*order[:half], *order[-half:])]
    words = said + f"<p>The {half} largest and the {half} smallest of {c} classes:</p>"
    return words + html.table("Classes", header, ends)


def _settings(estimator: Any) -> str:
    """Which solver was chosen and why, and the parameters."""
    reasons = sorted({f"{s.solver}, {s.reason}" for s in estimator.solutions_})
    facts = [("solver chosen", html.plain(reason)) for reason in reasons]
    parameters = estimator.get_params(deep=False)
    parameters.pop("callback", None)  # who watched says nothing on the model
    if parameters.get("probability") == "deprecated":  # scikit-learn's word for unset
        del parameters["probability"]
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
