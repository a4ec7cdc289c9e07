"""What another program, or this one, took for a problem."""

from typing import NamedTuple


class Timing(NamedTuple):
    """A program on a problem, for the bars of a report.

    Attributes
    ----------
    problem : str, what was solved; equal words make one group of bars
    name : str, of the program
    seconds : float, positive
    gap : float, relative gap of its answer
    ours : bool, whether its bar stands out
    """

    problem: str
    name: str
    seconds: float
    gap: float
    ours: bool = False
