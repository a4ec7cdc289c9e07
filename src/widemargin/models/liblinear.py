"""LIBLINEAR's model files: text that its programs and bindings read and write.

LIBLINEAR keeps one weight column for two classes, positive for the *first* label, and
one a class for more, the largest wins; for a regression and for one class one column,
and no labels. With ``bias >= 0`` the last row of ``w`` belongs to a feature that always
has the value ``bias``. Of one class ``rho`` is subtracted.
"""

import io
from typing import Any

import numpy as np

from widemargin.models.decisions import Decision
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS, REGRESSION
from widemargin.models.text import (
    FINITE,
    INT_MIN,
    Lines,
    choice,
    distinct_labels,
    integer,
    whole_labels,
)
from widemargin.models.writable import Array, as_linear, say_left_out
from widemargin.system.files import Path, open_regular, replacing

# The solvers that make linear models; a loss is written as its first one.
_LOSS_OF_SOLVER = {
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_LR": "logistic",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "MCSVM_CS": "hinge",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
}
_OF_REGRESSION = {
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
}
_OF_ONE_CLASS = {"ONECLASS_SVM": "hinge"}
_LOSSES = _LOSS_OF_SOLVER | _OF_REGRESSION | _OF_ONE_CLASS


def write_liblinear(model: Any, path: Path) -> None:
    """Write a linear model as LIBLINEAR does.

    Parameters
    ----------
    model : Model, fitted estimator or Pipeline, as of `save_model`
        Its labels are whole numbers from -2^31 to 2^31 - 1, as LIBLINEAR has no others.
    path : str or path-like
        An existing file is replaced as a whole, or stays as it is after an error.

    Raises
    ------
    ValueError
        Other labels, coefficients that are not finite, a kernel, or a model of one
        against one.
    TypeError
        ``model`` is no model.
    OSError
        The file cannot be written.

    Warns
    -----
    UserWarning
        Probabilities are left out: a file has no place for them.

    See Also
    --------
    read_liblinear : read it back.

    Notes
    -----
    The intercept is written as the weight of a feature of value 1 (``bias 1``), that of
    one class as ``rho``. All numbers have as many digits as they need to come back to
    the bit. Of ``meta`` only the loss is kept.

    Examples
    --------
    >>> import os, tempfile
    >>> from widemargin import LinearSVC
    >>> from widemargin.models.liblinear import read_liblinear, write_liblinear
    >>> clf = LinearSVC().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.model")
    ...     write_liblinear(clf, path)
    ...     read_liblinear(path).predict([[0.5], [3.5]]).tolist()
    [0, 1]
    """
    model, W, b = as_linear(model, "write_liblinear")
    if model.is_paired:
        raise ValueError(
            "A LIBLINEAR model has no decisions one against one. Train with "
            "multi_class='ovr'."
        )
    rows, bias, rho = np.vstack([W.T, b]), "1", ""
    labels = whole_labels(model.classes.tolist(), "LIBLINEAR")
    if model.scheme == "binary":
        # The first label is our negative one, so that a score of 0 goes to the same
        # class here (>= 0) and there (> 0).
        rows = -rows
    if model.scheme == ONE_CLASS:
        rows, bias, rho = W.T, "-1", f"rho {-b[0].item()!r}\n"
    has_labels = model.scheme not in (REGRESSION, ONE_CLASS)
    head = (
        f"solver_type {_solver(model)}\n"
        f"nr_class {len(labels) if has_labels else 2}\n"
        + f"label {' '.join(map(str, labels))}\n" * has_labels
        + f"nr_feature {W.shape[1]}\nbias {bias}\n{rho}w\n"
    )
    with replacing(path) as file:
        file.write(head.encode())
        file.writelines(
            f"{' '.join(map(repr, row.tolist()))}\n".encode() for row in rows
        )
    say_left_out(model, path)


def read_liblinear(path: Path) -> Model:
    """Read a model that LIBLINEAR or `write_liblinear` wrote.

    Parameters
    ----------
    path : str or path-like
        The result of LIBLINEAR's ``train``, ``save_model`` or of `write_liblinear`.

    Returns
    -------
    Model
        ``meta["loss"]`` is "hinge", "squared_hinge" or "logistic", of a regression
        "epsilon_insensitive" or "squared_epsilon_insensitive"; ``meta["index_base"]``
        is 1.

    Raises
    ------
    ValueError
        The file is malformed (names line and column).
    FileNotFoundError
        No such file; names the file that may have been meant.

    See Also
    --------
    write_liblinear : write it.

    Notes
    -----
    `Model.predict` and LIBLINEAR decide alike but for exact ties, which LIBLINEAR
    settles by the order of the labels in its file and `Model` by their size.
    """
    with open_regular(path) as file:
        lines = Lines(path, io.TextIOWrapper(file, "ascii", errors="replace"))
        return _read_model(lines)


# -- writing ---------------------------------------------------------------------------


def _solver(model: Model) -> str:
    """Name of the solver of LIBLINEAR for the loss and the number of columns."""
    if model.scheme == "ovr" and len(model.classes) == 2:
        return "MCSVM_CS"  # the only one with two columns for two classes
    others = {REGRESSION: _OF_REGRESSION, ONE_CLASS: _OF_ONE_CLASS}
    known = others.get(model.scheme, _LOSS_OF_SOLVER)
    loss = model.meta.get("loss")
    return next((name for name in known if known[name] == loss), next(iter(known)))


# -- reading ---------------------------------------------------------------------------


_SOLVER = choice(_LOSSES, f"a solver of LIBLINEAR ({', '.join(_LOSSES)})")


def _read_model(lines: Lines) -> Model:
    """Read a whole file."""
    (solver,) = lines.field("solver_type", _SOLVER)
    meta = {"loss": _LOSSES[solver], "index_base": 1}  # it has no other
    if solver not in _LOSS_OF_SOLVER:
        scheme = REGRESSION if solver in _OF_REGRESSION else ONE_CLASS
        classes = np.empty(0) if scheme == REGRESSION else np.array([-1, 1])
        lines.field("nr_class", integer(2, 2))
        return Model(
            classes, scheme, _decisions(*_read_weights(lines, 1, scheme)), meta
        )
    labels = _read_labels(lines)
    width = 1 if len(labels) == 2 and solver != "MCSVM_CS" else len(labels)
    scheme = "ovr" if width > 1 else "binary"
    W, b = _read_weights(lines, width, scheme)
    order = np.argsort(labels)
    if width > 1:
        W, b = W[order], b[order]
    elif labels[0] < labels[1]:
        W, b = -W, -b  # the first label is positive there, the larger one here
    return Model(np.array(labels)[order], scheme, _decisions(W, b), meta)


def _decisions(W: Array, b: Array) -> tuple[Decision, ...]:
    """A decision for each row of weights."""
    pairs = zip(W, b.tolist(), strict=True)
    return tuple(Decision(np.ascontiguousarray(w), c) for w, c in pairs)


def _read_labels(lines: Lines) -> list[int]:
    """The labels of classes, which are all different."""
    (n_classes,) = lines.field("nr_class", integer(2))
    labels = lines.field("label", integer(INT_MIN), n_classes)
    distinct_labels(lines, labels)
    return labels


def _read_weights(lines: Lines, width: int, scheme: str) -> tuple[Array, Array]:
    """What follows the labels: weights (width, n) and intercepts (width,)."""
    (n_features,) = lines.field("nr_feature", integer(1))
    (bias,) = lines.field("bias", FINITE)
    rho = lines.field("rho", FINITE)[0] if scheme == ONE_CLASS else 0.0
    lines.field("w", FINITE, 0)
    W = np.array(lines.rows(n_features, width)).reshape(n_features, width).T
    b = np.array(_read_intercepts(lines, bias, width)) - rho
    while lines.advance():
        lines.values(FINITE, 0)
    return W, b


def _read_intercepts(lines: Lines, bias: float, width: int) -> list[float]:
    """Intercepts, which LIBLINEAR keeps as weights of a feature with the value bias."""
    if bias < 0:
        return [0.0] * width
    b = [bias * weight for weight in lines.rows(1, width)]
    if not np.isfinite(b).all():
        lines.refuse(f"weights whose product with the bias {bias} is finite")
    return b
