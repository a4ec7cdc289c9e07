"""Refusals name the column and the words that would do."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    BudgetSVC,
    EnclosingBall,
    Kernel,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Problem,
    as_rows,
    open_rows,
)
from widemargin.estimators import checks
from widemargin.problems.regression import regression_problem
from widemargin.solvers import IRWLS
from widemargin.solvers.auto import choose


@pytest.fixture
def people():
    return pandas.DataFrame(
        {"age": [1.0, 2.0, 3.0, np.nan], "height": [1.0, 2.0, 3.0, 4.0]}
    )


@pytest.fixture
def stored(tmp_path):
    np.save(tmp_path / "X-0.npy", np.random.default_rng(0).normal(size=(20, 2)))
    return open_rows(tmp_path)


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


def test_the_word_of_a_column_is_told_that_begins_without_one(people):
    people["age"], people["job"] = 1.0, [None, np.nan, "smith", "clerk"]
    with pytest.raises(ValueError, match="Got 'smith' in column 'job' instead"):
        LinearSVC().fit(people, Y)


@pytest.mark.parametrize(
    "times",
    [
        pandas.date_range("2020-01-01", periods=4),
        pandas.date_range("2020-01-01", periods=4, tz="UTC"),
        pandas.to_timedelta([18262, 1, 2, 3], unit="D"),
    ],
)
def test_times_of_a_table_have_a_column(people, times):
    people["age"] = 1.0
    numbers, times = people.assign(born=2.0), people.assign(born=times)
    words = "Got '.*00:00.*' in column 'born' .* numbers of times"
    fitted = SVC().fit(numbers, Y)
    for table in (times, times[["born"]], times.assign(job="clerk")):
        with pytest.raises(ValueError, match=words):
            SVC().fit(table, Y)
    with pytest.raises(ValueError, match=words):
        fitted.predict(times)


@pytest.mark.parametrize("path", ["rows.svm", Path("rows.svm")])
def test_a_name_of_a_file_is_no_data(people, path):
    words = r"Got the name 'rows.svm' instead: open_rows\('rows.svm'\) opens a file"
    fitted = LinearSVC().fit(people[["height"]], Y)
    for call in (as_rows, fitted.predict, OneClassSVM().fit, lambda X: SVC().fit(X, Y)):
        with pytest.raises(TypeError, match=words):
            call(path)


@pytest.mark.parametrize("kind", [SVC, LinearSVC])
def test_words_of_an_array_have_a_place(kind):
    X = np.array([["1", 2.0], [3.0, "red"]], dtype=object)
    words = "Got 'red' at row 1, column 1 instead: leave the column out"
    for table in (X, X.tolist(), X.astype(str)):
        with pytest.raises(ValueError, match=words):
            kind().fit(table, [0, 1])
    words = "Got the text 'cheap pills' at row 0 instead: .*TfidfVectorizer"
    with pytest.raises(ValueError, match=words):
        kind().fit(["cheap pills", "lunch"], [0, 1])
    with pytest.raises(ValueError, match="Reshape your data"):
        kind().fit(["1", "2"], [0, 1])


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
    for names, said in (
        ("ab", "be a sequence of str or None. Got 'ab'"),
        ([1, 2], r"be a sequence of str or None. Got \[1, 2\]"),
        (3, "be a sequence of str or None. Got 3"),
        ([], "have a name for each of the 2 columns. Got 0 names"),
        (["a", "a"], "hold each name once. Got 'a' twice"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"must {said} instead"):
            as_rows(np.eye(4, 2), names=names)
    with pytest.raises(ValueError, match="be None for Rows, which have theirs"):
        as_rows(rows, names=["a", "b"])


def test_a_kernel_without_room_is_told_of_low_ranks():
    X = np.random.default_rng(0).standard_normal((9000, 8))
    with pytest.raises(
        ValueError, match=r"must be at least .* A low rank \(rank=300\) takes less"
    ):
        SVC(memory_limit=1 << 16).fit(X, np.arange(9000) % 2)


@pytest.mark.parametrize(
    ("gap", "said"), [(0.05, "usable"), (0.2, "rough"), (0.6, "far from optimal")]
)
def test_a_model_is_called_what_its_gap_allows(gap, said):
    from widemargin.solvers.driver.advice import worth

    assert f"The model is {said}" in worth(gap)


LINEAR = ["interior_point", "augmented_lagrangian", "coordinate_descent"]
OFFERED = [
    (SVC(), ["batch", "irwls"]),
    (SVC(loss="squared_hinge"), ["batch", "irwls", "frank_wolfe", "core_vector"]),
    (SVC(kernel="linear"), ["batch", *LINEAR, "irwls"]),
    (SVC(rank=2), LINEAR),
    (SVC(rank=2, polish=True), ["irwls"]),
    (SVR(), ["batch", "irwls"]),
    (SVR(rank=2), LINEAR),
    (LinearSVC(), ["batch", "interior_point", "active_set", "coordinate_descent"]),
    (LinearSVR(), ["batch", *LINEAR]),
    (SVCCV(Cs=[1.0], gammas=[1.0]), ["batch", "irwls"]),
]


@pytest.mark.parametrize(("machine", "names"), OFFERED)
def test_solvers_that_take_the_problem_are_offered(machine, names):
    words = ", ".join(map(repr, ["auto", *names])) + "( for loss='[a-z_]+')?"
    with pytest.raises(ValueError, match=f"must be one of {words}. Got 'smo' instead"):
        clone(machine).set_params(solver="smo").fit(np.eye(20, 4), np.arange(20) % 2)


@pytest.mark.parametrize(("machine", "names"), OFFERED)
def test_what_is_offered_solves(machine, names):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    assert all(
        clone(machine).set_params(solver=name).fit(X, y).status_ == "solved"
        for name in names
    )


def test_a_weight_may_be_infinite():
    for machine in SVC(C=-1), LinearSVC(C=-1), SVR(C=-1):
        with pytest.raises(
            ValueError, match=r"a float in the range \(0, inf\]. Got -1"
        ):
            machine.fit(np.eye(4), Y)
    with pytest.raises(ValueError, match=r"a float in the range \(0, inf\). Got -1"):
        BudgetSVC(C=-1).fit(np.eye(4), Y)


def test_a_sum_of_alpha_needs_a_finite_weight():
    """It spoke of the mass of a Problem."""
    message = r"'C' parameter of NuSVR must be a float in the range \(0, inf\). Got inf"
    with pytest.raises(ValueError, match=message):
        NuSVR(C=np.inf).fit(np.eye(4), Y)


@pytest.mark.parametrize("kind", [NuSVC, SVR, NuSVR, OneClassSVM])
def test_rows_in_files_need_the_rank_of_the_estimator(kind, stored):
    """All spoke of SVC."""
    message = (
        rf"of {kind.__name__}.fit .* in memory .* {kind.__name__}\(rank=...\) takes"
    )
    with pytest.raises(ValueError, match=message):
        kind().fit(stored, np.arange(20) % 2)
    assert kind(rank=15).fit(stored, np.arange(20) % 2).status_ == "solved"


@pytest.mark.parametrize("kind", [NuSVC, NuSVR, OneClassSVM])
def test_rows_in_files_need_another_kernel_where_none_of_rank_is_linear(kind, stored):
    """They were sent to a rank, which kernel='linear' refuses."""
    message = rf"{kind.__name__}.fit .* With another kernel .*\(rank=...\) takes them"
    with pytest.raises(ValueError, match=message):
        kind(kernel="linear").fit(stored, np.arange(20) % 2)


@pytest.mark.parametrize("kind", [EnclosingBall, BudgetSVC])
def test_rows_in_files_have_no_way_without_a_rank(kind, stored):
    message = rf"of {kind.__name__}.fit must be in memory .* that are not instead\.$"
    with pytest.raises(ValueError, match=message):
        kind().fit(stored, np.arange(20) % 2)


@pytest.mark.parametrize(("kind", "machine"), [(SVCCV, "SVC"), (SVRCV, "SVR")])
def test_rows_in_files_in_a_search(kind, machine, stored):
    message = rf"of {kind.__name__}.fit must .* {machine}\(rank=...\) takes them"
    with pytest.raises(ValueError, match=message):
        kind().fit(stored, np.arange(20) % 2)


@pytest.mark.parametrize(
    "machine", [SVR(), NuSVR(), LinearSVR(), SVR(kernel="linear")], ids=str
)
def test_a_regression_counts_each_sample_once(machine):
    X = np.random.default_rng(0).standard_normal((200, 2))
    assert "(200 rows" in machine.fit(X, X[:, 0]).solution_.reason


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", gamma=1.0)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_choice_counts_each_sample_once(kernel, loss):
    X = np.random.default_rng(0).standard_normal((40, 2))
    problem = regression_problem(X, X[:, 0], loss=loss, kernel=kernel)
    assert "(40 rows" in choose(problem).reason


@pytest.mark.parametrize("kind", [SVCCV, SVRCV])
def test_a_misspelled_score_has_a_neighbor(kind):
    X, y = np.eye(4), Y
    near = {SVCCV: ("acuracy", "accuracy"), SVRCV: ("r_2", "r2")}[kind]
    with pytest.raises(ValueError, match="Got {!r} .did you mean {!r}".format(*near)):
        kind(scoring=near[0]).fit(X, y)
    with pytest.raises(ValueError, match=r"Got 'zebra' instead\.$"):
        kind(scoring="zebra").fit(X, y)


@pytest.mark.parametrize("kind", [EnclosingBall, BudgetSVC])
def test_estimators_of_one_solver_say_so(kind):
    with pytest.raises(TypeError, match="has no parameter 'solver': leave it out"):
        kind(solver="irwls")


def test_a_C_of_zero_is_told_as_such():
    with pytest.raises(ValueError, match="C must be positive in some row. Got 0 in"):
        Problem(np.eye(2), [1, -1], C=0.0)
    with pytest.raises(ValueError, match=r"no such row with label \+1"):
        Problem(np.eye(2), [1, -1], C=[0.0, 1.0])


def test_nu_machines_speak_of_nu_where_others_have_C():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning, match=r"Stopped by max_iter=1 .* raise nu\."):
        NuSVC(solver=IRWLS(working_set=20), max_iter=1).fit(X, y)


def test_an_indefinite_matrix_is_told_of_once():
    K = np.random.default_rng(0).normal(size=(60, 60))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NuSVC(kernel="precomputed", nu=0.3).fit(K + K.T, np.arange(60) % 2)
    assert [w.category for w in caught] == [RuntimeWarning]


def test_solvers_are_offered_for_the_loss_that_was_asked_for():
    """augmented_lagrangian was missing, and nothing said why."""
    for loss, other in (("squared_hinge", "active_set"), ("hinge", "augmented_lagr")):
        with pytest.raises(ValueError, match=f"{other}.* for loss='{loss}'. Got 'x'"):
            LinearSVC(solver="x", loss=loss).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("kind", [SVC, LinearSVC, SVR, OneClassSVM])
def test_masked_entries(kind):
    X = np.ma.masked_greater(np.arange(8.0).reshape(4, 2), 6.0)
    with pytest.raises(ValueError, match="X must have no masked entries"):
        kind().fit(X, Y)
    fitted = kind().fit(X.data, Y)
    with pytest.raises(ValueError, match="X must have no masked entries"):
        fitted.predict(X)


def test_a_column_by_the_name_of_a_mask():
    X = pandas.DataFrame({"_mask": [0.0, 1.0, 0.0, 2.0], "b": [1.0, 0.0, 0.0, 1.0]})
    assert SVC().fit(X, Y).status_ == "solved"


@pytest.mark.parametrize("kind", [SVC, LinearSVC, EnclosingBall])
def test_columns_of_which_only_some_have_names(kind):
    X = pandas.DataFrame(np.eye(4), columns=["a", 1, "b", 2])
    with pytest.raises(
        TypeError, match="all strings, .*Got 1 among.*astype.str. makes"
    ):
        kind().fit(X, Y)


def test_a_query_of_polars_is_no_table():
    polars = pytest.importorskip("polars")
    query = polars.DataFrame(np.eye(4)).lazy()
    with pytest.raises(
        TypeError, match=r"Got a LazyFrame instead: X.collect\(\) reads"
    ):
        SVC().fit(query, Y)


def test_a_class_of_one_row_in_a_search():
    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.raises(ValueError, match="give more rows of it, as it has one"),
    ):
        SVCCV().fit(np.arange(20.0)[:, None], [0] * 19 + [1])
    with pytest.raises(ValueError, match="of each class. Got one of class 0"):
        SVCCV().fit([[0.0], [1.0]], [0, 1])


# -- searches --------------------------------------------------------------------------

SEARCHES = [SVCCV, LinearSVCCV, SVRCV, LinearSVRCV]


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_speaks_of_itself(kind):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    search = kind(Cs=[1.0], cv=2).fit(X, y)
    for name in ("predict", "decision_function")[: 1 + is_classifier(search)]:
        with pytest.raises(ValueError, match=f"3 features, but {kind.__name__} is ex"):
            getattr(search, name)(np.ones((2, 3)))
    with pytest.raises(ValueError, match="must hold finite numbers"):
        search.predict(np.full((2, 2), np.nan))


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("name", ["verbose", "callback"])
def test_a_search_is_silent(kind, name):
    said = f"{kind.__name__} has no parameter '{name}': a search is silent"
    with pytest.raises(TypeError, match=said):
        kind(**{name: 1})


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rank", "OneClassSVM have it; GridSearchCV of scikit-learn searches with a"),
        ("approximation", "OneClassSVM have it; GridSearchCV of"),
        ("certify", "SVC has it, with a rank; GridSearchCV of"),
        ("polish", "SVC has it, with a rank; GridSearchCV of"),
        ("checkpoint", "leave it out; nothing is kept here"),
        ("n_splits", "searches .* have cv=3 for three folds"),
        ("estimator", "leave it out; it takes none, and a search has a machine"),
    ],
)
def test_a_search_says_what_takes_the_place_of_a_keyword(kind, name, said):
    with pytest.raises(
        TypeError, match=f"{kind.__name__} has no parameter '{name}': .*{said}"
    ):
        kind(**{name: 3})


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_answers_all_keywords_of_its_machine(kind):
    search = kind()
    for name in search._machine().get_params().keys() - search.get_params().keys():
        with pytest.raises(TypeError, match=f"has no parameter '{name}'"):
            kind(**{name: 3})


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_a_machine_without_a_kernel_has_no_rank(kind):
    with pytest.raises(TypeError, match=r"'rank': SVC, .* OneClassSVM have it\.$"):
        kind(rank=3)


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_a_search_tells_once_of_a_class_without_weight(kind):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
    weights = (y != 2).astype(float)
    with pytest.warns(UserWarning, match="no others of the class") as said:
        search = kind(Cs=[1.0, 2.0], cv=2).fit(X, y, sample_weight=weights)
    assert len(said) == 1
    with pytest.warns(UserWarning, match="no others of the class"):  # by itself
        search.best_estimator_.fit(X, y, sample_weight=weights)


def test_an_estimator_that_is_being_fitted_is_not_fitted_beside():
    X, clf, refused = np.eye(4), SVC(solver="irwls"), []

    def fit_in_a_thread(step):
        with ThreadPoolExecutor(1) as pool:
            refused.append(pool.submit(clf.fit, X, Y).exception())

    clf.set_params(callback=fit_in_a_thread).fit(X, Y)
    assert {type(one) for one in refused} == {RuntimeError}
    assert "This SVC is being fitted already: fit a clone of it" in str(refused[0])
    assert clf.predict(X).tolist() == list(Y)
    assert clf.set_params(callback=None).fit(X, Y).status_ == "solved"


def test_ctrl_c_before_a_fit_leaves_no_estimator_at_work(monkeypatch):
    X, clf, take = np.eye(4), SVC(), checks._take_fitted

    def pressed(estimator):
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "_take_fitted", pressed)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    monkeypatch.setattr(checks, "_take_fitted", take)
    assert clf.fit(X, Y).status_ == "solved"


@pytest.mark.parametrize("kind", SEARCHES)
def test_held_out_rows_that_weigh_nothing(kind):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    search = kind(Cs=[1.0], cv=[(np.arange(10), np.arange(10, 20))] * 2)
    weights = np.repeat([1.0, 0.0], 10)
    with pytest.raises(ValueError, match="holds out .* Got none in fold 0: leave out"):
        search.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(
    ("part", "got"),
    [
        ([5, 20], "20"),
        ([-21], "-21"),
        (np.ones(19, bool), "a mask of 19"),
        ([1.0, 2.0], "numbers of dtype float64"),
    ],
)
def test_folds_of_rows_that_are_not_there(kind, part, got):
    """NumPy's words were heard of them."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    said = f"'cv' parameter of {kind.__name__} must give row numbers below 20, or mask"
    for pair in ((np.arange(10), part), (part, np.arange(10))):
        with pytest.raises(ValueError, match=f"{said}.* Got {got} instead"):
            kind(Cs=[1.0], cv=[pair]).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_held_out_rows_without_a_class_give_no_probabilities(kind, method, weighted):
    """scikit-learn's words were heard of its own folds, and of a division by zero."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    held, weights = np.arange(0, 20, 2), None
    if weighted:  # the one row of class 1 has no weight
        held, weights = np.append(held, 1), np.where(np.arange(20) == 1, 0.0, 1.0)
    search = kind(Cs=[1.0], cv=[(np.arange(20), held)], calibrate=method)
    said = f"folds of {kind.__name__} hold out must be of all classes .* of class 1"
    with pytest.raises(ValueError, match=said):
        search.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("kind", [SVC, LinearSVC, EnclosingBall, SVCCV, SVRCV])
def test_a_memory_limit_has_a_unit(kind):
    with pytest.raises(
        ValueError, match=r"in bytes \(1 << 30 is a GiB\), or None. Got"
    ):
        kind(memory_limit="1G").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("kind", [LinearSVC, SVR, SVCCV, BudgetSVC])
def test_a_forgotten_y_is_told_by_the_estimator(kind):
    """It was told of the base that has the method."""
    message = rf"^{kind.__name__}\.fit\(\) missing 1 .* argument: 'y'$"
    with pytest.raises(TypeError, match=message):
        kind().fit(np.eye(4))


@pytest.mark.parametrize("kind", [LinearSVC, SVC, EnclosingBall, OneClassSVM])
def test_a_folder_is_no_checkpoint_of_a_small_fit(kind, tmp_path):
    with pytest.raises(IsADirectoryError, match="expected a file, found a directory"):
        kind(checkpoint=tmp_path).fit(np.eye(6), np.arange(6) % 3)


@pytest.mark.parametrize(
    ("names", "got"),
    [
        ("cba", "'c' as column 0 instead of 'a'"),
        ("ab", "no column 'c' instead"),
        ("abcd", "'d' as column 3 instead of no more"),
        ("ac", "'c' as column 1 instead of 'b'"),
    ],
)
def test_columns_of_rows_are_told_in_one_way(names, got):
    """Of another number the model spoke, which takes them in any order."""
    X = np.random.default_rng(0).normal(size=(4, 4))

    def rows(names):
        return as_rows(pandas.DataFrame(X[:, : len(names)], columns=list(names)))

    fitted = LinearSVC().fit(rows("abc"), Y)
    with pytest.raises(ValueError, match=rf"in their order\. Got {got}\."):
        fitted.predict(rows(names))
