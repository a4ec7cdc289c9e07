"""scikit-learn estimators: validate, build the problems, solve, keep the model."""

from widemargin.estimators.budget_svc import BudgetSVC
from widemargin.estimators.enclosing_ball import EnclosingBall
from widemargin.estimators.linear_svc import LinearSVC
from widemargin.estimators.linear_svc_cv import LinearSVCCV
from widemargin.estimators.linear_svr import LinearSVR
from widemargin.estimators.linear_svr_cv import LinearSVRCV
from widemargin.estimators.nu_svc import NuSVC
from widemargin.estimators.nu_svr import NuSVR
from widemargin.estimators.one_class import OneClassSVM
from widemargin.estimators.paths import (
    linear_svc_path,
    linear_svr_path,
    svc_path,
    svr_path,
)
from widemargin.estimators.svc import SVC
from widemargin.estimators.svc_cv import SVCCV
from widemargin.estimators.svr import SVR
from widemargin.estimators.svr_cv import SVRCV

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "BudgetSVC",
    "EnclosingBall",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "linear_svc_path",
    "linear_svr_path",
    "svc_path",
    "svr_path",
]
