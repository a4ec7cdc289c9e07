"""What kernels, and problems with one, refuse, and in which words."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import NAMED, matrix, plain
from tests.conftest import stored
from widemargin import Kernel, Problem, as_rows, open_rows, solve
from widemargin.kernels.matrix import Columns

X = matrix(40, 3)
Y = np.where(np.arange(40) % 2, 1.0, -1.0)
K = plain(NAMED["rbf"], X, X)
PRECOMPUTED = Kernel("precomputed")


def changed(K, value, at=(3, 7)):
    K = K.copy()
    K[at] = value
    return K


# -- parameters ------------------------------------------------------------------------

GAMMA = r"The 'gamma' parameter of Kernel must be a float in the range \(0, inf\), or 'scale' or 'auto' or 'mean_distance'. Got "
WORDS = "'gamma' .* must be one of 'scale', 'auto', 'mean_distance' or a number above 0. Got 'foo' instead."
DEGREE = (
    r"The 'degree' parameter of Kernel must be an int in the range \[1, inf\). Got "
)
COEF0 = "The 'coef0' parameter of Kernel must be a finite float. Got "


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": 0}, GAMMA + "0 instead."),
        ({"gamma": 0.0}, GAMMA + "0.0 instead."),
        ({"gamma": -1.5}, GAMMA + "-1.5 instead."),
        ({"gamma": np.nan}, GAMMA + "nan instead."),
        ({"gamma": np.inf}, GAMMA + "inf instead."),
        ({"gamma": True}, GAMMA + "True instead."),
        ({"gamma": None}, GAMMA + "None instead."),
        ({"gamma": np.ones(2)}, GAMMA + "array"),
        ({"gamma": "foo"}, WORDS),
        ({"degree": 0}, DEGREE + "0 instead."),
        ({"degree": -2}, DEGREE + "-2 instead."),
        ({"degree": 2.5}, DEGREE + "2.5 instead."),
        ({"degree": True}, DEGREE + "True instead."),
        ({"degree": "3"}, DEGREE + "'3' instead."),
        ({"degree": 2**31}, "'degree' .* must be at most 2147483647. Got 2147483648"),
        ({"coef0": np.inf}, COEF0 + "inf instead."),
        ({"coef0": np.nan}, COEF0 + "nan instead."),
        ({"coef0": True}, COEF0 + "True instead."),
        ({"coef0": "1"}, COEF0 + "'1' instead."),
        ({"coef0": 1j}, COEF0 + "1j instead."),
        ({"coef0": np.complex64(1)}, COEF0),
        (
            {"name": "gauss"},
            "'name' .* must be one of 'linear', .*'precomputed' or a function. Got",
        ),
        ({"name": None}, "'name' .* must be one of .* Got None instead."),
        ({"name": 3}, "'name' .* must be one of .* Got 3 instead."),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Kernel(**parameters)


@pytest.mark.parametrize("kernel", ["rbf", lambda A, B: A @ B.T, 3])
def test_a_problem_takes_a_kernel_object(kernel):
    message = "The 'kernel' parameter of Problem must be a Kernel or None. Got"
    with pytest.raises((ValueError, TypeError), match=message):
        Problem(X, Y, kernel=kernel)


@pytest.mark.parametrize("limit", [0, -1, 2.5, "1G", True])
def test_a_memory_limit_is_a_number_of_bytes(limit):
    message = (
        r"'memory_limit' parameter of Problem must be an int in the range \[1, inf"
    )
    with pytest.raises((ValueError, TypeError), match=message):
        Problem(X, Y, kernel=Kernel(), memory_limit=limit)


# -- data ------------------------------------------------------------------------------

NOT_IN_MEMORY = "A kernel needs the rows in memory, as a dense or CSR matrix."


def test_rows_that_are_not_in_memory_are_refused(tmp_path):
    with pytest.raises(ValueError, match=NOT_IN_MEMORY):
        Problem(stored(X), Y, kernel=Kernel())
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy")
    if not rows.is_in_memory:
        with pytest.raises(ValueError, match=NOT_IN_MEMORY):
            Columns(rows, Kernel())


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(40, 39), (40, 41), (40, 3)])
def test_a_precomputed_kernel_is_square(convert, shape):
    message = (
        rf"must be a square matrix \(m, m\) .* Got shape \(40, {shape[1]}\) instead"
    )
    for C in (1.0, np.where(np.arange(40) > 2, 1.0, 0.0)):
        with pytest.raises(ValueError, match=message):
            Problem(convert(np.ones(shape)), Y, C, kernel=PRECOMPUTED)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "-infinity")])
def test_data_that_are_not_finite_are_refused(convert, value, name):
    message = f"X must hold finite numbers .* Got {name} at row 3, column 2 instead."
    for data, kernel in ((K, PRECOMPUTED), (X, Kernel()), (X, Kernel(np.matmul))):
        with pytest.raises(ValueError, match=message):
            Problem(convert(changed(data, value, (3, 2))), Y, kernel=kernel)


@pytest.mark.parametrize("bad", [X.astype(complex), X.astype(str), X[0]])
@pytest.mark.parametrize("kernel", [Kernel(), PRECOMPUTED, Kernel(np.matmul)])
def test_what_is_no_matrix_is_refused(bad, kernel):
    with pytest.raises(ValueError, match="X must be a matrix of real numbers"):
        Problem(bad, Y, kernel=kernel)


@pytest.mark.parametrize("dtype", [np.float16, object, np.longdouble, bool])
def test_other_numbers_are_converted(dtype):
    data = np.rint(X)
    expected = Problem(data, Y, kernel=Kernel()).certify(np.ones(40), np.ones(40))
    assert Problem(data.astype(dtype), Y, kernel=Kernel()).kernel.gamma > 0
    if dtype is not bool:
        problem = Problem(data.astype(dtype), Y, kernel=Kernel())
        assert problem.certify(np.ones(40), np.ones(40)) == expected


def test_values_beyond_all_numbers_are_refused():
    message = "The kernel must have finite values. Got k.x, x. = infinity or NaN at row"
    with pytest.raises(ValueError, match=message):
        Problem(1e9 * X, Y, kernel=Kernel("poly", gamma=1.0, degree=1000))


# -- callables and precomputed values --------------------------------------------------

SHAPE = r"The kernel must return real numbers of shape \(.*\). Got shape .* and dtype "
FINITE = "The kernel must return finite numbers. Got NaN or infinity instead."
SYMMETRIC = r"The kernel must be symmetric, k\(x, z\) = k\(z, x\). Got .* for one pair"


def shape(A, B):
    return A.shape[0], B.shape[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.full(shape(A, B), np.nan), FINITE),
        (lambda A, B: np.full(shape(A, B), -np.inf), FINITE),
        (lambda A, B: sparse.csr_array(np.full(shape(A, B), np.nan)), FINITE),
        (lambda A, B: np.ones(len(A)), SHAPE + "float64 instead."),
        (lambda A, B: 1.0, SHAPE + "float64 instead."),
        (lambda A, B: None, SHAPE + "object instead."),
        (lambda A, B: np.ones((len(A), len(B) + 1)), SHAPE + "float64 instead."),
        (lambda A, B: np.ones(shape(A, B), complex), SHAPE + "complex128 instead."),
        (lambda A, B: np.full(shape(A, B), "a"), SHAPE + "<U1 instead."),
        (lambda A, B: np.full(shape(A, B), 1, object), SHAPE + "object instead."),
        (lambda A, B: A @ B.T + A[:, :1], SYMMETRIC),
    ],
)
def test_bad_values_of_a_callable_are_refused(function, message):
    problem = Problem(X, Y, kernel=Kernel(function))
    with pytest.raises(ValueError, match=message):
        solve(problem)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_an_asymmetric_matrix_is_refused(convert):
    for kernel, value in ((PRECOMPUTED, 7.0), (PRECOMPUTED, K[3, 7] + 1e-4)):
        problem = Problem(convert(changed(K, value)), Y, kernel=kernel)
        with pytest.raises(ValueError, match=SYMMETRIC):
            solve(problem)
    rounded = Problem(convert(changed(K, K[3, 7] + 1e-7)), Y, kernel=PRECOMPUTED)
    assert solve(rounded).status == "solved"
    single = Problem(convert(K.astype(np.float32)), Y, kernel=PRECOMPUTED)
    assert solve(single).status == "solved"


class Failing:
    """The rbf kernel, but for one call."""

    def __init__(self, values=None):
        self.values, self.calls_left = values, None

    def __call__(self, A, B):
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                self.calls_left = None
                if self.values is None:
                    raise RuntimeError("out of order")
                return np.full(shape(A, B), self.values)
        return plain(NAMED["rbf"], A, B)


@pytest.mark.parametrize("values", [None, np.nan])
@pytest.mark.parametrize("adds", [False, True])
def test_a_kernel_that_fails_once_changes_nothing(values, adds):
    function = Failing(values)
    columns = Columns(as_rows(X), Kernel(function))
    J, c = np.arange(0, 40, 2), np.linspace(-1.0, 1.0, 20)
    sums = np.zeros(columns.width)
    function.calls_left = 0
    with pytest.raises((RuntimeError, ValueError), match="out of order|finite"):
        columns.add(J, c, sums) if adds else columns.columns(J)
    assert not sums.any()
    np.testing.assert_allclose(columns.columns(J), K[J], atol=1e-6)
    columns.add(J, c, sums)
    np.testing.assert_allclose(sums[:40], K[:, J] @ c, atol=1e-5)


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_problem_whose_kernel_failed_can_be_solved_again(calls):
    function = Failing()
    expected = solve(Problem(X, Y, kernel=Kernel(Failing())), tol=1e-6)
    problem = Problem(X, Y, kernel=Kernel(function))
    function.calls_left = calls
    with pytest.raises(RuntimeError, match="out of order"):
        solve(problem, tol=1e-6)
    solution = solve(problem, tol=1e-6)
    np.testing.assert_allclose(solution.w, expected.w, atol=1e-3)
    assert solution.certificate.relative_gap <= 1e-6


def test_scores_that_could_not_be_added_are_as_they_were():
    function = Failing()
    problem = Problem(X, Y, kernel=Kernel(function))
    scores = problem.expand(np.linspace(0.0, 1.0, 40))
    before = scores.values.copy(), scores.c.copy()
    function.calls_left = 0
    problem.columns._kept.forget(np.arange(40))
    with pytest.raises(RuntimeError, match="out of order"):
        scores.add(np.arange(5), np.ones(5))
    np.testing.assert_array_equal(scores.values, before[0])
    np.testing.assert_array_equal(scores.c, before[1])


@pytest.mark.parametrize("gamma", ["scale", "mean_distance"])
def test_rows_whose_variance_has_no_inverse_are_named(gamma):
    """It was said that the user's gamma was infinite."""
    said = f"^X is too small for gamma='{gamma}'.*: scale the data"
    with pytest.raises(ValueError, match=said):
        Kernel("rbf", gamma=gamma).resolved(as_rows(1e-160 * X))


@pytest.mark.parametrize("gamma", ["scale", "mean_distance"])
def test_rows_whose_variance_overflows_are_named(gamma):
    """It was said that the user's gamma was 0."""
    X = np.random.default_rng(0).normal(size=(20, 200))
    said = f"^X is too large for gamma='{gamma}'.*: scale the data"
    with pytest.raises(ValueError, match=said):
        Kernel("rbf", gamma=gamma).resolved(as_rows(1e153 * X))


# -- indices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 40], r"index must be in the range \[0, 40\). Got 40 instead."),
        ([-1], r"index must be in the range \[0, 40\). Got -1 instead."),
        ([0.5], "index must be a vector of integers. Got dtype float64"),
        ([True, False], "index must be a vector of integers. Got dtype bool"),
    ],
)
def test_rows_that_are_not_there_are_refused(index, message):
    columns = Columns(as_rows(X), NAMED["rbf"])
    for call in (
        lambda: columns.columns(index),
        lambda: columns.block(index, [0]),
        lambda: columns.block([0], index),
        lambda: columns.add(index, np.ones(len(index)), np.zeros(columns.width)),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert columns.evaluations == columns.hits == 0
