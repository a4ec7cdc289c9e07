"""Model files of `EnclosingBall`."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import EnclosingBall, Kernel, load_model, save_model
from widemargin.models.libsvm import read_libsvm, write_libsvm
from widemargin.models.onnx import write_onnx
from widemargin.report import write_report

RNG = np.random.default_rng(0)
OLD, NEW = RNG.normal(size=(200, 3)), 2.0 * RNG.normal(size=(300, 3))
K = Kernel("rbf", gamma=0.3)


def saved(machine, path):
    save_model(machine, path)
    return load_model(path)


@pytest.mark.parametrize(
    "options",
    [
        {"C": None},
        {"C": 1.0},
        {"contamination": 0.1},
        {"contamination": 1e-3},  # of the farthest row, which is inside
        {"C": None, "kernel": "laplacian"},
        {"C": None, "kernel": "chi2"},
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_ball_comes_back_from_its_file(tmp_path, options, form):
    old, new = form(np.abs(OLD)), form(np.abs(NEW))
    ball = EnclosingBall(**options).fit(old)
    model = saved(ball, tmp_path / "b.wm")
    for rows in (old, new):  # of a hard ball some rows of the fit are on its surface
        np.testing.assert_array_equal(model.predict(rows), ball.predict(rows))
        known = ball.decision_function(rows)
        np.testing.assert_allclose(model.decision_function(rows), known, atol=1e-13)
    assert model.meta["radius"] == ball.radius_


def test_values_of_a_kernel_predict_too(tmp_path):
    ball = EnclosingBall(kernel="precomputed", C=None).fit(K(OLD, OLD))
    model = saved(ball, tmp_path / "b.wm")
    for rows in (OLD, NEW):
        values = K(rows, OLD)
        np.testing.assert_array_equal(model.predict(values), ball.predict(values))


def test_a_pipeline_is_one_model(tmp_path):
    rows = OLD * [1.0, 100.0, 0.01]
    pipeline = make_pipeline(StandardScaler(), EnclosingBall(C=1.0)).fit(rows)
    model = saved(pipeline, tmp_path / "b.wm")
    np.testing.assert_array_equal(model.predict(rows), pipeline.predict(rows))


def test_other_formats_have_the_values(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    ball = EnclosingBall(C=1.0).fit(OLD)
    rows = NEW.astype(np.float32)
    known = ball.decision_function(rows)
    write_libsvm(ball, tmp_path / "b.model")
    found = read_libsvm(tmp_path / "b.model").decision_function(rows)
    np.testing.assert_allclose(found, known, atol=1e-13)
    write_onnx(ball, tmp_path / "b.onnx")
    session = runtime.InferenceSession(tmp_path / "b.onnx")
    label, found = session.run(None, {"X": rows})
    np.testing.assert_allclose(np.ravel(found), known, atol=1e-6)
    np.testing.assert_array_equal(label, ball.predict(rows))


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "b.wm"
    save_model(EnclosingBall(C=1.0).fit(OLD), path)
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        changed = bytearray(content)
        changed[place] ^= 0x20
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="is not a usable model file"):
            load_model(path)
    path.write_bytes(content[:-40])
    with pytest.raises(ValueError, match="its checksum is wrong"):
        load_model(path)


@pytest.mark.parametrize(
    "options",
    [{"kernel": "linear"}, {"kernel": "poly"}, {"kernel": lambda A, B: A @ B.T}],
)
def test_where_values_differ_there_is_no_model(tmp_path, options):
    ball = EnclosingBall(**options, C=None).fit(OLD)
    with pytest.raises(ValueError, match=r"has a model for kernels with one k\(x, x\)"):
        save_model(ball, tmp_path / "b.wm")
    assert not hasattr(ball, "model_")
    assert "radius_" in dir(ball)  # which asks for all attributes
    varies = EnclosingBall(kernel="precomputed", C=None).fit(OLD @ OLD.T)
    with pytest.raises(ValueError, match="Got the kernel 'precomputed'"):
        save_model(varies, tmp_path / "b.wm")


def test_a_ball_without_a_radius_has_no_model():
    ball = EnclosingBall().fit(OLD)
    ball.radius_ = np.inf  # as where there was no time for any k(x, x)
    with pytest.raises(ValueError, match="has no model: its radius is infinite"):
        ball.model_


def test_there_is_no_report_on_a_ball(tmp_path):
    with pytest.raises(TypeError, match="Got EnclosingBall instead"):
        write_report(tmp_path / "r.html", EnclosingBall().fit(OLD), OLD)
