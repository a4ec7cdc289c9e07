"""The report page of NuSVC, NuSVR and OneClassSVM."""

import contextlib
import re

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from tests.cases.report_pages import Page, words_only
from widemargin import NuSVC, NuSVR, OneClassSVM
from widemargin.report import write_report
from widemargin.report.html import percent

RNG = np.random.default_rng(4)
X = RNG.normal(size=(240, 3))
TARGET = X[:, 0] ** 2 + X[:, 1]
CLASSES = (X[:, 0] + 0.5 * RNG.normal(size=240) > 0) + (X[:, 1] > 0)
OLD, NEW = slice(0, 160), slice(160, None)


def text_of(folder, machine, y, **options):
    """The words of the page on the first rows; drawn where the machine is plain."""
    path = folder / "report.html"
    is_plain = machine.kernel == "rbf" and machine.rank is None
    with contextlib.nullcontext() if is_plain else words_only:
        write_report(path, machine, X[OLD], y, **options)
    markup = path.read_text(encoding="utf-8")
    Page(markup)  # stands alone, and is well-formed
    pictures = re.sub(r"<svg.*?</svg>", "", markup, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", pictures)), markup


@pytest.mark.parametrize("options", [{}, {"rank": 20}, {"kernel": "linear", "nu": 0.4}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(tmp_path, options, n_classes):
    y = CLASSES if n_classes == 3 else CLASSES > 0
    options = {"nu": 0.2} | options
    machine = NuSVC(**options).fit(X[OLD], y[OLD])
    text, markup = text_of(tmp_path, machine, y[OLD], test=(X[NEW], y[NEW]))
    right = 100.0 * accuracy_score(y[NEW], machine.predict(X[NEW]))
    assert f"test accuracy {right:.2f}" in text
    assert f"nu = {machine.nu}" in text
    assert markup.count("<svg") >= 3
    kind = "linear SVM" if options.get("kernel") else "SVM with the kernel rbf"
    assert kind in text
    assert ("rank 20 by nystroem" in text) == ("rank" in options)
    assert "deprecated" not in text  # the value of an unset `probability`


@pytest.mark.parametrize("options", [{}, {"rank": 20}, {"kernel": "linear"}])
def test_targets(tmp_path, options):
    machine = NuSVR(nu=0.3, **options).fit(X[OLD], TARGET[OLD])
    text, _ = text_of(tmp_path, machine, TARGET[OLD], test=(X[NEW], TARGET[NEW]))
    assert f"R² is {r2_score(TARGET[NEW], machine.predict(X[NEW])):.4f}" in text
    assert f"epsilon = {machine.epsilon_:g}" in text
    assert "nu = 0.3" in text


@pytest.mark.filterwarnings("ignore:The optimum is zero")  # centered, if linear
@pytest.mark.parametrize("options", [{}, {"rank": 20}, {"kernel": "linear"}])
def test_outliers(tmp_path, options):
    machine = OneClassSVM(nu=0.1, **options).fit(X[OLD])
    outside = [int(np.sum(machine.predict(X[rows]) < 0)) for rows in (OLD, NEW)]
    text, markup = text_of(tmp_path, machine, None, test=(X[NEW], None))
    share = " ".join(percent(outside[1] / 80).split())
    assert f"; {share} of the test rows are outliers." in text
    assert f"training 160 {outside[0]} " in text
    assert f"test 80 {outside[1]} " in text
    assert "machine of one class" in text
    assert "hinge" in text
    assert ", nu = 0.1" in text
    assert "accuracy" not in text
    at_once = machine.solution_.solver == "batch"  # which records no iterations
    assert markup.count("<svg") == (2 if at_once else 3)
    assert ("first one that proves nothing is not drawn" in text) == at_once
    assert ("Work per iteration" in text) != at_once
    alone, _ = text_of(tmp_path, machine, CLASSES[OLD])
    assert "No test data were given" in alone
