"""Support vector machines of any size, each answer with a certified duality gap."""

from widemargin.data.memory import as_rows as as_rows
from widemargin.data.svmlight import load_svmlight as load_svmlight
from widemargin.data.svmlight import save_svmlight as save_svmlight
from widemargin.estimators import LinearSVC as LinearSVC
from widemargin.io.model_file import load_model as load_model
from widemargin.io.model_file import save_model as save_model
from widemargin.problem import Problem as Problem
from widemargin.solvers.auto import solve as solve

__version__ = "0.1.0"
__all__ = [
    "LinearSVC",
    "Problem",
    "as_rows",
    "load_model",
    "load_svmlight",
    "save_model",
    "save_svmlight",
    "solve",
]
