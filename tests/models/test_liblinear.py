"""LIBLINEAR's model files: exact round trips, and agreement with LIBLINEAR itself."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from widemargin import LinearSVC, LinearSVR
from widemargin.models.liblinear import read_liblinear, write_liblinear
from widemargin.models.model import Decision, Model

SOLVERS = {  # name: number of LIBLINEAR's option -s, loss
    "L2R_LR": (0, "logistic"),
    "L2R_L2LOSS_SVC_DUAL": (1, "squared_hinge"),
    "L2R_L2LOSS_SVC": (2, "squared_hinge"),
    "L2R_L1LOSS_SVC_DUAL": (3, "hinge"),
    "MCSVM_CS": (4, "hinge"),
    "L1R_L2LOSS_SVC": (5, "squared_hinge"),
    "L1R_LR": (6, "logistic"),
    "L2R_LR_DUAL": (7, "logistic"),
}


@pytest.fixture(scope="module")
def liblinear() -> Any:
    """The Python face of LIBLINEAR."""
    return pytest.importorskip(
        "liblinear.liblinearutil",
        reason="LIBLINEAR is not installed: pip install liblinear-official",
    )


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A path for the many files of a property, without waiting for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield tmp_path_factory.mktemp("models") / "model"


def make(classes: Any, meta: dict[str, Any] | None = None, n: int = 3) -> Model:
    """A model of some classes."""
    classes = np.asarray(classes)
    W = np.random.default_rng(0).standard_normal((len(classes), n))
    decisions = tuple(Decision(w, float(w.sum())) for w in W)
    if len(classes) == 2:
        return Model(classes, "binary", decisions[:1], meta or {})
    return Model(classes, "ovr", decisions, meta or {})


def arrays(model: Model) -> bytes:
    """The coefficients, to compare them to the bit."""
    return b"".join(d.w.tobytes() + np.float64(d.b).tobytes() for d in model.decisions)


# -- round trips -----------------------------------------------------------------------


@given(data=st.data())
@settings(deadline=None)
def test_any_model_comes_back_to_the_bit(data: st.DataObject, scratch: Path) -> None:
    classes = np.unique(
        data.draw(
            hnp.arrays(
                np.int64, st.integers(2, 6), elements=st.integers(-9, 9), unique=True
            )
        )
    )
    k, n = 1 if len(classes) == 2 else len(classes), data.draw(st.integers(1, 9))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    W = data.draw(hnp.arrays(np.float64, (k, n), elements=finite))
    decisions = tuple(Decision(w, data.draw(finite)) for w in W)
    model = Model(classes, "binary" if k == 1 else "ovr", decisions)
    write_liblinear(model, scratch)
    back = read_liblinear(scratch)
    assert back.classes.tolist() == classes.tolist()
    assert back.scheme == model.scheme
    assert arrays(back) == arrays(model)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_the_loss_comes_back(loss: str, classes: list[int], tmp_path: Path) -> None:
    write_liblinear(make(classes, {"loss": loss}), tmp_path / "m")
    meta = read_liblinear(tmp_path / "m").meta
    assert meta == {"loss": loss, "index_base": 1}


def test_two_columns_for_two_classes(tmp_path: Path) -> None:
    model = Model(np.array([3, 5]), "ovr", make([0, 1, 2]).decisions[:2])
    write_liblinear(model, tmp_path / "m")
    back = read_liblinear(tmp_path / "m")
    assert back.scheme == "ovr"
    assert arrays(back) == arrays(model)


@pytest.mark.parametrize(
    "classes", [[-1.0, 1.0], np.array([0, 200], np.uint8), [-(2**31), 0, 2**31 - 1]]
)
def test_whole_numbers_are_labels(classes: Any, tmp_path: Path) -> None:
    write_liblinear(make(classes), tmp_path / "m")
    back = read_liblinear(tmp_path / "m").classes
    assert back.dtype == np.int64
    assert back.tolist() == list(classes)


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        (["no", "yes"], "'no'"),
        ([0.5, 1], "0.5"),
        ([0, np.inf], "inf"),
        ([0, 2**31], "2147483648"),
        ([-(2**31) - 1, 0], "-2147483649"),
        ([False, True], "False"),
    ],
)
def test_other_labels_are_refused(classes: Any, label: str, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=f"must be whole numbers .* Got {label} instead"
    ):
        write_liblinear(make(classes), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError,
        match="of write_liblinear must be a fitted estimator of widemargin, or a Model. Got int ",
    ):
        write_liblinear(1, tmp_path / "m")
    bad = Model(np.arange(2), "binary", (Decision(np.array([np.nan]), 0.0),))
    with pytest.raises(ValueError, match="coefficients hold NaN"):
        write_liblinear(bad, tmp_path / "m")


# -- together with LIBLINEAR -----------------------------------------------------------


def predict(liblinear: Any, path: Path, X: NDArray[np.float64]) -> tuple[Any, Any]:
    """Labels and decision values of LIBLINEAR for the model in a file."""
    model = liblinear.load_model(str(path))
    assert model is not None
    labels, _, values = liblinear.predict([], X, model, "-q")
    return np.array(labels, dtype=int), np.array(values)


@pytest.mark.parametrize("classes", [[-1, 1], [3, 8], [-5, 0, 7], [1, 2, 3, 4]])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_liblinear_predicts_our_labels(
    classes: list[int], loss: str, liblinear: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(len(classes))
    X, y = rng.standard_normal((300, 5)), rng.choice(classes, 300)
    clf = LinearSVC(loss=loss, tol=1e-3).fit(X + y[:, None], y)
    write_liblinear(clf, tmp_path / "m")
    labels, values = predict(liblinear, tmp_path / "m", X)
    assert labels.tolist() == clf.predict(X).tolist()
    scores = clf.decision_function(X)
    if len(classes) == 2:  # LIBLINEAR's value is positive for its first label
        assert np.allclose(-values[:, 0], scores, rtol=1e-13, atol=1e-13)
    else:
        assert np.allclose(values, scores, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_ties_go_to_the_same_class(
    classes: list[int], liblinear: Any, tmp_path: Path
) -> None:
    # At x = 0 all scores are equal, with small integers exactly.
    decisions = tuple(Decision(np.array([k + 1.0]), 0.0) for k in classes)
    scheme = "binary" if len(classes) == 2 else "ovr"
    model = Model(
        np.array(classes), scheme, decisions[: 1 if len(classes) == 2 else None]
    )
    write_liblinear(model, tmp_path / "m")
    X = np.array([[0.0], [1.0], [-1.0]])
    assert (
        predict(liblinear, tmp_path / "m", X)[0].tolist() == model.predict(X).tolist()
    )


@pytest.mark.cover(2)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize(
    "labels", [[1, -1], [-1, 1], [7, 3], [3, 7], [2, 9, -4], [4, 3, 2, 1]]
)
def test_we_predict_the_labels_of_liblinear(
    solver: str, bias: float, labels: list[int], liblinear: Any, tmp_path: Path
) -> None:
    number, loss = SOLVERS[solver]
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 4))
    y = np.resize(labels, 120)  # LIBLINEAR takes the labels in this order
    X += 2 * rng.standard_normal((10, 4))[y]  # labels from -4 to 9: rows from the end
    model = liblinear.train(y, X, f"-s {number} -B {bias} -q")
    liblinear.save_model(str(tmp_path / "m"), model)
    ours = read_liblinear(tmp_path / "m")
    theirs, _ = predict(liblinear, tmp_path / "m", X)
    assert len(set(theirs)) == len(labels)
    assert ours.predict(X).tolist() == theirs.tolist()
    assert ours.classes.tolist() == sorted(labels)
    assert ours.meta == {"loss": loss, "index_base": 1}
    write_liblinear(ours, tmp_path / "again")
    assert predict(liblinear, tmp_path / "again", X)[0].tolist() == theirs.tolist()


LOSSES = {11: "squared_epsilon_insensitive", 12: "squared_epsilon_insensitive"}
LOSSES |= {13: "epsilon_insensitive", 21: "hinge"}


@pytest.mark.parametrize("bias", [-1, 0, 2.5])
@pytest.mark.parametrize("number", LOSSES)
def test_models_without_classes(
    number: int, bias: float, liblinear: Any, tmp_path: Path
) -> None:
    bias = -1 if number == 21 else bias  # LIBLINEAR has no other for one class
    rng = np.random.default_rng(number)
    X = rng.standard_normal((80, 3)) + 0.4
    y = X @ [1.0, -2.0, 0.5] + rng.standard_normal(80) / 9
    model = liblinear.train(y, X, f"-s {number} -B {bias} -q")
    liblinear.save_model(str(tmp_path / "m"), model)
    ours = read_liblinear(tmp_path / "m")
    assert ours.scheme == ("one_class" if number == 21 else "regression")
    assert ours.meta == {"loss": LOSSES[number], "index_base": 1}
    for path in ("m", "again"):
        labels, _, values = liblinear.predict(
            [], X, liblinear.load_model(str(tmp_path / path)), "-q"
        )
        found = ours.decision_function(X)
        np.testing.assert_allclose(found, np.ravel(values), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(ours.predict(X), labels, rtol=1e-13, atol=1e-13)
        write_liblinear(ours, tmp_path / "again")
    again = read_liblinear(tmp_path / "again")
    assert arrays(again) == arrays(ours)
    assert again.meta == ours.meta
    assert len(set(labels)) > 1


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_our_regressions_are_written(loss: str, liblinear: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0
    svr = LinearSVR(loss=loss).fit(X, y)
    write_liblinear(svr, tmp_path / "m")
    assert read_liblinear(tmp_path / "m").meta["loss"] == loss
    model = liblinear.load_model(str(tmp_path / "m"))
    found, _, _ = liblinear.predict([], X, model, "-q")
    np.testing.assert_allclose(found, svr.predict(X), rtol=1e-12, atol=1e-12)


REGRESSION = """solver_type L2R_L2LOSS_SVR
nr_class 2
nr_feature 1
bias -1
w
0.5
"""
ONE_CLASS = REGRESSION.replace("L2R_L2LOSS_SVR", "ONECLASS_SVM").replace(
    "w", "rho 2\nw"
)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (
            REGRESSION,
            "nr_class 2",
            "nr_class 3",
            'line 2, column 10: expected an integer from 2 to 2, found "3"',
        ),
        (
            REGRESSION,
            "nr_feature",
            "label 1 2\nnr_feature",
            'line 3, column 1: expected "nr_feature", found "label"',
        ),
        (
            REGRESSION,
            "w\n",
            "rho 2\nw\n",
            'line 5, column 1: expected "w", found "rho"',
        ),
        (ONE_CLASS, "rho 2\n", "", 'line 5, column 1: expected "rho", found "w"'),
        (
            ONE_CLASS,
            "rho 2",
            "rho nan",
            'line 5, column 5: expected a finite number, found "nan"',
        ),
    ],
)
def test_malformed_models_without_classes(
    text: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "m").write_text(text)
    assert read_liblinear(tmp_path / "m").decisions[0].w.tolist() == [0.5]
    expect(text.replace(old, new), message, tmp_path / "m")


def test_a_solver_that_is_none(tmp_path: Path) -> None:
    expect(
        GOOD.replace("L2R_LR", "L2R_XX"),
        "line 1, column 13: expected a solver of LIBLINEAR (L2R_L1LOSS_SVC_DUAL, "
        "L2R_L2LOSS_SVC_DUAL, L2R_LR, L2R_L2LOSS_SVC, L1R_L2LOSS_SVC, MCSVM_CS, "
        "L2R_LR_DUAL, L1R_LR, L2R_L1LOSS_SVR_DUAL, L2R_L2LOSS_SVR, "
        'L2R_L2LOSS_SVR_DUAL, ONECLASS_SVM), found "L2R_XX"',
        tmp_path / "m",
    )


# -- malformed files -------------------------------------------------------------------

GOOD = """solver_type L2R_LR
nr_class 2
label 1 -1
nr_feature 2
bias 1
w
0.5
-1e-3
2
"""


def expect(text: str, message: str, path: Path) -> None:
    """The file is refused with this message."""
    path.write_text(text)
    with pytest.raises(ValueError, match="line") as caught:
        read_liblinear(path)
    assert str(caught.value) == f"{path}, {message}"


def test_a_good_file(tmp_path: Path) -> None:
    for text in (GOOD, GOOD.replace("\n", " \r\n"), GOOD + "\n \n", GOOD[:-1]):
        (tmp_path / "m").write_bytes(text.encode())
        model = read_liblinear(tmp_path / "m")
        assert model.classes.tolist() == [-1, 1]
        assert model.decisions[0].w.tolist() == [0.5, -0.001]
        assert model.decisions[0].b == 2.0


def test_an_intercept_is_bias_times_weight(tmp_path: Path) -> None:
    for bias, b in (("2.5", 5.0), ("0", 0.0)):
        (tmp_path / "m").write_text(GOOD.replace("bias 1", f"bias {bias}"))
        assert read_liblinear(tmp_path / "m").decisions[0].b == b
    (tmp_path / "m").write_text(
        GOOD.replace("bias 1", "bias -1").replace("2\n", "2\n")[:-2]
    )
    assert read_liblinear(tmp_path / "m").decisions[0].b == 0.0


SMALL = "an integer from 2 to 2147483647"
LABEL = "an integer from -2147483648 to 2147483647"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "solver_type",
            "svm_type",
            'line 1, column 1: expected "solver_type", found "svm_type"',
        ),
        ("class 2", "class 1", f'line 2, column 10: expected {SMALL}, found "1"'),
        ("class 2", "class 2_0", f'line 2, column 10: expected {SMALL}, found "2_0"'),
        (
            "class 2",
            "class",
            f"line 2, column 9: expected {SMALL}, found the end of the line",
        ),
        (
            "class 2",
            "class 2 2",
            'line 2, column 12: expected the end of the line, found "2"',
        ),
        (
            "class 2",
            "class 3",
            f"line 3, column 11: expected {LABEL}, found the end of the line",
        ),
        ("1 -1", "1.0 -1", f'line 3, column 7: expected {LABEL}, found "1.0"'),
        (
            "1 -1",
            "1  2147483648",
            f'line 3, column 10: expected {LABEL}, found "2147483648"',
        ),
        (
            "1 -1",
            "1 " + "1" * 5000,
            f'line 3, column 9: expected {LABEL}, found "{"1" * 40}"',
        ),
        (
            "1 -1",
            "1 1",
            'line 3, column 9: expected a label that was not there before, found "1"',
        ),
        (
            "1 -1",
            "1 -1 0",
            'line 3, column 12: expected the end of the line, found "0"',
        ),
        (
            "nr_feature 2",
            "nr_feature 0",
            'line 4, column 12: expected an integer from 1 to 2147483647, found "0"',
        ),
        (
            "nr_feature 2",
            "nr_feature 2000000000",
            "line 10, column 1: expected a finite number, found the end of the file",
        ),
        (
            "bias 1",
            "bias nan",
            'line 5, column 6: expected a finite number, found "nan"',
        ),
        (
            "bias 1",
            "bias 1,5",
            'line 5, column 6: expected a finite number, found "1,5"',
        ),
        (
            "bias 1",
            "bias -1",
            'line 9, column 1: expected the end of the line, found "2"',
        ),
        ("w\n", "w 1\n", 'line 6, column 3: expected the end of the line, found "1"'),
        ("w\n", "rho 1\nw\n", 'line 6, column 1: expected "w", found "rho"'),
        ("0.5", "x", 'line 7, column 1: expected a finite number, found "x"'),
        ("0.5", "1e999", 'line 7, column 1: expected a finite number, found "1e999"'),
        ("0.5", "1_0", 'line 7, column 1: expected a finite number, found "1_0"'),
        (
            "0.5",
            "",
            "line 7, column 1: expected a finite number, found the end of the line",
        ),
        ("0.5", " 0.5 1", 'line 7, column 6: expected the end of the line, found "1"'),
        ("2\n", "2\n3\n", 'line 10, column 1: expected the end of the line, found "3"'),
    ],
)
def test_malformed_files(old: str, new: str, message: str, tmp_path: Path) -> None:
    head, _, tail = GOOD.rpartition(old)
    expect(head + new + tail, message, tmp_path / "m")


def test_other_characters(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(GOOD.encode().replace(b"0.5", b"\xff\x00\xb2"))
    with pytest.raises(ValueError, match="line 7, column 1: expected a finite number"):
        read_liblinear(tmp_path / "m")


def test_an_intercept_out_of_range(tmp_path: Path) -> None:
    text = GOOD.replace("bias 1", "bias 1e200")[:-2] + "1e200\n"
    expect(
        text,
        "line 9, column 1: expected weights whose product with the bias 1e+200 is "
        'finite, found "1e200"',
        tmp_path / "m",
    )


def test_every_missing_line_is_noticed(tmp_path: Path) -> None:
    lines = GOOD.splitlines(keepends=True)
    for missing in range(len(lines)):
        (tmp_path / "m").write_text("".join(lines[:missing] + lines[missing + 1 :]))
        with pytest.raises(ValueError, match=r"m, line \d+, column \d+: expected"):
            read_liblinear(tmp_path / "m")
    for length in range(len(lines)):
        (tmp_path / "m").write_text("".join(lines[:length]))
        with pytest.raises(ValueError, match="found the end of the file"):
            read_liblinear(tmp_path / "m")
