"""Optimization problems: objectives, feasible points, certificates."""

from widemargin.problems.base import Problem as Problem
from widemargin.problems.hard import HardProblem as HardProblem
from widemargin.problems.kernel import KernelProblem as KernelProblem
from widemargin.problems.linear import LinearProblem as LinearProblem
from widemargin.problems.mass import MassProblem as MassProblem
from widemargin.problems.norm import NormProblem as NormProblem

__all__ = [
    "HardProblem",
    "KernelProblem",
    "LinearProblem",
    "MassProblem",
    "NormProblem",
    "Problem",
]
