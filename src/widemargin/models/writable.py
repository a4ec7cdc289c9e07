"""What files of models can hold: the model of what is given, and checks of it."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.models.arrays import UnfitError
from widemargin.models.model import Model
from widemargin.models.pipelines import of_pipeline
from widemargin.models.schemes import ONE_CLASS, REGRESSION, n_classes_allowed
from widemargin.parameters import Checker
from widemargin.system.files import Path

Array = Vector

# Types of labels, as JSON has them, by the name of their dtype.
LABELS: dict[str, type] = {"bool": bool, "str": str, "object": str}
LABELS |= {f"{u}int{bits}": int for u in ("", "u") for bits in (8, 16, 32, 64)}
LABELS |= {f"float{bits}": float for bits in (16, 32, 64)}
# A fixed-width array of one long and many short labels is far larger than its file.
_LABEL_BYTES = 1 << 30


def as_model(model: Any, caller: str) -> Model:
    """The model of a model, an estimator, or scalers before one."""
    if hasattr(model, "named_steps"):  # scikit-learn's, which need not be imported
        *scalers, last = [step for _, step in model.steps]
        return of_pipeline(scalers, as_model(last, caller), caller)
    if hasattr(type(model), "model_"):
        model = model.model_
    if not isinstance(model, Model):
        expected = "a fitted estimator of widemargin, or a Model"
        Checker(caller).refuse_model("model", expected, model)
    return model


def as_linear(model: Any, caller: str) -> tuple[Model, Array, Array]:
    """Model of a model or estimator, checked; its weights (k, n), intercepts (k,).

    Raises
    ------
    ValueError for a model with a kernel, or one that no training makes.
    """
    model = as_model(model, caller)
    if model.kernels is not None:
        name = model.kernels.kernel.name
        found = name if isinstance(name, str) else "a callable"
        expected = "be that of a linear model"
        Checker(caller).refuse_part("model", expected, f"one with the kernel {found}")
    if model.expand is not None:
        expected = "be linear in the columns of its data"
        Checker(caller).refuse_part("model", expected, "one of features of a kernel")
    try:
        return model, *weights_of(model)
    except UnfitError as error:
        raise ValueError(f"The model cannot be written: {error}.") from None


def say_left_out(model: Model, path: Path) -> None:
    """Warn of what a text of LIBSVM or LIBLINEAR has no place for."""
    absent = "probabilities" if model.calibration is not None else ""
    if model.shape == "ovo":  # which has no probabilities
        absent = "scores of pairs (decision_function_shape='ovo')"
    if absent:
        warnings.warn(
            f"{path}: {absent} are left out, as the text has no place for them; .wm "
            "and .onnx keep them",
            UserWarning,
            stacklevel=3,
        )


def weights_of(model: Model) -> tuple[Array, Array]:
    """Weights (k, n) and intercepts (k,) of linear decisions, checked."""
    n = model.n_features if model.expand is None else model.expand.rank
    if n == 0 or {np.shape(d.w) for d in model.decisions} != {(n,)}:
        raise UnfitError("its decision functions are not vectors of one length")
    W = np.array([decision.w for decision in model.decisions], dtype=np.float64)
    b = np.array([decision.b for decision in model.decisions], dtype=np.float64)
    check_linear(model, W, b)
    return W, b


def check_linear(model: Model, W: Array, b: Array) -> None:
    """Refuse what no training makes."""
    check_classes(model)
    if not (np.isfinite(W).all() and np.isfinite(b).all()):
        raise UnfitError("its coefficients hold NaN or an infinity")


def least_counts(scheme: str) -> int:
    """How many numbers of vectors, one for each class, a kernel model has at least."""
    return 1 if scheme in (REGRESSION, ONE_CLASS) else 2


def check_classes(model: Model) -> None:
    """Refuse classes that a scheme cannot have, or that are no sorted labels."""
    n_classes = len(model.classes)
    if not n_classes_allowed(model.scheme, n_classes):
        raise UnfitError(f"it has {n_classes} class(es), but is {model.scheme}")
    if model.is_regression:
        return
    label_dtype(model.classes)
    if model.scheme == ONE_CLASS and model.classes.tolist() != [-1, 1]:
        raise UnfitError("its classes are not -1 and 1, but it is one_class")
    # Also false where there is a NaN.
    if not np.array_equal(np.unique(model.classes), model.classes):
        raise UnfitError("its classes are not sorted and distinct")


def label_dtype(classes: NDArray[Any]) -> str:
    """Name of the dtype of class labels, which are numbers or strings."""
    dtype = {"U": "str", "O": "object"}.get(classes.dtype.kind, classes.dtype.name)
    if dtype not in LABELS:
        raise UnfitError(f"its class labels are of dtype {dtype}")
    if dtype == "object" and not all(isinstance(label, str) for label in classes):
        raise UnfitError("its class labels are objects other than strings")
    return dtype


def check_label_bytes(dtype: str, values: list[Any]) -> None:
    """Refuse strings that need too large an array."""
    if (
        dtype == "str"
        and values
        and 4 * len(values) * max(map(len, values)) > _LABEL_BYTES
    ):
        raise UnfitError("its class labels are too long")
