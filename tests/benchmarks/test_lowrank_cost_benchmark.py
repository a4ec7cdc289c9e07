"""The benchmark of what a rank costs."""

from sklearn.datasets import load_iris

from benchmarks.lowrank import cost


def test_all_rows_are_counted():
    X, y = load_iris(return_X_y=True)
    for scheme, rows in (("ovo", 300), ("ovr", 450)):
        name, *numbers = cost.row("usps", X, y, 10, scheme).split()
        assert (name, *map(int, numbers[:3])) == ("usps", 10, 3, rows)
        assert float(numbers[4]) > 0.0
