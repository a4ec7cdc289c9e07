"""Which types of ours an estimator holds: the guide lists them, for those who load with skops."""

import dataclasses
import io
import pathlib
import pickle
import re

import pytest
from sklearn.datasets import load_iris

from widemargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
)

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "deploying.md"
ESTIMATORS = [
    LinearSVC(),
    SVC(),
    SVC(kernel="linear"),
    SVC(rank=9),
    SVC(rank=9, approximation="fourier"),
    SVC(kernel="poly", degree=2, rank=15, approximation="polynomial"),
    NuSVC(nu=0.2),
    NuSVR(),
    OneClassSVM(),
    BudgetSVC(budget=9),
    LinearSVCCV(Cs=[1.0]),
    SVCCV(Cs=[1.0], calibrate="sigmoid"),
    EnclosingBall(),
    SVR(),
    LinearSVR(),
    SVRCV(Cs=[1.0]),
    LinearSVRCV(Cs=[1.0]),
]


def types_in(estimator):
    """The names of the types of this package that a pickle holds."""
    seen = set()

    class Noting(pickle.Unpickler):
        def find_class(self, module, name):
            seen.add(f"{module}.{name}")
            return super().find_class(module, name)

    Noting(io.BytesIO(pickle.dumps(estimator))).load()
    return {name for name in seen if name.startswith("widemargin.")}


@pytest.fixture(scope="module")
def found():
    """The types of all estimators together."""
    X, y = load_iris(return_X_y=True)
    return set.union(*(types_in(estimator.fit(X, y)) for estimator in ESTIMATORS))


def test_the_guide_lists_the_types(found):
    text = GUIDE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^    (widemargin\.\S+\.[A-Z]\w+)$", text, re.MULTILINE))
    own = {f"{type(e).__module__}.{type(e).__name__}" for e in ESTIMATORS}
    assert found - own == listed


def test_a_status_that_comes_back_as_text_reads_alike():
    """So skops loads it."""
    solution = LinearSVC().fit(*load_iris(return_X_y=True)).solutions_[0]
    loaded = dataclasses.replace(solution, status=solution.status.value)
    assert str(loaded) == str(solution)
    assert str(loaded).startswith("Solved to")
