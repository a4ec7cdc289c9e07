"""What all machines have: advice, callbacks, their training rows, and tags."""

from typing import Any

from widemargin.estimators.callbacks import CallbackSupportMixin
from widemargin.estimators.checks import is_pairwise
from widemargin.estimators.foreign import AdvisingMixin
from widemargin.estimators.support_vectors import TrainingDataMixin


class Machine(
    AdvisingMixin,
    TrainingDataMixin,
    CallbackSupportMixin,  # type: ignore[misc]
):
    """Base of estimators of one fit, before what scikit-learn has for their kind."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self)
        return tags
