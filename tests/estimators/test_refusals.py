"""Refusals name the column and the words that would do."""

import numpy as np
import pandas
import pytest

from widemargin import SVC, LinearSVC, as_rows


@pytest.fixture
def people():
    return pandas.DataFrame(
        {"age": [1.0, 2.0, 3.0, np.nan], "height": [1.0, 2.0, 3.0, 4.0]}
    )


Y = [0, 1, 0, 1]


@pytest.mark.parametrize("kind", [SVC, LinearSVC])
def test_a_bad_number_of_a_table_has_a_column(people, kind):
    with pytest.raises(ValueError, match="Got NaN at row 3, column 'age' instead"):
        kind().fit(people, Y)
    with pytest.raises(ValueError, match="Got NaN at row 3, column 0 instead"):
        kind().fit(people.to_numpy(), Y)


@pytest.mark.parametrize("dtype", [object, "category"])
def test_words_of_a_table_have_a_column(people, dtype):
    people["job"] = pandas.Series(["clerk", "smith", "clerk", "smith"], dtype=dtype)
    people["age"] = 1.0
    with pytest.raises(
        ValueError, match="Got 'clerk' in column 'job' instead: leave it out"
    ):
        LinearSVC().fit(people, Y)


def test_gamma_names_its_words():
    with pytest.raises(
        ValueError, match="or 'scale' or 'auto' or 'mean_distance'. Got 0 "
    ):
        SVC(gamma=0).fit([[0.0], [1.0]], [0, 1])


def test_names_of_columns_are_kept():
    rows = as_rows(np.eye(4, 2), names=["age", "height"])
    assert list(LinearSVC().fit(rows, Y).feature_names_in_) == ["age", "height"]
    with pytest.raises(
        ValueError, match="have a name for each of the 2 columns. Got 1 names"
    ):
        as_rows(np.eye(4, 2), names=["age"])
    with pytest.raises(ValueError, match="be None for Rows, which have theirs"):
        as_rows(rows, names=["a", "b"])


def test_a_kernel_without_room_is_told_of_low_ranks():
    X = np.random.default_rng(0).standard_normal((9000, 8))
    with pytest.raises(
        ValueError, match=r"must be at least .* A low rank \(rank=300\) takes less"
    ):
        SVC(memory_limit=1 << 16).fit(X, np.arange(9000) % 2)


@pytest.mark.parametrize(
    ("gap", "worth"), [(0.05, "usable"), (0.2, "rough"), (0.6, "far from optimal")]
)
def test_a_model_is_called_what_its_gap_allows(gap, worth):
    from widemargin.solvers.driver.advice import _worth

    assert f"The model is {worth}" in _worth(gap)
