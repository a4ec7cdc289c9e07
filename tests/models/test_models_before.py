"""Model files that were written before the modules moved to their rooms still load."""

import pathlib

import numpy as np
import pytest

from widemargin import load_model

FOLDER = pathlib.Path(__file__).parent / "models_before"


@pytest.mark.parametrize("name", ["linear", "rbf", "fourier"])
def test_a_model_file_of_before_decides_as_it_did(name):
    model = load_model(FOLDER / f"{name}.wm")
    with np.load(FOLDER / f"{name}.npz") as was:
        found = model.decision_function(was["rows"])
        np.testing.assert_allclose(found, was["decisions"], rtol=1e-9, atol=1e-9)
        assert list(model.predict(was["rows"]).astype(str)) == list(was["labels"])
