"""Files that were written before the modules moved to their rooms: models, checkpoints."""

import pathlib
import shutil

import numpy as np
import pytest

from widemargin import SVC, Problem, load_model, solve

FOLDER = pathlib.Path(__file__).parent / "models_before"


@pytest.mark.parametrize(
    "name", ["linear", "rbf", "fourier", "budget_hard", "budget_soft"]
)
def test_a_model_file_of_before_decides_as_it_did(name):
    model = load_model(FOLDER / f"{name}.wm")
    with np.load(FOLDER / f"{name}.npz") as was:
        found = model.decision_function(was["rows"])
        np.testing.assert_allclose(found, was["decisions"], rtol=1e-9, atol=1e-9)
        assert list(model.predict(was["rows"]).astype(str)) == list(was["labels"])


def go_on_linear(X, y, path):
    return solve(Problem(X, y, 1.0), "interior_point", tol=1e-9, checkpoint=path)


def go_on_kernel(X, y, path):
    form = {"loss": "squared_hinge", "intercept": "penalized"}
    classifier = SVC(gamma=0.4, solver="core_vector", tol=1e-9, checkpoint=path, **form)
    return classifier.fit(X, y).solution_


@pytest.mark.parametrize(
    ("name", "go_on", "saved"),
    [("interior_point", go_on_linear, 4), ("core_vector", go_on_kernel, 20)],
)
def test_a_run_of_before_goes_on(name, go_on, saved, tmp_path):
    path = tmp_path / "run.checkpoint"
    shutil.copyfile(FOLDER / f"{name}.checkpoint", path)
    with np.load(FOLDER / "checkpoints.npz") as was:
        solution = go_on(was["X"], was["y"], path)
        assert solution.trace[0].best_gap <= was[f"gap_{name}"] * (1.0 + 1e-9)
    assert solution.status == "solved"
    assert solution.trace[0].iteration == saved
    assert f"(resumed at iteration {saved})" in solution.reason
    assert not path.exists()
