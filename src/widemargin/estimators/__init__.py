"""scikit-learn estimators: validate, build the problems, solve, keep the model."""

from widemargin.estimators.budget_svc import BudgetSVC
from widemargin.estimators.enclosing_ball import EnclosingBall
from widemargin.estimators.linear_svc import LinearSVC
from widemargin.estimators.svc import SVC

__all__ = ["SVC", "BudgetSVC", "EnclosingBall", "LinearSVC"]
