"""Pictures of a solution in a notebook."""

from typing import Any

from widemargin.report import course
from widemargin.solution import Solution


def plot(solution: Solution, axes: Any = None) -> Any:
    """Draw the bounds against time: see `Solution.plot`."""
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1]
    course.draw_convergence(axes, solution)
    axes.legend()
    title = f"{solution.solver}: {solution.status.value}"
    if solution.together is not None:
        title += f" (problem 1 of {solution.together['problems']}; solutions_ has all)"
    axes.set_title(title, loc="left")
    return axes
