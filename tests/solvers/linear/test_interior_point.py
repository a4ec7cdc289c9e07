"""Acceptance tests of CRSVM: section 15 of its specification, and its variants."""

import functools

import numpy as np
import pytest
from scipy import sparse

from tests.cases.pairwise import product
from tests.cases.reference import reference_objective
from tests.conftest import PROBLEMS, SETTINGS
from widemargin import Problem, as_rows, solve
from widemargin.data import memory
from widemargin.solvers import InteriorPoint
from widemargin.solvers.linear import normal_equations
from widemargin.solvers.linear.interior_point import REFINED

TOL = 1e-8

VARIANTS = {
    "unreduced": InteriorPoint(reduction=None),
    "rule 2": InteriorPoint(reduction="omega"),
    "rule 2 unbalanced": InteriorPoint(reduction="omega", balanced=False),
    "rule 1": InteriorPoint(reduction="one_sided"),
    "rule 1 unbalanced": InteriorPoint(reduction="one_sided", balanced=False),
    "tenth": InteriorPoint(reduction="omega", max_active=0.1, random_state=0),
    "nonadaptive quarter": InteriorPoint(
        reduction="omega", adaptive=False, max_active=0.25, random_state=0
    ),
    "sparse": InteriorPoint(normal_matrix="sparse"),
}


@functools.cache
def plain_answer(name, C):
    """The objective that the plain method ends with."""
    solution = solve(Problem(*PROBLEMS[name](), C), VARIANTS["unreduced"], tol=TOL)
    return solution.certificate.primal


@pytest.mark.one_of(3)
@product(
    name=[
        "ellipse",
        "breast_cancer",
        "breast_cancer_raw",
        "digits",
        "ndc",
        "imbalanced",
        "separable",
    ],
    variant=VARIANTS,
    C=[1e-6, 1e-3, 1.0, 1e3, 1e6],
)
def test_every_variant_reaches_the_same_answer(name, variant, C):
    X, y = PROBLEMS[name]()
    X = sparse.csr_array(X) if variant == "sparse" else X
    solution = solve(Problem(X, y, C), VARIANTS[variant], tol=TOL)
    assert solution.status == "solved", solution
    best = plain_answer(name, C)
    assert solution.certificate.primal == pytest.approx(best, rel=2 * TOL)


@pytest.mark.cover(1)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("variant", ["rule 2", "rule 1", "sparse"])
def test_variants_solve_every_loss_and_intercept(variant, loss, intercept):
    X, y = PROBLEMS["ndc"]()
    X = sparse.csr_array(X) if variant == "sparse" else X
    solution = solve(Problem(X, y, 1.0, loss, intercept), VARIANTS[variant], tol=TOL)
    assert solution.status == "solved", solution


@pytest.mark.parametrize("pcg_steps", [0, 10])
@pytest.mark.parametrize("name", ["ellipse", "ndc", "digits", "breast_cancer"])
def test_the_active_set_ends_near_the_support_vectors_on_the_margin(name, pcg_steps):
    X, y = PROBLEMS[name]()
    solver = InteriorPoint(reduction="omega", pcg_steps=pcg_steps)
    solution = solve(Problem(X, y), solver, tol=TOL)
    assert solution.status == "solved"
    on_margin = np.count_nonzero((solution.alpha > 1e-6) & (solution.alpha < 1 - 1e-6))
    active = solution.trace.column("active")
    assert active[0] == len(y)
    # Never fewer than (3.18) asks; with conjugate gradients 2 n rows: they are cheap.
    least = np.ceil(solution.trace[-1].details["mu"] ** 0.25 * len(y))
    least = max(least, 2 * X.shape[1] if pcg_steps else 0)
    assert on_margin / 2 <= active[-1] <= max(2 * on_margin, least)
    assert np.median(np.diff(active)) < 0


def test_a_small_set_fails_and_conjugate_gradients_mend_it():
    X, y = PROBLEMS["ndc"]()
    options = {"reduction": "omega", "max_active": 0.1, "random_state": 0}
    alone = solve(Problem(X, y), InteriorPoint(**options, pcg_steps=0), tol=TOL)
    mended = solve(Problem(X, y), InteriorPoint(**options), tol=TOL)
    assert mended.status == "solved"
    assert mended.trace[-1].iteration < 40
    assert mended.trace.column("pcg_steps").sum() > 0
    assert alone.trace.column("pcg_steps").sum() == 0
    assert (
        alone.status != "solved"
        or alone.trace[-1].iteration > 1.5 * mended.trace[-1].iteration
    )


def test_three_sweeps_an_iteration():
    X, y = PROBLEMS["ndc"]()
    solution = solve(Problem(X, y), InteriorPoint(reduction=None), tol=TOL)
    gaps = (1.0 - solution.trace.column("dual") / solution.trace.column("primal"))[:-1]
    refined = gaps <= REFINED
    assert refined.any()
    sweeps = np.diff(solution.trace.column("sweeps"))
    np.testing.assert_array_equal(sweeps, np.where(refined, 5, 3))


@pytest.mark.parametrize(
    "solver", [InteriorPoint(), InteriorPoint(reduction="omega", pcg_steps=0)]
)
def test_blocks_give_the_iterates_of_one_block(monkeypatch, solver):
    X, y = PROBLEMS["ndc"]()
    whole = solve(Problem(X, y), solver, tol=TOL)
    monkeypatch.setattr(memory, "BLOCK_ROWS", 64)
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(memory, "LARGE_BLOCK_BYTES", 1 << 12)
    cut = solve(Problem(as_rows(X), y), solver, tol=TOL)
    assert len(cut.trace) == len(whole.trace)
    np.testing.assert_allclose(
        cut.trace.column("primal"), whole.trace.column("primal"), rtol=1e-9
    )
    np.testing.assert_allclose(cut.w, whole.w, rtol=1e-7)


def test_two_runs_agree_bit_for_bit_whatever_the_threads():
    X, y = PROBLEMS["digits"]()
    one, two, four = (
        solve(Problem(as_rows(np.tile(X, (8, 1)), n_jobs=k), np.tile(y, 8)))
        for k in (1, 2, 4)
    )
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.w, four.w)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_give_the_iterates_of_repeated_rows(loss):
    X, y = PROBLEMS["ndc"]()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y))
    weighted = solve(Problem(X, y, 0.7 * weight, loss), "interior_point", tol=1e-4)
    X, y = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    repeated = solve(Problem(X, y, 0.7, loss), "interior_point", tol=1e-4)
    assert len(weighted.trace) == len(repeated.trace)
    np.testing.assert_allclose(weighted.w, repeated.w, rtol=1e-9)
    np.testing.assert_allclose(weighted.b, repeated.b, rtol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("decades", [1, 3])
def test_uneven_weights_agree_with_the_conic_solver(loss, decades):
    X, y = PROBLEMS["breast_cancer"]()
    C = 10.0 ** np.random.default_rng(0).uniform(-decades, decades, len(y))
    solution = solve(Problem(X, y, C, loss, "free"), tol=TOL)
    reference = reference_objective(X, y, C, loss)
    assert solution.status == "solved"
    assert solution.certificate.primal == pytest.approx(reference, rel=1e-7)


def test_a_path_over_C_takes_fewer_iterations_from_the_last_answer():
    X, y = PROBLEMS["ndc"]()
    path = 3.0 ** np.arange(-4, 2)
    cold = [solve(Problem(X, y, C), tol=TOL) for C in path]
    warm = [cold[0]]
    for C in path[1:]:
        warm.append(solve(Problem(X, y, C), start=warm[-1], tol=TOL))
    assert all(s.status == "solved" for s in warm)
    for a, b in zip(cold, warm, strict=True):
        assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=2 * TOL)
    iterations = [sum(s.trace[-1].iteration for s in run[1:]) for run in (cold, warm)]
    assert iterations[1] < iterations[0]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_starts_from_any_point(loss, intercept):
    X, y = PROBLEMS["ndc"]()
    problem = Problem(X, y, 1.0, loss, intercept)
    rng = np.random.default_rng(0)
    start = (rng.uniform(-1, 2, len(y)), 10 * rng.normal(size=X.shape[1]), 5.0)
    assert solve(problem, start=start, tol=TOL).status == "solved"


def wide_sparse(m, n, per_row, seed=0):
    """Random CSR rows and labels of a plane."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((m, n), density=per_row / n, format="csr", rng=rng)
    y = np.sign(X @ rng.normal(size=n) + 0.1 * rng.normal(size=m))
    return X, y


@product(
    shape=[
        (500, 3000, 30),  # fewer rows than columns: through m x m
        (1500, 1100, 30),  # through n x n
        (2000, 6000, 2),  # sparse factors
    ],
    C=[1.0, 100.0],
    intercept=["free", "penalized", "none"],
)
def test_wide_sparse_data(shape, C, intercept):
    X, y = wide_sparse(*shape)
    problem = Problem(X, y, C, intercept=intercept)
    solution = solve(problem, tol=1e-6)
    assert solution.status == "solved", solution


@pytest.mark.cover(1)
@product(form=["dual", "sparse"], capped=[False, True], setting=SETTINGS)
def test_forms_for_wide_data_agree_with_the_conic_solver(
    monkeypatch, form, capped, setting
):
    loss, intercept = setting
    if capped:  # as with more rows and columns than a dense matrix may have
        monkeypatch.setattr(normal_equations, "DENSE_ORDER", 100)
        monkeypatch.setattr(normal_equations, "DUAL_ROWS", 100)
    X, y = wide_sparse(300, 600, 10)
    C = 10.0 ** np.random.default_rng(1).uniform(-1, 1, len(y))
    solver = InteriorPoint(normal_matrix=form)
    # Conjugate gradients for more support vectors than Q may hold: no more than this.
    tol = 1e-4 if capped and form == "dual" else TOL
    solution = solve(Problem(X, y, C, loss, intercept), solver, tol=tol)
    assert solution.status == "solved", solution
    reference = reference_objective(X.toarray(), y, C, loss, intercept)
    assert solution.certificate.primal == pytest.approx(reference, rel=10 * tol)
    if form == "dual" and capped:
        assert solution.trace.column("active").max() <= 102


def test_rows_that_are_alike_do_not_raise_the_cap(monkeypatch):
    monkeypatch.setattr(normal_equations, "DENSE_ORDER", 100)
    monkeypatch.setattr(normal_equations, "DUAL_ROWS", 100)
    X, y = wide_sparse(200, 600, 10)
    X, y = sparse.csr_array(sparse.vstack([X] * 5)), np.tile(y, 5)
    solution = solve(Problem(X, y), InteriorPoint(normal_matrix="dual"), tol=1e-4)
    assert solution.status == "solved"
    assert solution.trace.column("active").max() <= 102


def test_one_full_row_is_no_sparse_gram_matrix():
    X, y = wide_sparse(1500, 1500, 1)
    full = sparse.csr_array(np.ones((1, 1500)))
    X = sparse.csr_array(sparse.vstack([X[1:], full]))
    assert not normal_equations._gram_is_sparse(Problem(X, np.where(y < 0, -1, 1)))
    thin = Problem(X[:-1], np.where(y < 0, -1, 1)[:-1])
    assert normal_equations._gram_is_sparse(thin)


def test_a_singular_sparse_matrix_is_factored_with_jitter():
    X, y = wide_sparse(2500, 3000, 2)
    forced = InteriorPoint(normal_matrix="sparse")
    solution = solve(Problem(X * 1e6, np.where(y < 0, -1, 1), 1e6), forced, tol=1e-6)
    assert solution.status == "solved"


def test_hopeless_numbers_end_with_a_status_not_a_traceback():
    X, y = PROBLEMS["wide"]()
    solution = solve(Problem(X, y, 1e150))
    assert solution.status in ("numerical_error", "stalled")
    assert np.all(np.isfinite(solution.w))


def test_the_dual_form_is_for_wide_data():
    with pytest.raises(ValueError, match="needs at least 500 columns, .* Got 16"):
        solve(Problem(*PROBLEMS["ndc"]()), InteriorPoint(normal_matrix="dual"))


def test_one_hot_groups_in_the_sparse_factorization():
    """Columns that add up to a constant: the denominator of Sherman-Morrison cancels."""
    rng = np.random.default_rng(0)
    m = 3000
    codes = [rng.integers(0, k, m) for k in (1500, 1000)]
    groups = [sparse.csr_array((np.ones(m), (np.arange(m), c))) for c in codes]
    X = sparse.csr_array(sparse.hstack(groups))
    y = np.where(codes[0] % 2 == 0, 1.0, -1.0) * np.sign(rng.normal(size=m) + 0.7)
    forced = InteriorPoint(normal_matrix="sparse")
    for C in (0.1, 10.0):
        solution = solve(Problem(X, y, C), forced, tol=1e-7)
        assert solution.status == "solved", solution


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "rule 2"}, "'reduction' parameter of InteriorPoint must be one"),
        ({"max_active": 0.0}, r"'max_active' .* range \(0, 1\]"),
        ({"max_active": 1.5}, r"'max_active' .* range \(0, 1\]"),
        ({"max_active": 0.5, "reduction": None}, "1.0 where reduction is None"),
        ({"pcg_steps": -1}, r"'pcg_steps' .* range \[0, inf\)"),
        ({"beta": -4}, "'beta' .* Got -4 instead"),
        ({"normal_matrix": "full"}, "'normal_matrix' .* 'full'"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        InteriorPoint(**options)
