"""Support vector machines of any size, each answer with a certified duality gap."""

import importlib

# As of the module typing, whose import takes 20 ms: Ctrl-C in that time is a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from widemargin.data.distributed import ClusterLostError as ClusterLostError
    from widemargin.data.memory import as_rows as as_rows
    from widemargin.data.ndc import make_ndc as make_ndc
    from widemargin.data.outofcore import open_rows as open_rows
    from widemargin.data.svmlight import load_svmlight as load_svmlight
    from widemargin.data.svmlight import save_svmlight as save_svmlight
    from widemargin.estimators import SVC as SVC
    from widemargin.estimators import SVCCV as SVCCV
    from widemargin.estimators import SVR as SVR
    from widemargin.estimators import SVRCV as SVRCV
    from widemargin.estimators import BudgetSVC as BudgetSVC
    from widemargin.estimators import EnclosingBall as EnclosingBall
    from widemargin.estimators import LinearSVC as LinearSVC
    from widemargin.estimators import LinearSVCCV as LinearSVCCV
    from widemargin.estimators import LinearSVR as LinearSVR
    from widemargin.estimators import LinearSVRCV as LinearSVRCV
    from widemargin.estimators import NuSVC as NuSVC
    from widemargin.estimators import NuSVR as NuSVR
    from widemargin.estimators import OneClassSVM as OneClassSVM
    from widemargin.estimators import linear_svc_path as linear_svc_path
    from widemargin.estimators import linear_svr_path as linear_svr_path
    from widemargin.estimators import svc_path as svc_path
    from widemargin.estimators import svr_path as svr_path
    from widemargin.kernels.kernel import Kernel as Kernel
    from widemargin.models.model_file import load_model as load_model
    from widemargin.models.model_file import save_model as save_model
    from widemargin.problems.base import Problem as Problem
    from widemargin.solvers.auto import solve as solve
    from widemargin.solvers.driver.checkpoint import Checkpoint as Checkpoint

__version__ = "0.2.0"
__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "BudgetSVC",
    "Checkpoint",
    "ClusterLostError",
    "EnclosingBall",
    "Kernel",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Problem",
    "as_rows",
    "linear_svc_path",
    "linear_svr_path",
    "load_model",
    "load_svmlight",
    "make_ndc",
    "open_rows",
    "save_model",
    "save_svmlight",
    "solve",
    "svc_path",
    "svr_path",
]

# Imported when first asked for: scikit-learn alone takes half a second, which
# `widemargin --help` and `widemargin inspect` need not wait for.
_MODULES = {
    "BudgetSVC": "estimators",
    "Checkpoint": "solvers.driver.checkpoint",
    "ClusterLostError": "data.distributed",
    "EnclosingBall": "estimators",
    "LinearSVC": "estimators",
    "LinearSVCCV": "estimators",
    "LinearSVR": "estimators",
    "LinearSVRCV": "estimators",
    "NuSVC": "estimators",
    "NuSVR": "estimators",
    "OneClassSVM": "estimators",
    "SVC": "estimators",
    "SVCCV": "estimators",
    "SVR": "estimators",
    "SVRCV": "estimators",
    "Kernel": "kernels.kernel",
    "Problem": "problems.base",
    "as_rows": "data.memory",
    "linear_svc_path": "estimators",
    "linear_svr_path": "estimators",
    "load_model": "models.model_file",
    "load_svmlight": "data.svmlight",
    "make_ndc": "data.ndc",
    "open_rows": "data.outofcore",
    "save_model": "models.model_file",
    "save_svmlight": "data.svmlight",
    "solve": "solvers.auto",
    "svc_path": "estimators",
    "svr_path": "estimators",
}

if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> object:
        """A public name, or a module such as ``widemargin.solvers``."""
        if name in _MODULES:
            module = importlib.import_module(f"widemargin.{_MODULES[name]}")
            return globals().setdefault(name, getattr(module, name))
        if name in ("data", "models", "solvers"):
            return importlib.import_module(f"widemargin.{name}")
        raise AttributeError(f"module 'widemargin' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
