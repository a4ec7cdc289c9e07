"""The problems with a kernel: data sets, C and gamma of the literature."""

from typing import NamedTuple

from datasets import DATASETS, find

from widemargin import load_svmlight


class Task(NamedTuple):
    """A problem on a set, and where its predictions are timed."""

    C: float
    gamma: float
    test: str | None = None
    test_rows: int | None = None


# Adult and Web as in the experiments of Platt (1998) with sigma^2 = 10.
TASKS = {
    "a8a": Task(1.0, 0.05),
    "a9a": Task(1.0, 0.05, "a9a-test"),
    "w7a": Task(5.0, 0.05),
    "w8a": Task(5.0, 0.05, "w8a", 20_000),  # has no test rows
    "ijcnn1": Task(8.0, 2.0),
    "covtype_20k": Task(10.0, 1.0),
    "mnist": Task(10.0, 0.02),
}


def a9a_test(folder):
    """The 16,281 test rows of Adult, 123 columns."""
    return load_svmlight(find(folder, "a9a", "test.svm*"), n_features=123)


KERNEL_SETS = {**DATASETS, "a9a-test": a9a_test}
