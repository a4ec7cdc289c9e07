"""The report page: what it says, that it stands alone, that it can be read anywhere."""

import functools
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.cases.report_pages import Page, clouds, words_only
from widemargin import SVC, LinearSVC, as_rows
from widemargin.models.model import Decision, Model
from widemargin.report import Timing, html, write_report
from widemargin.report.html import rounded
from widemargin.report.weights import largest_weights
from widemargin.solution import Trace

ALIEN = {"script", "link", "iframe", "object", "img", "image", "foreignobject"}
ODD = ["<script>alert(1)</script>", '_$x_1$ & "it\'s"', "größe 猫\x1b\n" + "long " * 9]


def report(folder, estimator, X, y, **options):
    """The page of a fitted estimator."""
    path = folder / "report.html"
    assert write_report(path, estimator, X, y, **options) is None
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def binary():
    """An overlapping binary problem in five features, and its estimator."""
    X, y = clouds(2, 5, 150, spread=4.0)
    return LinearSVC().fit(X, y), X, y


def odd_names():
    X, y = clouds(3)
    y = np.array(ODD)[y]
    return LinearSVC().fit(X, y), X, y


def unsolved(n_classes):
    X, y = clouds(n_classes, 8)
    with pytest.warns(ConvergenceWarning):
        return LinearSVC(max_iter=2).fit(X, y), X, y


def stretched(name):
    """A solution with another trace: long, wild, without mu and far from tol."""
    X, y = clouds(2 if name == "long" else 5, 3)
    fitted = LinearSVC().fit(X, y)
    for k, solution in enumerate(fitted.solutions_):
        change = {"details": {}, "seconds": 1e-9}
        steps = [
            replace(step, iteration=i, dual=-1e9 / (i + 1), active=i % 80, **change)
            for i, step in enumerate(solution.trace[:1] * 4000)
        ]
        steps[3].primal = np.inf
        fitted.solutions_[k] = replace(solution, trace=Trace(steps))
    return fitted, X, y


def fitted(X, y, **options):
    return LinearSVC(**options).fit(X, y), X, y


CASES = {
    "two features": lambda: fitted(*clouds(2, spread=3.0)),
    "separable": lambda: fitted(*clouds(2, spread=0.1)),
    "constant column": lambda: fitted(clouds(2)[0] * [1.0, 0.0], clouds(2)[1]),
    "squared hinge": lambda: fitted(*clouds(2, 6, spread=4.0), loss="squared_hinge"),
    "three classes": lambda: fitted(*clouds(3, 4)),
    "ten classes": lambda: fitted(*clouds(10, 2, spread=0.3)),
    "many classes": lambda: fitted(*clouds(35, 12, 8, spread=2.0)),
    "odd names": odd_names,
    "unsolved": lambda: unsolved(2),
    "unsolved classes": lambda: unsolved(4),
    "long": lambda: stretched("long"),
    "long classes": lambda: stretched("long classes"),
    "sparse": lambda: fitted(
        sparse.random_array((60, 9), rng=0), np.arange(60) % 2, solver="interior_point"
    ),
}


# The others have what these have, in another number.
OFTEN = ("two features", "odd names", "unsolved classes", "long classes", "sparse")
PAGES = [
    name if name in OFTEN else pytest.param(name, marks=pytest.mark.full)
    for name in CASES
]


@pytest.fixture(scope="module", params=PAGES)
def page(request, tmp_path_factory):
    return report(tmp_path_factory.mktemp("page"), *CASES[request.param]())


def test_page_is_valid_alone_and_small(page):
    assert page.source.startswith("<!DOCTYPE html>")
    assert len(page.source.encode()) < 300_000
    assert not ALIEN & {tag for tag, _ in page.tags}
    every = [attrs for _, attrs in page.tags]
    assert not any(key.startswith("on") or key == "src" for a in every for key in a)
    assert len(page.named("style")) == 1
    ids = [attrs["id"] for attrs in every if "id" in attrs]
    assert len(ids) == len(set(ids))
    styles = " ".join(attrs.get("style", "") for attrs in every)
    named = set(re.findall(r"#([\w-]+)", styles))
    assert all(re.fullmatch("[0-9a-f]{6}", name) for name in named - set(ids))
    links = [attrs["href"] for attrs in every if "href" in attrs]
    links += re.findall(r"url\(([^)]*)\)", page.source)
    assert all(link.startswith("#") for link in links)
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert "http" not in page.source
    assert "nan" not in page.text.split()


def test_page_can_be_read_by_all(page):
    assert page.named("html") == [{"lang": "en"}]
    assert any(meta.get("name") == "viewport" for meta in page.named("meta"))
    headings = [tag for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1"] + ["h2"] * (len(headings) - 1)
    pictures = page.named("svg")
    headings = ["ROC curve", "Precision and recall", "Confusion map"]
    drawn = [" × 2 features", "Work per iteration", *(f"{h}. " for h in headings)]
    assert len(pictures) == 2 + sum(words in page.text for words in drawn)
    assert all(p["role"] == "img" and len(p["aria-label"]) > 20 for p in pictures)
    assert len(page.named("figcaption")) == len(page.named("figure")) > 2
    boxes = [attrs for attrs in page.named("div") if attrs["class"] == "box"]
    assert all(b["aria-label"] and b["tabindex"] == "0" for b in boxes)
    assert all("scope" in attrs for attrs in page.named("th"))


@words_only
def test_sentence_says_what_how_good_and_how_long(binary, tmp_path):
    estimator, X, y = binary
    page = report(tmp_path, estimator, X, y, test=(X[:100], y[:100]))
    solution = estimator.solution_
    share = 100 * accuracy_score(y[:100], estimator.predict(X[:100]))
    assert (
        "A linear SVM (squared hinge, C = 1) on 300 rows × 5 features was solved to a "
        f"certified relative gap of {solution.certificate.relative_gap:.1e} in "
        f"{html.seconds(estimator.seconds_)}; test accuracy {share:.2f} %."
    ) in page.text
    common = 100 * np.mean(y[:100] == np.argmax(np.bincount(y)))
    assert f"would be right for {common:.2f} %" in page.text
    assert "Not solved" not in page.text


@words_only
def test_sentence_of_several_classes(tmp_path):
    estimator, X, y = fitted(*clouds(3, 4), loss="squared_hinge", C=0.5)
    page = report(tmp_path, estimator, X, y)
    assert "(squared hinge, C = 0.5, 3 classes) on 120 rows × 4 features" in page.text
    assert f"certified relative gaps of at most {estimator.dual_gap_:.1e}" in page.text
    assert "training accuracy" in page.text
    assert "No test data were given" in page.text
    for solution in estimator.solutions_:
        assert f"{solution.certificate.relative_gap:.1e}" in page.text


@words_only
def test_certificate_and_settings(binary, tmp_path):
    estimator, X, y = binary
    page = report(tmp_path, estimator, X, y)
    certificate, trace = estimator.solution_.certificate, estimator.solution_.trace
    for label, value in {
        "status": "solved",
        "primal": f"{certificate.primal:.9f}",
        "dual": f"{certificate.dual:.9f}",
        "relative gap": f"{certificate.relative_gap:.1e}",
        "tol": "1e-04",
        "iterations": str(estimator.n_iter_),
        "sweeps": str(trace[-1].sweeps),
        "support vectors": str(len(estimator.support_)),
        "solver chosen": estimator.solution_.solver,
        "class_weight": "None",
        "numpy": np.__version__,
    }.items():
        assert f"{label} {value}" in page.text
    assert estimator.solution_.reason in page.text


@words_only
def test_time_is_that_of_the_terminal(binary, tmp_path):
    estimator, X, y = fitted(*binary[1:])
    estimator.solutions_ = [replace(s, seconds=7.5) for s in estimator.solutions_]
    estimator.seconds_ = 7.5
    times = re.findall(r"[\d.]+ s\b", report(tmp_path, estimator, X, y).text)
    assert set(times) == {"7.5 s"}


@words_only
def test_certificates_are_in_the_order_of_the_classes(tmp_path):
    estimator, X, y = fitted(*clouds(5, 4, spread=2.0))
    gaps = [s.certificate.relative_gap for s in estimator.solutions_]
    assert np.any(np.diff(gaps) > 0)
    words = report(tmp_path, estimator, X, y).text
    words = words[words.index("Certificate ") :]
    assert re.findall(r"(\d) solved", words) == list("01234")


@words_only
def test_work_is_drawn_and_said(tmp_path):
    for name, changes in (("long", True), ("long classes", True), ("sparse", False)):
        estimator, X, y = CASES[name]()
        page = report(tmp_path, estimator, X, y)
        assert "Work per iteration" in page.text
        assert ("Every iteration worked on all 60 rows" in page.text) != changes


@words_only
def test_the_planes_of_the_margins_are_explained(binary, tmp_path):
    estimator, X, y = binary
    words = report(tmp_path, estimator, X, y).text
    far = np.mean(np.where(y == 1, 1, -1) * estimator.decision_function(X) < -1)
    assert "between it and the plane +1 (dashed, right)" in words
    assert f"{100 * far:.2f} % are even left of -1 (dashed, left)" in words


@words_only
def test_largest_weights_of_two_classes(binary, tmp_path):
    estimator, X, y = binary
    page = report(tmp_path, estimator, X, y)
    order = np.argsort(-np.abs(estimator.coef_[0]))
    shown = " ".join(f"column {j} {estimator.coef_[0, j]:+.3g}" for j in order)
    assert f"feature weight for class 1 {shown}" in page.text
    assert len(page.named("section")) == 6


@words_only
def test_largest_weights_of_many_classes_and_columns(tmp_path):
    X, y = clouds(3, 25)
    estimator = LinearSVC().fit(X, y)
    estimator._meta["feature_names"] = [f"f{j}" for j in range(25)]
    words = report(tmp_path, estimator, X, y).text
    first = np.argmax(np.abs(estimator.coef_).max(axis=0))
    line = " ".join(f"{w:+.3g}" for w in estimator.coef_[:, first])
    assert f"The largest of 25 features. feature 0 1 2 f{first} {line}" in words
    assert len(re.findall(r" f\d+ ", words)) == 20
    del estimator._meta["feature_names"]
    estimator._meta["index_base"] = 1
    assert f"feature 0 1 2 column {first + 1} {line}" in (
        report(tmp_path, estimator, X, y).text
    )
    estimator, X, y = CASES["many classes"]()
    words = report(tmp_path, estimator, X, y).text
    assert "Shown are 30 of 35 classes." in words
    estimator.coef_ *= 0
    assert "All weights are zero." in report(tmp_path, estimator, X, y).text


@words_only
@pytest.mark.parametrize("n_classes", [2, 4])
def test_unsolved_says_how_far_and_what_helps(n_classes, tmp_path):
    estimator, X, y = unsolved(n_classes)
    page = report(tmp_path, estimator, X, y)
    which = "it" if n_classes == 2 else "4 of 4 binary problems"
    assert f"before {which} reached the relative gap of 1e-04 asked for" in page.text
    worst = max(estimator.solutions_, key=lambda s: s.certificate.relative_gap)
    assert f"Not solved. {worst.message}" in page.text
    assert "does not reach the 1e-04 asked for" in page.text


def test_what_comes_from_data_is_escaped(tmp_path):
    estimator, X, y = odd_names()
    estimator.set_params(class_weight={"</td>": 1.0})
    estimator._meta["feature_names"] = ["<i>", "</title>"]
    notes = [("<b>peer</b>", "</table>5 s\0")]
    page = report(tmp_path, estimator, X, y, title="<h1>&amp;", notes=notes)
    for words in (*ODD[:2], "größe 猫\\x1b\\n", "<i>", "</title>", "<b>peer</b>"):
        assert words in page.text
    for words in ("{'</td>': 1.0}", "</table>5 s\\x00", "<h1>&amp;"):
        assert words in page.text
    assert not {"i", "b"} & {tag for tag, _ in page.tags}
    assert len(page.named("h1")) == len(page.named("title")) == 1


@words_only
def test_confusions_of_test_data(tmp_path):
    estimator, X, y = fitted(*clouds(4, 3, 30, spread=3.0))
    rng = np.random.default_rng(1)
    others, truth = X + rng.standard_normal(X.shape), y
    page = report(tmp_path, estimator, X, y, test=(others, truth))
    counts = confusion_matrix(truth, estimator.predict(others))
    assert "predicted true 0 1 2 3" in page.text
    for k, row in enumerate(counts):
        assert " ".join(map(str, (k, *row))) in page.text.replace("true 0 1", "")
    assert f"{np.trace(counts)} of 120 test rows are right" in page.text
    for k, share in enumerate(100 * np.diag(counts) / counts.sum(axis=1)):
        assert re.search(rf"{k} 30 25.00 % \d+ {share:.2f} %", page.text)


@words_only
def test_labels_of_no_class(tmp_path):
    X, y = clouds(2)
    estimator = LinearSVC().fit(X, y)
    page = report(tmp_path, estimator, X, y, test=(X[:4], [7, y[1], -7, y[3]]))
    assert "another label" in page.text
    assert "2 of 4 test rows" in page.text
    weights = (y > 0) | (np.arange(len(y)) % 2 > 0)
    y[~weights] = -1
    with pytest.warns(UserWarning, match="Rows of weight 0 count as removed"):
        estimator.fit(X, y, weights.astype(float))
    assert "another label" in report(tmp_path, estimator, X, y).text


@words_only
def test_many_classes_show_the_largest_confusions(tmp_path):
    estimator, X, y = CASES["many classes"]()
    page = report(tmp_path, estimator, X, y)
    wrong = confusion_matrix(y, estimator.predict(X))
    np.fill_diagonal(wrong, 0)
    i, j = divmod(int(np.argmax(wrong)), 35)
    assert f"{i} {j} {wrong[i, j]} {wrong[i, j] / 8:.2%}"[:-1] in page.text
    assert "Confusion matrix" not in page.text
    assert "The 15 largest and the 15 smallest of 35 classes" in page.text
    assert "35 of 35 problems are solved." in page.text
    assert "Confusion map" in page.text
    gaps = [s.certificate.relative_gap for s in estimator.solutions_]
    assert (
        f"relative gap {min(gaps):.1e} {np.median(gaps):.1e} {max(gaps):.1e}"
        in page.text
    )


@words_only
def test_thresholds_are_those_of_scikit_learn(tmp_path):
    X, y = clouds(2, 3, 100, spread=4.0)
    estimator = LinearSVC().fit(X, y)
    page = report(tmp_path, estimator, X, y)
    scores, guesses = estimator.decision_function(X), estimator.predict(X)
    assert f"The area below the curve is {roc_auc_score(y, scores):.4f}" in page.text
    assert (
        f"The mean precision is {average_precision_score(y, scores):.4f}" in page.text
    )
    found = recall_score(y, guesses)
    assert f"(diamond, threshold 0) finds {found:.2%}"[:-1] in page.text
    precision = precision_score(y, guesses, average=None)
    for k in (0, 1):
        right = recall_score(y, guesses, average=None)[k]
        assert f"{100 * right:.2f} % {100 * precision[k]:.2f} %" in page.text


@words_only
def test_a_class_without_rows_has_no_curves(tmp_path):
    X, y = clouds(2, 3, 100)
    page = report(tmp_path, LinearSVC().fit(X, y), X, y, test=(X[y == 1], y[y == 1]))
    assert "ROC curve" not in page.text
    assert "no rows" in page.text


@words_only
def test_many_pairs_are_a_map_with_names(tmp_path):
    X, y = clouds(6, 3, 20)
    words = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[y]
    estimator = SVC().fit(X, words)
    page = report(tmp_path, estimator, X, words)
    counts = [np.count_nonzero(s.alpha) for s in estimator.solutions_]
    assert f"ant 0 {' '.join(map(str, counts[:5]))} " in page.text
    assert "Support vectors of each pair of classes" in page.text


@words_only
def test_times_of_programs_are_bars(tmp_path):
    X, y = clouds(2, 3, 20)
    notes = [Timing("linear", "other", 2.0, 0.01), ("Machine", "a fast one")]
    page = report(tmp_path, LinearSVC().fit(X, y), X, y, notes=notes)
    assert page.text.index("Seconds to a gap") < page.text.index("Convergence")
    assert "Machine a fast one" in page.text


@words_only
@pytest.mark.parametrize("factor", [900.0, 1100.0])
def test_scales_that_differ_a_thousand_times_get_advice(tmp_path, factor):
    X, y = clouds(2, 2, 40)
    X = X / X.std(axis=0) * [1.0, factor]
    page = report(tmp_path, LinearSVC(max_iter=50).fit(X, y), X, y)
    assert ("StandardScaler() in a pipeline" in page.text) == (factor > 1000)


@words_only
def test_columns_have_names_or_say_where_they_are_counted_from(tmp_path):
    X, y = clouds(2, 2, 40)
    page = report(tmp_path, LinearSVC().fit(X, y), X, y)
    assert "columns 2, counted from 0 as in an array" in page.text
    named = as_rows(X, names=["height", "weight"])
    page = report(tmp_path, LinearSVC().fit(named, y), named, y)
    assert "height" in page.text
    assert "counted from" not in page.text


def test_a_dark_screen_has_colors_of_its_own(binary, tmp_path):
    page = report(tmp_path, *binary)
    assert "prefers-color-scheme:dark" in page.source
    style, drawn = page.source.split("</style>")
    used = set(re.findall(r"var\(--(\w+)\)", drawn))
    assert {"ink", "blue", "rust"} <= used
    dark = style.split("prefers-color-scheme:dark")[1].split("@media print")[0]
    assert used <= set(re.findall(r"--(\w+):", dark))
    assert 'fill="#' not in drawn  # nothing stays white


@functools.cache
def fitted_to_odd_columns():
    """A fit, and its data: a wide, a constant column, and rows that are repeated."""
    X, y = clouds(2, 3, 100)
    X = np.round(X, 1) * [1.0, 1000.0, 0.0] + [0.0, 0.0, 7.0]
    X[150:] = X[:50]
    return LinearSVC(max_iter=500).fit(X, y), X, y


@words_only
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, as_rows])
def test_facts_on_the_data(make, tmp_path):
    estimator, X, y = fitted_to_odd_columns()
    page = report(tmp_path, estimator, make(X), y)
    repeated = len(X) - len(np.unique(X, axis=0))
    assert f"repeated rows {repeated} ({repeated / 2:.2f} %)" in page.text
    assert "constant columns 1: column 2" in page.text
    assert f"float64, {100 * np.mean(X != 0):.2f} % nonzero" in page.text
    std = X.std(axis=0)
    assert f"{std[0]:.2g} (column 0) to {std[1]:.2g} (column 1)" in page.text
    assert f"a factor of {std[1] / std[0]:,.1f}" in page.text


def test_rows_are_binned_or_sampled(tmp_path):
    X, y = clouds(2, 2, 20_000, spread=4.0)
    page = report(tmp_path, LinearSVC().fit(X, y), X, y)
    assert "500 of the 40,000 rows, chosen at random" in page.text
    assert len(page.source) < 300_000


@words_only
def test_the_data_are_read_a_few_times(binary, tmp_path):
    estimator, X, y = binary
    rows = as_rows(X)
    report(tmp_path, estimator, rows, y)
    assert rows.sweeps == 4


def test_same_input_same_bytes_whatever_the_settings_of_matplotlib(binary, tmp_path):
    import matplotlib as mpl

    estimator, X, y = binary
    estimator.set_params(callback=test_labels_of_no_class)
    first = report(tmp_path, estimator, X, y).source
    with mpl.rc_context(
        {"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "a"}
    ):
        before = dict(mpl.rcParams)
        assert report(tmp_path, estimator, X, y).source == first
        assert dict(mpl.rcParams) == before
    assert "callback" not in first
    assert "test_labels_of_no_class" not in first
    estimator.set_params(callback=None)


def test_without_matplotlib(binary, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError,
        match=r'^a report needs the extra .plot.: pip install "widemargin\[plot\]"$',
    ) as caught:
        write_report(tmp_path / "report.html", *binary)
    assert caught.value.__suppress_context__
    assert list(tmp_path.iterdir()) == []


def test_import_needs_no_matplotlib_and_drawing_no_pyplot(tmp_path):
    code = (
        "import sys, widemargin.report as r; assert 'matplotlib' not in sys.modules\n"
        "from widemargin import LinearSVC; X, y = [[0.0], [1.0], [3.0]], [0, 1, 1]\n"
        f"r.write_report({str(tmp_path / 'r.html')!r}, LinearSVC().fit(X, y), X, y)\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@words_only
def test_file_is_replaced_when_complete_or_not_at_all(binary, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old page")

    def full(*paths):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space"):
            write_report(path, *binary)
    assert path.read_text() == "the old page"
    write_report(str(path), *binary)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert list(tmp_path.iterdir()) == [path]


def test_refuses_what_does_not_fit(binary, tmp_path):
    estimator, X, y = binary
    path = tmp_path / "report.html"
    with pytest.raises(
        TypeError,
        match="'estimator' parameter of write_report must be a fitted LinearSVC, SVC, NuSVC, BudgetSVC, LinearSVR, SVR, NuSVR, OneClassSVM, LinearSVCCV, SVCCV, LinearSVRCV or SVRCV. "
        r"Got Pipeline instead. Give its last step, pipeline\[-1\]",
    ):
        write_report(path, make_pipeline(StandardScaler(), estimator), X, y)
    with pytest.raises(
        TypeError, match="must be a fitted LinearSVC, .* or SVRCV. Got Model"
    ):
        write_report(path, estimator.model_, X, y)
    with pytest.raises(NotFittedError):
        write_report(path, LinearSVC(), X, y)
    with pytest.raises(ValueError, match="y must have length 300. Got length 299"):
        write_report(path, estimator, X, y[1:])
    with pytest.raises(
        ValueError, match="y of test must have length 2. Got length 300"
    ):
        write_report(path, estimator, X, y, test=(X[:2], y))
    with pytest.raises(ValueError, match="y must hold the classes .* Got 2 instead"):
        write_report(path, estimator, X, np.full(300, 2).tolist())
    with pytest.raises(
        ValueError, match="'y' parameter of write_report must hold .* Got None instead"
    ):
        write_report(path, estimator, X)
    for test in (X, (X,), (X, y, y), (X, None)):
        with pytest.raises(
            ValueError, match=r"'test' parameter of write_report must be a pair \(X, y"
        ):
            write_report(path, estimator, X, y, test=test)
    with pytest.raises(ValueError, match="X has 4 features"):
        write_report(path, estimator, X[:, 1:], y)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (0.0042, "0.0042 s"),
        (0.14, "0.14 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (185.0, "3 min 5 s"),
        (7260.0, "2 h 1 min"),
    ],
)
def test_seconds(time, words):
    assert html.seconds(time) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0 % above"),
        (0.01534, "1.53 % above"),
        (0.9996, "100 % above"),
        (1.0, "2.0 times"),
        (8.99, "10.0 times"),
        (12.4, "13 times"),
        (1300.0, "1,301 times"),
        (np.inf, "infinitely many times"),
    ],
)
def test_above(share, words):
    assert html.above(share) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1.0, "-1"),
        (np.float64(0.1), "0.1"),
        (np.int64(3), "3"),
        ("", "''"),
        ("a\tb", r"a\tb"),
    ],
)
def test_plain(value, words):
    assert html.plain(value) == words


@words_only
def test_a_batch_says_that_it_keeps_its_ends_only(tmp_path):
    X, y = clouds(2, 2, 40)
    for classifier in (SVC(), LinearSVC()):
        page = report(tmp_path, classifier.fit(X, y), X, y)
        assert "no line joins them" in page.text
        assert "Work per iteration" not in page.text
    page = report(tmp_path, SVC(solver="irwls").fit(X, y), X, y)
    assert "no line joins them" not in page.text
    assert "Work per iteration" in page.text


@pytest.mark.parametrize(
    ("value", "said"),
    [(1000.0, "1000"), (5.99484, "5.99"), (1e-2, "0.01"), (12345.0, "12300")],
)
def test_values_of_C_are_rounded_without_an_exponent(value, said):
    assert rounded(value) == said


def test_weights_of_rounding_are_not_among_the_largest():
    w = np.array([1e-17, -0.5, 0.0, 2e-15])
    model = Model(np.array([-1, 1]), "binary", (Decision(w, 0.0),))
    assert [weight.column for weight in largest_weights(model, 4)[1]] == [1, 3]
