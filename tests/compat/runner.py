"""scikit-learn's own tests of its support vector machines, run with ours."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn.svm

import widemargin

# Its classes; ours take the place of those that we have.
CLASSES = ("SVC", "NuSVC", "LinearSVC", "SVR", "NuSVR", "LinearSVR", "OneClassSVM")
TESTS = Path(sklearn.svm.__file__).parent / "tests" / "test_svm.py"


class Outcomes:
    """A plugin of pytest that keeps the outcome and the message of each test."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.messages: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a failure of any phase, or how the test itself ended."""
        name = report.nodeid.partition("::")[2]
        if report.failed or report.when == "call" or report.skipped:
            self.found[name] = "passes" if report.passed else "fails"
        if not report.passed:
            self.messages[name] = str(report.longrepr).strip().splitlines()[-1]


def replaced() -> Iterator[str]:
    """Put our classes in the place of scikit-learn's; their names."""
    for name in CLASSES:
        if (ours := getattr(widemargin, name, None)) is not None:
            setattr(sklearn.svm, name, ours)
            yield name


def outcomes(*options: str) -> Outcomes:
    """Run the tests in this process, which has our classes from now on."""
    plugin = Outcomes()
    # Not our settings: there warnings are errors, which scikit-learn's tests expect.
    folder = TESTS.parents[2]
    alone = ("-c", os.devnull, f"--rootdir={folder}", f"--confcutdir={folder}")
    pytest.main(
        [str(TESTS), "-q", "-p", "no:cacheprovider", *alone, *options], [plugin]
    )
    return plugin
