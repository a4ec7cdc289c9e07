"""The benchmark of linear machines of folds: its ways are those that it says."""

import numpy as np

from benchmarks.core import linear_folds
from benchmarks.core.linear_folds import WAYS, blobs
from widemargin import SVCCV
from widemargin.estimators import svc_cv
from widemargin.estimators.folds import Folds
from widemargin.estimators.linear_folds import LinearFolds


def test_each_way_is_another_one(monkeypatch):
    """It went by a rule that had another name by then."""
    X, y = blobs(2, 300, 5, True)
    found, solve = [], svc_cv.solve_linear_folds

    def remembered(*asked):
        found.append(solve(*asked))
        return found[-1]

    monkeypatch.setattr(svc_cv, "solve_linear_folds", remembered)
    search, scores = SVCCV(kernel="linear", Cs=[0.01, 1.0], cv=3, refit=False), []
    for patched in WAYS.values():
        with patched():
            scores.append(search.fit(X, y).scores_)
    np.testing.assert_allclose(scores, scores[:1] * len(WAYS), atol=0.03)
    both, products, columns = found  # fold by fold it is not asked
    assert isinstance(both, LinearFolds)
    assert both.products is not None
    assert isinstance(products, Folds)
    assert columns.products is None


def test_the_table_has_a_line_for_each_machine(monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["linear_folds", "--rounds", "1", "--only", "iris", "--peer", "200"]
    )
    linear_folds.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "at",
        "once",
        "products",
        "columns",
        "by",
        "fold",
        "sklearn",
    ]
    assert [line.split()[:2] for line in lines] == [
        ["iris", "SVC"],
        ["iris", "LinearSVC"],
    ]
    assert all(len(line.split()) == 7 for line in lines)
