"""The decision function of a smallest ball, where it is a sum of kernel values."""

from typing import Any

import numpy as np

from widemargin.kernels.expansion import Expansion
from widemargin.kernels.table import KERNELS
from widemargin.models.decisions import Decision
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS

# Share of the largest k(x, x) that the squared radius of a hard ball is rounded up by,
# or of the largest |x| the radius: what rounding may do to the distance of a point.
OUTWARD = 32.0 * float(np.finfo(np.float64).eps)


class _NoModelError(ValueError, AttributeError):
    """A ball has no `model_`; so says `hasattr`, which `dir` asks."""


def model_of(ball: Any) -> Model:
    """The model of a ball: k(x, x) + |c|^2 - 2 sum a_i k(x_i, x) <= -offset inside."""
    kernel, owner, square = ball.kernel_, "EnclosingBall", ball._meta["center_square"]
    diagonal = ball._meta.get("diagonal")
    if kernel.is_named and KERNELS[kernel.name].value == "decay":
        diagonal = 1.0
    if diagonal is None:
        raise _NoModelError(
            f"{owner} has a model for kernels with one k(x, x) only (rbf, laplacian, "
            f"chi2; precomputed where that is so). Got the kernel {kernel.name!r}: "
            "pickle or skops keep the estimator."
        )
    if not np.isfinite(ball.radius_):
        raise _NoModelError(f"This {owner} has no model: its radius is infinite.")
    meta = {"machine": "enclosing_ball", "radius": ball.radius_}
    meta["offset"] = float(ball.offset_)
    meta |= {"dual_gap": ball.dual_gap_, "status": ball.status_}
    if hasattr(ball, "feature_names_in_"):
        meta["feature_names"] = [str(name) for name in ball.feature_names_in_]
    b = np.array([(OUTWARD - 1.0) * diagonal - square - ball.offset_])
    a, classes = 2.0 * ball.dual_coef_, np.array([-1, 1])
    if kernel.is_named:
        count: Any = np.array([a.shape[1]], np.int32)
        sums = Expansion(kernel, ball.support_vectors_, a, b, count)
        return Model(classes, ONE_CLASS, meta=meta, kernels=sums)
    w = np.zeros(ball.n_features_in_)
    w[ball.support_] = a[0]
    meta["kernel"] = kernel.name
    return Model(classes, ONE_CLASS, (Decision(w, float(b[0])),), meta)
