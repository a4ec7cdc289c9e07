"""The report page of a regression: its errors, pictures of predictions, no classes."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from tests.cases.report_pages import Page, words_only
from widemargin import SVR, LinearSVR, open_rows
from widemargin.report import predictions, write_report
from widemargin.report import run as runs

X, Y = make_friedman1(600, n_features=8, noise=1.0, random_state=0)


def page(folder, estimator, **options):
    """The text and the markup of the page on the first 400 rows."""
    path = folder / "report.html"
    write_report(path, estimator, X[:400], Y[:400], **options)
    markup = path.read_text(encoding="utf-8")
    Page(markup)  # stands alone, and is well-formed
    pictures = re.sub(r"<svg.*?</svg>", "", markup, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", pictures)), markup


@pytest.mark.parametrize(
    "estimator", [LinearSVR(epsilon=0.5, solver="interior_point"), SVR(solver="irwls")]
)
def test_errors_are_scikit_learns(tmp_path, estimator):
    estimator.fit(X[:400], Y[:400])
    text, markup = page(tmp_path, estimator, test=(X[400:], Y[400:]))
    for name, rows in (("training", slice(0, 400)), ("test", slice(400, None))):
        truth, found = Y[rows], estimator.predict(X[rows])
        numbers = [
            f"{len(truth):,}",
            f"{r2_score(truth, found):.4f}",
            f"{root_mean_squared_error(truth, found):.4g}",
            f"{mean_absolute_error(truth, found):.4g}",
            f"{truth.std():.4g}",
        ]
        assert " ".join([name, *numbers]) in text
    assert "on the test data R² is" in text
    assert "onfusion" not in text
    assert "accuracy" not in text
    assert markup.count("<svg") == 4
    for heading in (
        "Convergence.",
        "Predictions.",
        "Residuals.",
        "Work per iteration.",
    ):
        assert heading in text


@words_only
def test_without_test_data_it_is_about_the_training_data(tmp_path):
    text, _ = page(tmp_path, LinearSVR(epsilon=0.5).fit(X[:400], Y[:400]))
    assert "on the training data R² is" in text
    assert "No test data were given" in text
    assert "The 400 training rows" in text


@words_only
def test_the_share_in_the_tube_is_said(tmp_path):
    reg = LinearSVR(epsilon=1.5).fit(X[:400], Y[:400])
    text, _ = page(tmp_path, reg)
    share = np.mean(np.abs(Y[:400] - reg.predict(X[:400])) <= 1.5)
    assert f"{100 * share:.2f} % are in the tube" in text
    text, _ = page(tmp_path, LinearSVR(epsilon=0.0).fit(X[:400], Y[:400]))
    assert "tube" not in text


def test_of_rows_in_files_a_sample_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "SAMPLE", 50)
    drawn = []
    whole = predictions.residuals
    monkeypatch.setattr(
        predictions, "residuals", lambda e, *more: drawn.append(e) or whole(e, *more)
    )
    np.save(tmp_path / "X.npy", X[:400])
    rows, reg = open_rows(tmp_path / "X.npy"), LinearSVR().fit(X[:400], Y[:400])
    write_report(tmp_path / "r.html", reg, rows, Y[:400])
    (shown,) = drawn
    assert len(shown) == 50
    assert np.isin(shown.round(9), (Y[:400] - reg.predict(X[:400])).round(9)).all()


def test_predictions_without_an_error(tmp_path):
    flat = np.full(400, 2.0)
    reg = SVR(kernel="linear").fit(X[:400], flat)
    write_report(tmp_path / "r.html", reg, X[:400], flat)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL).lower()


def test_targets_of_another_length_are_refused(tmp_path):
    reg = LinearSVR().fit(X, Y)
    with pytest.raises(ValueError, match=r"y must have length 600\. Got shape \(10,\)"):
        write_report(tmp_path / "r.html", reg, X, Y[:10])
