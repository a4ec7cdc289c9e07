"""Which endings the names of files to write may have: the one rule of all commands."""

import os

from widemargin.system.files import COMPRESSED, TEXT, ending

TEXT_MODEL = ".model"
MODELS = (".wm", TEXT_MODEL, ".onnx")
_TRAINED, _PAGES = MODELS[:1], (".html", ".htm")
# Endings of other files: a model with one of them is a mistake.
_NO_MODEL = (*TEXT, ".csv", *_PAGES, *MODELS[1:])


def check_data(path: str) -> None:
    """Refuse a name for data that is one of something else."""
    found = ending(path)
    if found and found not in TEXT:
        names = f"{', '.join(TEXT)} or has no ending (then perhaps "
        _refuse(path, "data", f"{names}{', '.join(COMPRESSED)})")


def check_model(path: str) -> None:
    """Refuse a name that does not say the format of a model."""
    if not is_model(path):
        _refuse(path, "a model", ", ".join(MODELS))


def is_model(path: str) -> bool:
    """Whether a name says that the file is a model."""
    return _last(path) in MODELS


def check_trained(path: str) -> None:
    """Refuse a name for a model to be trained that is one of something else."""
    if ending(path) in _NO_MODEL or _last(path) in COMPRESSED:
        also = " (widemargin convert makes the others)" * (_last(path) in MODELS)
        _refuse(path, "a model to train", _TRAINED[0] + also)


def check_report(path: str) -> None:
    """Refuse a name that no browser would open as a page."""
    if _last(path) not in _PAGES:
        _refuse(path, "a report", " or ".join(_PAGES))


def _last(path: str) -> str:
    """The very last ending: models and pages are never compressed."""
    return os.path.splitext(path.lower())[1]


def _refuse(path: str, what: str, endings: str) -> None:
    found = ending(path) + _last(path) * (_last(path) in COMPRESSED)
    raise ValueError(
        f"{path}: expected a name for {what}, which ends in {endings}, "
        f"found {repr(found) if found else 'no ending'}"
    )
