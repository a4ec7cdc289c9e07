"""The support vectors of an estimator: copied by a fit, or when they are asked for."""

from typing import Any

from widemargin import linalg
from widemargin.data.rows import Rows

# Bytes of support vectors that a fit copies; more are copied when asked for: of seven
# million rows it would take twice as long as training.
COPIED_BYTES = 64 << 20


class SupportVectors:
    """Copies ``support_vectors_``, or says why there are none; a fit may hide this."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        rows = vars(estimator).pop("_rows_of_fit", None)
        if rows is not None:
            estimator.support_vectors_ = rows.take(estimator.support_)
            return estimator.support_vectors_
        reason = "it has not been fitted"
        if "support_" in vars(estimator):
            reason = (
                "it was fitted on rows that are not in memory; rows.take(support_) "
                "reads them"
            )
        raise AttributeError(f"{owner.__name__} has no support_vectors_: {reason}.")


def keep_support_vectors(estimator: Any, rows: Rows) -> None:
    """Let an estimator have the rows ``support_`` of its fit, where in memory."""
    for name in ("support_vectors_", "_rows_of_fit"):  # of an earlier fit
        vars(estimator).pop(name, None)
    if (X := rows.in_memory()) is None:
        return
    estimator._rows_of_fit = rows
    share = estimator.support_.size / rows.shape[0]
    if share * linalg.n_bytes(X) <= COPIED_BYTES:
        _ = estimator.support_vectors_
