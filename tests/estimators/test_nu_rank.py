"""OneClassSVM, NuSVC and NuSVR with a kernel matrix of low rank, and their solvers."""

import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.pairwise import product
from widemargin import (
    NuSVC,
    NuSVR,
    OneClassSVM,
    as_rows,
    load_model,
    open_rows,
    save_model,
)
from widemargin.estimators.low_rank import LINEAR
from widemargin.features.methods import feature_map
from widemargin.problems.nu import nu_problem, nu_regression_problem
from widemargin.solvers import IRWLS, InteriorPoint

RNG = np.random.default_rng(5)
X, NEW = RNG.normal(size=(180, 3)), RNG.normal(size=(40, 3))
TARGET = X[:, 0] ** 2 + X[:, 1] + 0.1 * RNG.normal(size=180)
LABELS = X[:, 0] + 0.7 * RNG.normal(size=180) > 0
CLASSES = LABELS + (X[:, 1] > 0)
WEIGHTS = RNG.uniform(0.2, 2.0, 180)
WEIGHTS[::9] = 0.0
KINDS = {OneClassSVM: LABELS, NuSVC: CLASSES, NuSVR: TARGET}
kinds = pytest.mark.parametrize("kind", KINDS)
FORM = {"gamma": 0.3, "nu": 0.3}
# The classes overlap in 50 features: 0.3 leaves a margin of 1e-4, and 3,000 steps. In
# 20 it leaves none.
WIDE, FEW = FORM | {"nu": 0.4}, FORM | {"nu": 0.6}


def values(machine, rows=NEW):
    """Decision values, or predictions."""
    return getattr(machine, "decision_function", machine.predict)(rows)


@product(
    kind=list(KINDS), method=["cholesky", "nystroem", "eigen"], weighted=[False, True]
)
def test_a_full_rank_is_the_exact_machine(kind, method, weighted):
    weights = WEIGHTS if weighted else None
    low = kind(rank=180, approximation=method, tol=1e-8, **FORM)
    low.fit(X, KINDS[kind], sample_weight=weights)
    exact = kind(tol=1e-8, **FORM).fit(X, KINDS[kind], sample_weight=weights)
    assert low.status_ == "solved"
    assert low.dual_gap_ <= 1e-8
    scale = np.abs(values(exact)).max()
    np.testing.assert_allclose(values(low), values(exact), atol=1e-3 * scale)


def proved_in_features(machine, y, weights):
    """The certificate of a machine's weights of Fourier features, by the problem."""
    z = as_rows(machine.feature_map_.rows(X).take(np.arange(180)))
    nu, C, options = WIDE["nu"], np.array(weights), {"kernel": LINEAR}
    solution = machine.solution_
    if isinstance(machine, NuSVR):
        problem = nu_regression_problem(z, y, C, nu, **options)
    else:
        y = np.ones(180) if isinstance(machine, OneClassSVM) else np.where(y, 1, -1)
        problem = nu_problem(z, y, C, nu, **options)
    c = problem.y * solution.alpha
    w = z.rmatvec(c.reshape(-1, 180).sum(axis=0))
    np.testing.assert_allclose(w, solution.w, atol=1e-9 * np.abs(w).max())
    return problem.certify(solution.alpha, c, solution.b, tol=machine.tol)


def primal_in_features(machine, y, weights):
    """P of a machine's weights of Fourier features, its b and its rho, as it is written."""
    z, solution = machine.feature_map_.rows(X).take(np.arange(180)), machine.solution_
    f, rho, mass = z @ solution.w + solution.b, solution.rho, WIDE["nu"] * weights.sum()
    if isinstance(machine, NuSVR):
        errors = np.maximum(0.0, np.abs(y - f) + rho)  # epsilon is -rho
    else:
        y = 1.0 if isinstance(machine, OneClassSVM) else np.where(y, 1.0, -1.0)
        errors = np.maximum(0.0, rho - y * f)
    return 0.5 * solution.w @ solution.w - mass * rho + weights @ errors


@product(kind=list(KINDS), tol=[1e-4, 1e-7])
def test_the_gap_is_that_of_the_features(kind, tol):
    y = LABELS if kind is NuSVC else KINDS[kind]
    machine = kind(rank=50, approximation="fourier", tol=tol, **WIDE)
    machine.fit(X, y, sample_weight=WEIGHTS)
    bounds = proved_in_features(machine, y, WEIGHTS)
    assert bounds.relative_gap <= 1.01 * tol
    known = machine.solution_.certificate
    # The certificate's rho is that of the answer; `certify` chooses a better one anew.
    own = primal_in_features(machine, y, WEIGHTS)
    rounded = known.rounding + 1e-15
    if kind is OneClassSVM:  # its rho is rounded down, and the bound is of all it costs
        rounded += 4e-11 * abs(known.primal)
    assert own == pytest.approx(known.primal, abs=rounded)
    assert own <= known.primal + 1e-15
    assert bounds.primal <= known.primal + 1e-12 * abs(known.primal)
    scores = machine.feature_map_.rows(NEW).matvec(machine.coef_[0])
    expected = scores + machine.intercept_[0]
    np.testing.assert_allclose(values(machine), expected, rtol=1e-9)


@kinds
def test_landmarks_predict(kind):
    y = LABELS if kind is NuSVC else KINDS[kind]
    machine = kind(rank=20, **FEW).fit(X, y)
    assert machine.feature_map_.rank == machine.n_support_.sum() == 20
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    scores = machine.dual_coef_ @ rbf_kernel(machine.support_vectors_, NEW, gamma=0.3)
    scores += machine.intercept_[:, np.newaxis]
    np.testing.assert_allclose(values(machine), scores[0], rtol=1e-6, atol=1e-8)


@kinds
def test_a_share_of_the_trace_is_kept(kind):
    machine = kind(rank=0.01, **FORM).fit(X, KINDS[kind])
    assert machine.feature_map_.trace_residual <= 0.01
    assert machine.status_ == "solved"


@product(kind=list(KINDS), method=["nystroem", "fourier"])
def test_models_of_low_rank_are_kept_in_files(kind, method, tmp_path):
    machine = kind(rank=20, approximation=method, **FORM).fit(X, KINDS[kind])
    save_model(machine, tmp_path / "model.wm")
    model = load_model(tmp_path / "model.wm")
    np.testing.assert_array_equal(model.predict(NEW), machine.predict(NEW))
    assert model.meta["rank"] == 20
    loaded = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(values(loaded), values(machine))


@kinds
def test_rows_in_files_are_trained_with_a_rank(kind, tmp_path):
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy")
    assert not rows.is_in_memory
    held = kind(tol=1e-9, **FORM).fit(X, KINDS[kind])
    stored = kind(rank=180, tol=1e-9, **FORM).fit(rows, KINDS[kind])
    scale = np.abs(values(held)).max()
    np.testing.assert_allclose(values(stored), values(held), atol=1e-3 * scale)


@kinds
def test_features_of_rows_in_files_are_held_as_far_as_the_memory_limit_goes(
    kind, tmp_path
):
    """A kernel solver needs them in memory; what is too little is told, and how much."""
    m = 5000
    rows = np.random.default_rng(0).normal(size=(m, 8))
    y = rows[:, 0] > 0 if kind is NuSVC else rows[:, 0]
    np.save(tmp_path / "X.npy", rows)
    machine = kind(rank=30, random_state=0, max_iter=1)

    def fitted(limit):
        return machine.fit(open_rows(tmp_path / "X.npy", memory_limit=limit), y)

    with pytest.raises(ValueError, match=r"30 features of 5,000 rows. Got 13,000") as e:
        fitted(13_000_000)
    (least,) = re.findall(
        r"X.npy: expected a memory_limit of at least ([\d,]+)", str(e)
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        found = fitted(int(least.replace(",", "")))
    assert found.solution_.w.shape == (30,)


def test_a_memory_limit_of_the_machine_has_room_for_the_features_too(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5000, 8))
    np.save(tmp_path / "X.npy", rows)
    machine = OneClassSVM(rank=30, memory_limit=2_000_000)
    message = (
        r"'memory_limit' parameter of OneClassSVM must be at least 2,400,000 bytes"
    )
    with pytest.raises(ValueError, match=message):
        machine.fit(open_rows(tmp_path / "X.npy"))


@kinds
def test_rows_in_files_have_the_landmarks_of_rows_in_memory(kind, tmp_path):
    """They were drawn anew: decisions differed as with another random_state."""
    np.save(tmp_path / "X.npy", X)
    held, stored = (
        kind(rank=50, random_state=0, **WIDE).fit(rows, KINDS[kind])
        for rows in (X, open_rows(tmp_path / "X.npy"))
    )
    np.testing.assert_allclose(values(stored), values(held), atol=1e-9)


@product(kind=list(KINDS), method=["nystroem", "fourier"])
def test_callbacks_predict_at_each_step(kind, method):
    seen = []

    class Watch:
        def __call__(self, step):
            seen.append(step)

    y = LABELS if kind is NuSVC else KINDS[kind]
    machine = kind(rank=20, approximation=method, callback=Watch(), **FEW).fit(X, y)
    assert seen
    assert machine.status_ == "solved"


@kinds
def test_a_limit_ends_a_fit_of_low_rank(kind):
    machine = kind(rank=20, time_limit=1e-9, **FORM)
    with pytest.warns(ConvergenceWarning, match="time"):
        machine.fit(X, KINDS[kind])
    assert machine.status_ == "time_limit"
    assert np.isfinite(values(machine)).all()


@product(kind=list(KINDS), rank=[None, 30])
def test_a_solver_can_be_chosen(kind, rank):
    y = KINDS[kind]
    auto = kind(rank=rank, **FORM).fit(X, y)
    named = kind(rank=rank, solver="irwls", **FORM).fit(X, y)
    carried = kind(rank=rank, solver=IRWLS(working_set=40), **FORM).fit(X, y)
    assert {s.solver for s in auto.solutions_} == {"batch"}
    assert {s.solver for s in named.solutions_} == {"irwls"}
    assert carried.status_ == "solved"
    scale = np.abs(values(auto)).max()
    np.testing.assert_allclose(values(named), values(auto), atol=0.05 * scale)
    np.testing.assert_allclose(values(carried), values(auto), atol=0.05 * scale)


@kinds
def test_solvers_and_ranks_out_of_range_are_refused(kind):
    y = KINDS[kind]
    with pytest.raises(ValueError, match="'solver' .* 'auto', 'batch', 'irwls'"):
        kind(solver="interior_point").fit(X, y)
    with pytest.raises(ValueError, match="solver of kernel problems"):
        kind(solver=InteriorPoint(), rank=10).fit(X, y)
    with pytest.raises(ValueError, match="'rank' .* or None. Got 'auto'"):
        kind(rank="auto").fit(X, y)
    with pytest.raises(ValueError, match="'rank'"):
        kind(rank=0).fit(X, y)
    with pytest.raises(ValueError, match="'rank' .* kernel='linear'"):
        kind(rank=5, kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="'approximation'"):
        kind(approximation="eigen").fit(X, y)


def test_a_map_is_the_one_of_its_name():
    machine = OneClassSVM(rank=20, approximation="fourier", **FORM).fit(X)
    kernel = machine.kernel_
    z = feature_map(X, kernel, "fourier", 20, random_state=0)
    found = machine.feature_map_.rows(NEW).take(np.arange(40))
    np.testing.assert_allclose(z.rows(NEW).take(np.arange(40)), found, rtol=1e-6)
