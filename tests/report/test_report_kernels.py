"""The report page of machines with a kernel."""

import numpy as np
import pytest

from tests.cases.report_pages import Page, clouds, words_only
from widemargin import SVC
from widemargin.report import write_report


@pytest.mark.one_of(3)
@words_only
@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_kernels(kernel, scheme, tmp_path):
    X, y = clouds(2 if scheme == "binary" else 3)[:2]
    X = np.asarray(X @ X.T) if kernel == "precomputed" else X
    multi_class = "ovr" if scheme == "ovr" else "ovo"
    clf = SVC(kernel=kernel, gamma=0.5, multi_class=multi_class).fit(X, y)
    write_report(tmp_path / "report.html", clf, X, y)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    what = {
        "rbf": "An SVM with the kernel rbf (gamma = 0.5, hinge, C = 1",
        "linear": "A linear SVM (hinge, C = 1",
        "precomputed": "An SVM with the kernel precomputed (hinge, C = 1",
    }
    assert what[kernel] in page.text
    weights = kernel == "linear" and scheme != "ovo"
    assert ("Largest weights" in page.text) == weights
    assert ("pair of classes" in page.text) == (scheme == "ovo")
    assert ("Regions" in page.text) == (kernel != "precomputed")
    assert "Confusion matrix" in page.text


def test_rings_are_around_landmarks(tmp_path):
    X, y = clouds(2)[:2]
    for rank, word in ((None, "support vectors"), (9, "landmarks")):
        clf = SVC(gamma=0.5, rank=rank).fit(X, y)
        write_report(tmp_path / "report.html", clf, X, y)
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert f"Map of two features: regions, rows, {word}" in page
