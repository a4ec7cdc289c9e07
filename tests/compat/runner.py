"""scikit-learn's own tests of its support vector machines, run with our classes."""

import os
from pathlib import Path

import pytest
import sklearn
import sklearn.svm

import widemargin
from tests.compat.table import FAILS, PASSES, Table

# Its classes; ours take the place of those that we have.
CLASSES = ("SVC", "NuSVC", "LinearSVC", "SVR", "NuSVR", "LinearSVR", "OneClassSVM")
PACKAGE = Path(sklearn.__file__).parent
TESTS = PACKAGE / "svm" / "tests" / "test_svm.py"


class Outcomes:
    """A plugin of pytest that keeps how each test ended."""

    def __init__(self) -> None:
        self.found: Table = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a failure of any phase with its last line, or how the test ended."""
        name = report.nodeid.partition("::")[2]
        if not report.passed:
            said = str(report.longrepr).strip().splitlines()[-1]
            self.found[name] = (FAILS, said)
        elif report.when == "call":
            self.found[name] = (PASSES, "")


def replace_classes() -> list[str]:
    """Put our classes in the place of scikit-learn's, in this process; their names."""
    ours = {name: getattr(widemargin, name, None) for name in CLASSES}
    found = {name: kind for name, kind in ours.items() if kind is not None}
    for name, kind in found.items():
        setattr(sklearn.svm, name, kind)
    return list(found)


def outcomes(*options: str) -> Table:
    """Outcome of each test, in a process that has our classes.

    With other settings than ours, which turn warnings into errors.
    """
    os.environ.pop("SKLEARN_TESTS_GLOBAL_RANDOM_SEED", None)
    plugin = Outcomes()
    alone = ("-c", os.devnull, f"--rootdir={PACKAGE}", f"--confcutdir={PACKAGE}")
    quiet = ("-q", "-p", "no:cacheprovider", "--disable-warnings")
    pytest.main([str(TESTS), *quiet, *alone, *options], [plugin])
    return plugin.found
