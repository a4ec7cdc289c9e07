"""LinearSVR and SVR: scikit-learn's checks and answers, storage, models, bad input."""

import pickle
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from tests.cases.pairwise import checks_by_turns, product
from tests.cases.regression import friedman
from tests.conftest import STORAGES
from widemargin import (
    SVR,
    Checkpoint,
    LinearSVR,
    load_model,
    open_rows,
    save_model,
)
from widemargin.cli import main
from widemargin.models.model import Decision, Model
from widemargin.solvers import IRWLS, ActiveSet, InteriorPoint

LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
X, TARGET = friedman(150)
WEIGHTS = np.random.default_rng(7).integers(0, 3, len(X)).astype(float)
SMALL = {"C": 10.0, "epsilon": 0.3, "tol": 1e-9}


@dataclass(frozen=True)
class Gaussian:
    """A callable kernel, with a name that is the same in every process."""

    gamma: float = 0.2

    def __call__(self, A, B):
        A, B = (Z.toarray() if sparse.issparse(Z) else Z for Z in (A, B))
        return rbf_kernel(A, B, gamma=self.gamma)


gaussian = Gaussian()


@checks_by_turns(
    [
        LinearSVR(),
        SVR(),
        LinearSVR(loss="squared_epsilon_insensitive", intercept="free"),
        LinearSVR(intercept="penalized", epsilon=0.1, tol=1e-10),
        LinearSVR(solver="interior_point"),
        SVR(loss="squared_epsilon_insensitive"),
        SVR(kernel="linear"),
        SVR(kernel="linear", solver="irwls", intercept="none"),
        SVR(kernel="precomputed"),
        SVR(kernel=Gaussian()),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- scikit-learn's answers ------------------------------------------------------------


@product(loss=LOSSES, C=[1e-3, 0.1, 10.0], epsilon=[0.0, 0.5], weighted=[False, True])
def test_linear_svr_is_that_of_liblinear(loss, C, epsilon, weighted):
    weights = WEIGHTS if weighted else None
    options = {"C": C, "epsilon": epsilon, "loss": loss, "tol": 1e-10}
    ours = LinearSVR(intercept="penalized", **options).fit(X, TARGET, weights)
    theirs = svm.LinearSVR(max_iter=10**6, dual=True, random_state=0, **options)
    theirs.fit(X, TARGET, weights)
    assert ours.status_ == "solved"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    assert ours.score(X, TARGET) == pytest.approx(r2_score(TARGET, ours.predict(X)))


@product(
    kernel=["rbf", "poly", "linear"],
    C=[0.1, 10.0],
    epsilon=[0.1, 1.0],
    weighted=[False, True],
)
def test_svr_is_that_of_libsvm(kernel, C, epsilon, weighted):
    weights = WEIGHTS if weighted else None
    options = {"kernel": kernel, "C": C, "epsilon": epsilon, "coef0": 1.0}
    ours = SVR(tol=1e-10, **options).fit(X, TARGET, weights)
    theirs = svm.SVR(tol=1e-8, **options)
    if weighted:  # gamma="scale" counts rows by weight here, and there it does not
        options["gamma"] = 0.2
        ours, theirs = (clone(e).set_params(gamma=0.2) for e in (ours, theirs))
        ours.fit(X, TARGET, weights)
    theirs.fit(X, TARGET, weights)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    if not weighted:  # there they are counted without the rows of weight 0
        np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=C * 1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        assert ours.coef_.shape == theirs.coef_.shape


def test_kernels_by_name_values_and_function_agree():
    by_name = SVR(gamma=0.2, **SMALL).fit(X, TARGET)
    by_values = SVR(kernel="precomputed", **SMALL).fit(gaussian(X, X), TARGET)
    by_function = SVR(kernel=gaussian, **SMALL).fit(X, TARGET)
    found = by_values.predict(gaussian(X, X)), by_function.predict(X)
    for predicted in found:
        np.testing.assert_allclose(predicted, by_name.predict(X), atol=1e-6)
    assert by_values.support_vectors_.shape == (0, 0)
    np.testing.assert_array_equal(by_values.support_, by_name.support_)


def test_low_rank():
    exact = SVR(gamma=0.2, C=10.0).fit(X, TARGET)
    for options in (
        {"rank": 140},
        {"rank": 1e-6},
        {"rank": "auto"},
        {"rank": 2000, "approximation": "fourier"},
    ):
        reg = SVR(gamma=0.2, C=10.0, random_state=0, **options).fit(X, TARGET)
        assert reg.status_ == "solved"
        assert reg.score(X, TARGET) == pytest.approx(exact.score(X, TARGET), abs=0.05)
        assert hasattr(reg, "feature_map_") == (options["rank"] != "auto")


# -- rows ------------------------------------------------------------------------------


@pytest.mark.one_of(3)
@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: storage.name)
@pytest.mark.parametrize("loss", LOSSES)
def test_linear_svr_on_rows_in_all_storages(storage, loss):
    data = np.rint(6.0 * X + 20.0)
    rows, plain = storage.make(data, memory_limit=1 << 14), storage.exact(data)
    options = {"loss": loss, "C": 0.01, "epsilon": 0.3, "tol": 1e-8}
    found = LinearSVR(**options).fit(rows, TARGET, WEIGHTS)
    known = LinearSVR(**options).fit(plain, TARGET, WEIGHTS)
    assert found.status_ == known.status_ == "solved"
    np.testing.assert_allclose(found.coef_, known.coef_, atol=1e-5)
    np.testing.assert_allclose(found.predict(rows), known.predict(plain), atol=1e-3)
    P = found.solution_.certificate.primal
    assert pytest.approx(known.solution_.certificate.primal, rel=2e-8) == P


def test_sparse_rows_with_a_kernel():
    dense = np.where(np.abs(X) < 0.7, 0.0, X)
    one = SVR(gamma=0.2, **SMALL).fit(dense, TARGET)
    other = SVR(gamma=0.2, **SMALL).fit(sparse.csr_array(dense), TARGET)
    np.testing.assert_allclose(one.predict(dense), other.predict(dense), atol=1e-6)
    assert sparse.issparse(other.support_vectors_)


def test_a_kernel_needs_rows_in_memory(tmp_path):
    np.save(tmp_path / "X-0.npy", X)
    rows = open_rows(tmp_path)
    message = r"'X' parameter of SVR.fit must be in memory .* SVR\(rank=...\) takes"
    with pytest.raises(ValueError, match=message):
        SVR().fit(rows, TARGET)
    assert SVR(rank=50, gamma=0.2).fit(rows, TARGET).status_ == "solved"


# -- models ----------------------------------------------------------------------------

FITTED = {
    "linear": lambda: LinearSVR(C=0.1),
    "rbf": lambda: SVR(gamma=0.2),
    "kernel linear": lambda: SVR(kernel="linear", solver="irwls"),
    "landmarks": lambda: SVR(rank=20),
    "fourier": lambda: SVR(rank=30, approximation="fourier"),
    "polynomial": lambda: SVR(
        kernel="poly", degree=2, coef0=1.0, rank=50, approximation="polynomial"
    ),
}


@pytest.mark.parametrize("name", FITTED)
def test_models_come_back_from_files(name, tmp_path):
    reg = FITTED[name]().fit(X, TARGET)
    save_model(reg, tmp_path / "m")
    model = load_model(tmp_path / "m")
    np.testing.assert_array_equal(model.predict(X), reg.predict(X))
    assert model.score(X, TARGET) == pytest.approx(reg.score(X, TARGET), rel=1e-12)
    score = model.score(X, TARGET, WEIGHTS)
    assert score == pytest.approx(reg.score(X, TARGET, WEIGHTS), rel=1e-12)
    assert model.scheme == "regression"
    assert model.meta["epsilon"] == reg.epsilon
    assert "classes" not in repr(model)
    again = pickle.loads(pickle.dumps(reg))
    np.testing.assert_array_equal(again.predict(X), reg.predict(X))


@pytest.mark.parametrize("name", FITTED)
def test_the_command_line_predicts_with_a_regression(name, tmp_path, capsys):
    reg = FITTED[name]().fit(X, TARGET)
    model, data = str(tmp_path / "m.wm"), str(tmp_path / "d.svm")
    save_model(reg, model)
    dump_svmlight_file(X, np.ones(len(X)), data, zero_based=False)
    assert main(["predict", model, data]) == 0
    lines = capsys.readouterr().out.split()
    predicted = reg.predict(X)
    np.testing.assert_allclose(np.array(lines, float), predicted, rtol=1e-9, atol=1e-9)
    assert main(["inspect", model]) == 0
    assert "regression" in capsys.readouterr().out


def test_a_regression_in_a_file_of_another_version_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot have 2 classes"):
        Model(np.array([0.0, 1.0]), "regression", (Decision(np.ones(2), 0.0),))
    with pytest.raises(ValueError, match="cannot have 0 classes"):
        Model(np.empty(0), "binary", (Decision(np.ones(2), 0.0),))


# -- limits and callbacks --------------------------------------------------------------


def test_callbacks_see_steps_in_the_units_of_the_target():
    steps = []
    reg = LinearSVR(C=10.0, solver=InteriorPoint(), callback=steps.append)
    reg.fit(X, 1000.0 * TARGET)
    primal = reg.solution_.certificate.primal
    assert steps[-1].primal == pytest.approx(primal, rel=1e-3)
    assert steps[-1].best_dual <= primal
    assert steps[-1].relative_gap <= 1e-3


def test_limits_keep_a_model():
    reg = SVR(C=1e4, max_iter=1, tol=1e-12, solver=IRWLS(working_set=8))
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        reg.fit(X, TARGET)
    assert reg.status_ == "max_iter"
    assert np.isfinite(reg.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        late = LinearSVR(time_limit=1e-9).fit(X, TARGET)
    assert late.status_ == "time_limit"
    assert late.dual_gap_ >= 1.0


def stop(step):
    return step.iteration == 2


@pytest.mark.parametrize("reg", [LinearSVR(C=10.0), SVR(C=10.0, gamma=0.2)])
def test_a_checkpoint_goes_on(reg, tmp_path):
    path = tmp_path / "saved"
    slow = InteriorPoint() if isinstance(reg, LinearSVR) else IRWLS(working_set=16)
    reg.set_params(checkpoint=Checkpoint(path, 1e-6), solver=slow, tol=1e-4)
    with pytest.warns(ConvergenceWarning, match="callback"):
        clone(reg).set_params(callback=stop).fit(X, TARGET)
    with pytest.raises(ValueError, match="size of the margins q"):
        clone(reg).fit(X, TARGET + 1.0)
    found = clone(reg).fit(X, TARGET)
    assert found.status_ == "solved"
    assert "resumed" in found.solution_.reason
    assert not path.exists()


def test_parameters_can_be_searched():
    search = GridSearchCV(SVR(gamma=0.2), {"C": [0.1, 10.0], "epsilon": [0.1]}, cv=3)
    assert search.fit(X, TARGET).best_params_["C"] == 10.0


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LinearSVR, SVR])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, r"'epsilon' .* must be a float in the range \[0, inf\). "),
        ({"epsilon": np.inf}, "Got inf instead"),
        ({"epsilon": "wide"}, "Got 'wide' instead"),
        ({"epsilon": True}, "Got True instead"),
        ({"C": 0.0}, r"'C' .* must be a float in the range \(0, inf\]"),
        ({"loss": "hinge"}, "'loss' .* Got 'hinge' instead"),
        ({"intercept": "some"}, "'intercept'"),
        ({"solver": "best"}, "'solver'"),
        ({"tol": 0.0}, "'tol'"),
    ],
)
def test_parameters_out_of_range_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(X, TARGET)


@pytest.mark.parametrize(
    "machine", [LinearSVR(), SVR(kernel="linear"), SVR(rank=5)], ids=str
)
@pytest.mark.parametrize(
    ("solver", "loss", "other"),
    [
        ("active_set", "epsilon_insensitive", "squared_epsilon_insensitive"),
        (ActiveSet(), "epsilon_insensitive", "squared_epsilon_insensitive"),
        ("augmented_lagrangian", "squared_epsilon_insensitive", "epsilon_insensitive"),
    ],
)
def test_a_solver_of_the_other_loss_is_refused_in_words_of_a_regression(
    machine, solver, loss, other
):
    message = (
        f"solves the loss '{other}' only: use solver='auto' or loss='{other}'. "
        f"Got '{loss}' instead."
    )
    machine = clone(machine).set_params(solver=solver, loss=loss)
    with pytest.raises(ValueError, match=re.escape(message)):
        machine.fit(X, TARGET)
    assert machine.set_params(loss=other).fit(X, TARGET).status_ == "solved"


@pytest.mark.parametrize("kind", [LinearSVR, SVR])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(150) == 3, np.nan, TARGET), "Got NaN at row 3 instead"),
        (np.where(np.arange(150) == 4, np.inf, TARGET), "Got inf at row 4 instead"),
        (np.full(150, "a"), "must hold real numbers. Got an array of dtype <U1"),
        (np.array(["1.5", *TARGET[1:]], object), "Got '1.5' at row 0 instead"),
        (np.array([None, *TARGET[1:]], object), "Got None at row 0 instead"),
        (TARGET * 1j, "must hold real numbers. Got an array of dtype complex128"),
        (np.c_[TARGET, TARGET], r"must be one-dimensional: .* Got shape \(150, 2\)"),
        (TARGET[:-1], "must have length 150. Got length 149 instead"),
        (None, "requires y to be passed"),
    ],
)
def test_targets_that_are_none_are_refused(kind, y, message):
    reg = kind().fit(X, TARGET)
    before = reg.predict(X)
    with pytest.raises(ValueError, match=message):
        reg.fit(X, y)
    np.testing.assert_array_equal(reg.predict(X), before)


def test_a_column_of_targets_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning):
        one = LinearSVR().fit(X, TARGET[:, np.newaxis])
    np.testing.assert_array_equal(one.coef_, LinearSVR().fit(X, TARGET).coef_)
    objects = LinearSVR().fit(X, TARGET.astype(object))
    np.testing.assert_array_equal(one.coef_, objects.coef_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_weights_whose_squares_overflow_end_with_a_status(loss, intercept):
    reg = LinearSVR(loss=loss, intercept=intercept)
    with pytest.warns(ConvergenceWarning):
        reg.fit(X, TARGET, np.full(len(X), 1e160))
    assert reg.status_ == "numerical_error"
