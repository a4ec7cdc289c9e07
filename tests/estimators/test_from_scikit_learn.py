"""Code that was written for scikit-learn: it works, or hears what to write instead."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC as LibSVC
from sklearn.svm import LinearSVC as LibLinear

import widemargin
from tests.cases.pairwise import product
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
from widemargin.estimators.foreign import ADVICE

KINDS = {
    kind.__name__: kind
    for kind in (SVC, LinearSVC, SVCCV, LinearSVCCV, BudgetSVC, EnclosingBall)
}
WORDS = ["abc", "abd", "xyz", "xyw", "bcd", "zyx", "aab", "zzy"]
SIDES = [0, 0, 1, 1, 0, 1, 0, 1]


def shared_letters(one, other):
    """How many letters two words share: a product of indicators."""
    return np.array([[len(set(a) & set(b)) for b in other] for a in one])


def _iris():
    return load_iris(return_X_y=True)


def _pair():
    X, y = _iris()
    return X[50:], y[50:]


# -- keywords --------------------------------------------------------------------------


def _foreign(kind, theirs):
    """Keywords of a class of scikit-learn that ours has not."""
    names = inspect.signature(theirs).parameters
    return set(names) - set(inspect.signature(kind).parameters)


def test_every_keyword_of_scikit_learn_is_there_or_has_an_advice():
    assert _foreign(SVC, LibSVC) == {"cache_size", "shrinking"}
    assert _foreign(LinearSVC, LibLinear) == {"intercept_scaling"}
    assert _foreign(SVC, LibSVC) | _foreign(LinearSVC, LibLinear) <= set(ADVICE)


@product(kind=KINDS, name=sorted(ADVICE))
def test_a_keyword_that_is_not_there_says_what_to_write(kind, name):
    known = name in inspect.signature(KINDS[kind]).parameters
    theirs = kind == "LinearSVC" and name in ("penalty", "dual", "fit_intercept")
    theirs |= kind == "SVC" and name == "probability"
    solved = name == "solver" and kind not in ("BudgetSVC", "EnclosingBall")
    kernels = name in ("kernel", "gamma", "degree", "coef0") and "Linear" not in kind
    weighs = name == "class_weight" and kind != "EnclosingBall"
    told = name in ("verbose", "callback", "checkpoint") and not kind.endswith("CV")
    ranks = name in ("rank", "approximation", "certify", "polish") and kind == "SVC"
    assert known == (theirs or solved or kernels or weighs or told or ranks)
    if known:
        return
    advice = ADVICE[name]
    if name == "cache_size" and "Linear" in kind:
        advice = "leave it out; a machine without a kernel keeps no values."
    if name == "probability" and kind == "EnclosingBall":
        advice = "leave it out; only classifiers have probabilities."
    words = f"^{kind} has no parameter '{name}': .*{re.escape(advice[:30])}"
    with pytest.raises(TypeError, match=words):
        KINDS[kind](**{name: 1})
    with pytest.raises(ValueError, match=words):
        KINDS[kind]().set_params(**{name: 1})


@pytest.mark.parametrize("kind", [SVC, LinearSVR, OneClassSVM, EnclosingBall])
def test_a_fit_says_where_a_parameter_belongs(kind):
    """A base class was named, which nobody has heard of."""
    X, y = _pair()
    owner = kind.__name__
    said = f"^{owner}.fit has no argument 'callback': write {owner}\\(callback=...\\)."
    with pytest.raises(TypeError, match=said):
        kind().fit(X, y, callback=print)
    with pytest.raises(TypeError, match=f"^{owner}.fit has no argument 'groups'.$"):
        kind().fit(X, y, groups=y)
    assert list(inspect.signature(kind().fit).parameters) == ["X", "y", "sample_weight"]


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_fit_intercept_is_another_word(kind):
    machine = kind(fit_intercept=False).fit(*_pair())
    other = kind(intercept="none").fit(*_pair())
    np.testing.assert_array_equal(machine.coef_, other.coef_)
    assert not machine.intercept_.any()
    expected = "'fit_intercept' .* be True where intercept='free'"
    with pytest.raises(ValueError, match=expected):
        kind(fit_intercept=False, intercept="free").fit(*_pair())
    with pytest.raises(ValueError, match="'fit_intercept' .* one of True, False"):
        kind(fit_intercept="no").fit(*_pair())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (BudgetSVC, "own; 'method' says how it cuts"),
        (EnclosingBall, "own; 'step' says"),
    ],
)
def test_each_kind_says_where_its_choice_is(kind, words):
    with pytest.raises(TypeError, match=words) as caught:
        kind(solver="auto")
    assert ("cuts" in str(caught.value)) == (kind is BudgetSVC)


@pytest.mark.parametrize("kind", [SVC, EnclosingBall, SVCCV, NuSVR])
def test_a_misspelled_keyword_says_which_was_meant(kind):
    words = f"^{kind.__name__} has no parameter 'gama' .did you mean 'gamma'"
    with pytest.raises(TypeError, match=words):
        kind(gama=1)
    with pytest.raises(ValueError, match=words):
        kind().set_params(gama=1)


def test_a_parameter_in_other_letters_is_found():
    with pytest.raises(TypeError, match="SVC has no parameter 'c' .did you mean 'C'"):
        SVC(c=1.0)


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"kernel": "rfb"}, "'rbf'"),
        ({"solver": "irlws"}, "'irwls'"),
        ({"gamma": "scael"}, "'scale'"),
    ],
)
def test_a_misspelled_value_says_which_was_meant(params, found):
    with pytest.raises(ValueError, match=rf"\(did you mean {found}\?\)\. Got"):
        SVC(**params).fit(*_pair())


def test_any_other_keyword_is_pythons():
    with pytest.raises(TypeError, match="unexpected keyword argument 'wide'"):
        SVC(wide=1)
    with pytest.raises(ValueError, match="Invalid parameter 'wide'"):
        SVC().set_params(wide=1)


@pytest.mark.parametrize(
    "name", ["SVC", "LinearSVC", "SVR", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"]
)
def test_parameters_are_in_the_order_of_scikit_learn(name):
    ours, theirs = (
        list(inspect.signature(getattr(module, name)).parameters)
        for module in (widemargin, sklearn.svm)
    )
    shared = [word for word in ours if word in theirs]
    assert len(shared) > 5
    assert shared == [word for word in theirs if word in ours]


def test_signatures_are_those_of_the_constructors():
    for kind in KINDS.values():
        assert (
            list(inspect.signature(kind).parameters)
            == list(inspect.signature(inspect.unwrap(kind.__init__)).parameters)[1:]
        )
        assert set(kind().get_params()) == set(inspect.signature(kind).parameters)


def test_a_class_of_the_user_may_have_such_a_keyword():
    class Own(SVC):
        def __init__(self, *, probability=False):
            super().__init__(C=2.0)
            self.probability = probability

    assert Own(probability=True).set_params(probability=False).C == 2.0
    with pytest.raises(TypeError, match="Own has no parameter 'cache_size'"):
        Own(cache_size=1)


@pytest.mark.parametrize("kind", [SVC, LinearSVC])
def test_minus_one_iterations_are_none(kind):
    words = "'max_iter' .* or None, which .* the place of scikit-learn's -1. Got -1"
    with pytest.raises(ValueError, match=words):
        kind(max_iter=-1).fit(*_pair())


def test_penalty_and_dual_change_nothing():
    X, y = _pair()
    plain = LinearSVC().fit(X, y)
    for loss in ("hinge", "squared_hinge"):
        plain = LinearSVC(loss=loss).fit(X, y)
        for dual in (True, False, "auto"):
            clf = LinearSVC(loss=loss, penalty="l2", dual=dual).fit(X, y)
            assert np.array_equal(clf.coef_, plain.coef_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"penalty": "l1", "loss": "hinge", "dual": True},
            "Unsupported set of arguments.*penalty='l1.*loss='hinge.*dual=True.*'l2' "
            "only",
        ),
        ({"penalty": "elasticnet"}, "'penalty' parameter .* must be one of 'l2', 'l1'"),
        ({"dual": "yes"}, "'dual' parameter .* must be one of 'auto', True, False"),
        ({"multi_class": "crammer_singer"}, r"\('ovr' is the nearest\). Got 'crammer"),
    ],
)
def test_what_would_be_another_problem_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        LinearSVC(**options).fit(*_pair())


# -- attributes ------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_iterations_are_counted_for_each_problem(classes):
    X, y = _iris()
    X, y = X[y < classes], y[y < classes]
    for kernel in ("linear", "rbf"):
        ours, theirs = (kind(kernel=kernel).fit(X, y) for kind in (SVC, LibSVC))
        assert ours.n_iter_.shape == theirs.n_iter_.shape
        assert ours.n_iter_.dtype == theirs.n_iter_.dtype
    assert type(LinearSVC().fit(X, y).n_iter_) is int


@pytest.mark.parametrize("kind", [SVC, LibSVC])
def test_weights_of_a_kernel_machine_cannot_be_set(kind):
    X, y = _iris()
    clf = kind(kernel="linear").fit(X, y)
    with pytest.raises(AttributeError):
        clf.coef_ = np.zeros((3, 4))
    with pytest.raises(ValueError, match="read-only"):
        clf.coef_[0, 0] = 1.0
    assert not hasattr(clf.set_params(kernel="rbf").fit(X, y), "coef_")
    assert not hasattr(kind(), "coef_")


def test_weights_survive_copies_and_failures():
    X, y = _iris()
    clf = SVC(kernel="linear").fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.coef_, clf.coef_)
    before = clf.coef_
    with pytest.raises(ValueError, match="y"):
        clf.fit(X, np.zeros(150))
    assert clf.coef_ is before
    assert clf.score(X, y) == again.score(X, y)


def test_weights_of_a_linear_machine_can_be_set():
    X, y = _pair()
    clf = LinearSVC().fit(X, y)
    values = clf.decision_function(X)
    clf.coef_, clf.intercept_ = 2.0 * clf.coef_, 2.0 * clf.intercept_
    assert np.allclose(clf.decision_function(X), 2.0 * values)


@pytest.mark.parametrize("kind", [SVC, LinearSVC, LibSVC])
def test_pairs_and_ties_are_refused_by_predict_only(kind):
    X, y = _iris()
    options = {} if kind is LibSVC else {"multi_class": "ovo"}
    clf = kind(decision_function_shape="ovo", break_ties=True, **options).fit(X, y)
    assert clf.decision_function(X).shape == (150, 3)
    with pytest.raises(ValueError, match="break_ties must be False when"):
        clf.predict(X)


# -- data ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The kernel is not positive semidefinite")
@product(container=["csr_array", "csr_matrix", "csc_array"], rank=[None, 20])
def test_sparse_kernel_values_are_right(container, rank):
    X, y = _pair()
    K = (X @ X.T) * (np.abs(np.subtract.outer(X[:, 0], X[:, 0])) < 1)
    K += 100 * np.eye(100)
    options = {"kernel": "precomputed", "rank": rank, "tol": 1e-8}
    stored = getattr(sparse, container)(K)
    dense, thin = SVC(**options).fit(K, y), SVC(**options).fit(stored, y)
    assert np.allclose(thin.decision_function(stored), dense.decision_function(K))
    assert np.array_equal(thin.support_, dense.support_)


@pytest.mark.parametrize("weights", [[0.0] * 8, [-1.0] * 8])
@pytest.mark.parametrize("kind", [SVC, LibSVC])
def test_no_positive_weight_is_said_in_the_same_words(kind, weights):
    X = np.arange(8.0)[:, np.newaxis]
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        kind().fit(X, SIDES, sample_weight=weights)


# -- lists of objects ------------------------------------------------------------------


def _sets(words):
    return [frozenset(word) for word in words]


LISTS = {
    "strings": lambda words: words,
    "array": lambda words: np.array(words),
    "tuple": tuple,
    "sets": _sets,
    "bytes": lambda words: [word.encode() for word in words],
    "ragged": lambda words: [[ord(c) for c in set(word)] for word in words],
}


@pytest.mark.parametrize("name", LISTS)
def test_kernels_of_lists(name):
    given, others = LISTS[name](WORDS), LISTS[name](["ab", "zz", "cx"])
    clf = SVC(kernel=shared_letters, tol=1e-8).fit(given, SIDES)
    known = SVC(kernel="precomputed", tol=1e-8).fit(shared_letters(WORDS, WORDS), SIDES)
    values = shared_letters(["ab", "zz", "cx"], WORDS)
    assert np.array_equal(
        clf.decision_function(others), known.decision_function(values)
    )
    assert np.array_equal(clf.predict(given), SIDES)
    assert np.array_equal(clf.support_, known.support_)
    assert clf.support_vectors_ == [list(given)[i] for i in clf.support_]
    assert clf.n_features_in_ == 8


def test_lists_are_those_of_scikit_learn():
    ours, theirs = (
        kind(kernel=shared_letters, tol=1e-6).fit(WORDS, SIDES)
        for kind in (SVC, LibSVC)
    )
    values = [clf.decision_function(["ab", "zx", ""]) for clf in (ours, theirs)]
    assert np.allclose(*values, atol=1e-4)


def test_the_second_list_is_that_of_the_fit():
    lists = []

    def noted(one, other):
        lists.append((list(one), list(other)))
        return shared_letters(one, other)

    clf = SVC(kernel=noted).fit(WORDS, SIDES)
    clf.predict(["ab"])
    assert lists == [(WORDS, WORDS), (["ab"], WORDS)]


def test_lists_in_pickles_clones_and_folds():
    clf = SVC(kernel=shared_letters).fit(WORDS, SIDES)
    again = pickle.loads(pickle.dumps(clf))
    assert again.predict(["abd", "zz"]).tolist() == [0, 1]
    with pytest.raises(NotFittedError):
        clone(clf).predict(["abd"])
    scores = cross_val_score(clf, WORDS * 2, SIDES * 2, cv=2)
    assert np.array_equal(scores, [1.0, 1.0])


def test_a_fit_of_a_matrix_forgets_the_list():
    clf = SVC(kernel=shared_letters).fit(WORDS, SIDES)
    clf.set_params(kernel=lambda A, B: A @ B.T)
    assert clf.predict(["abd"]).tolist() == [0]  # by the kernel of the fit
    X, y = _pair()
    assert clf.fit(X, y).n_features_in_ == 4
    assert clf.score(X, y) > 0.9
    with pytest.raises(ValueError, match="numbers only. Got the text 'abc' at row 0"):
        clf.predict(WORDS)


def test_a_fit_that_fails_keeps_the_list():
    clf = SVC(kernel=shared_letters).fit(WORDS, SIDES)
    with pytest.raises(ValueError, match="length 8"):
        clf.fit([*WORDS, "c"], SIDES)
    assert clf.predict(["abd", "zz"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("kernel", "X", "words"),
    [
        (lambda A, B: np.ones((2, 2)), WORDS, r"shape \(8, 8\). Got shape \(2, 2\)"),
        (lambda A, B: np.full((8, 8), np.nan), WORDS, "must return finite numbers"),
        (shared_letters, list(range(8)), "2D array"),
        ("rbf", WORDS, "numbers only. Got the text 'abc' at row 0"),
        ("rbf", [[1.0], [2.0, 3.0]] * 4, "inhomogeneous|sequence"),
    ],
)
def test_lists_that_are_refused(kernel, X, words):
    with pytest.raises(ValueError, match=words):
        SVC(kernel=kernel).fit(X, SIDES)


def test_a_list_of_rows_of_numbers_is_a_matrix():
    X, y = _pair()
    seen = []

    def product_of(A, B):
        seen.append(type(A))
        return A @ B.T

    clf = SVC(kernel=product_of).fit(X.tolist(), y)
    assert clf.predict(X.tolist()).shape == (100,)
    assert set(seen) == {np.ndarray}


@pytest.mark.parametrize(
    "kind", [SVR, NuSVR, LinearSVR, OneClassSVM, SVRCV, LinearSVRCV, EnclosingBall]
)
def test_machines_without_classes_have_no_advice_on_calibration(kind):
    said = "has no parameter 'probability': leave it out; only classifiers have prob"
    with pytest.raises(TypeError, match=said):
        kind(probability=True)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, LinearSVCCV, LinearSVRCV])
def test_machines_without_kernels_have_no_advice_on_their_values(kind):
    said = r"leave it out; a machine without a kernel keeps no values\.$"
    with pytest.raises(TypeError, match=said):
        kind(cache_size=200)


def test_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC(kernel=shared_letters).fit(WORDS, SIDES).predict(WORDS)


@pytest.mark.parametrize("kind", [SVC, LinearSVC, BudgetSVC, NuSVC])
def test_probabilities_that_are_not_there_say_where_they_are(kind):
    assert not hasattr(kind(), "predict_proba")
    with pytest.raises(AttributeError, match=r"come from calibrate='sigmoid' of SVCCV"):
        kind().predict_proba


def test_a_search_without_probabilities_says_how_to_have_them():
    with pytest.raises(AttributeError) as caught:
        SVCCV().predict_proba
    assert "probabilities come with calibrate='sigmoid'" in str(caught.value)
    assert hasattr(SVCCV(calibrate="sigmoid"), "predict_proba")


def test_all_defaults_that_are_not_here_are_told_at_once():
    with pytest.raises(TypeError) as caught:
        SVC(cache_size=200, shrinking=True, gama=1.0)
    for said in (
        "'cache_size': leave it out",
        "'shrinking': leave it out",
        "'gamma'?)",
    ):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"kernel": "gaussian"}, "rbf"),
        ({"kernel": "RBF"}, "rbf"),
        ({"kernel": "lin"}, "linear"),
        ({"kernel": "polynomial"}, "poly"),
        ({"loss": "l2"}, "squared_hinge"),
        ({"multi_class": "one-vs-rest"}, "ovr"),
        ({"kernel": "rb"}, None),
    ],
)
def test_words_of_others_name_what_is_meant(wrong, right):
    with pytest.raises(ValueError, match=r"must be one of") as caught:
        SVC(**wrong).fit([[0.0], [1.0]], [0, 1])
    assert (f"(did you mean {right!r}?)" in str(caught.value)) == (right is not None)
