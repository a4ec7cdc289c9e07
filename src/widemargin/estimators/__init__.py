"""scikit-learn estimators: validate, build the problems, solve, keep the model."""

from widemargin.estimators.budget_svc import BudgetSVC
from widemargin.estimators.enclosing_ball import EnclosingBall
from widemargin.estimators.linear_svc import LinearSVC
from widemargin.estimators.linear_svc_cv import LinearSVCCV
from widemargin.estimators.linear_svr import LinearSVR
from widemargin.estimators.nu_svc import NuSVC
from widemargin.estimators.nu_svr import NuSVR
from widemargin.estimators.one_class import OneClassSVM
from widemargin.estimators.paths import linear_svc_path, svc_path
from widemargin.estimators.svc import SVC
from widemargin.estimators.svc_cv import SVCCV
from widemargin.estimators.svr import SVR

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "BudgetSVC",
    "EnclosingBall",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "linear_svc_path",
    "svc_path",
]
