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
    if course.keeps_ends([solution]):
        said = course.between([solution]).replace(": ", ":\n")
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", size=9)
    title = f"{solution.solver}: {solution.status.value}"
    if solution.together is not None:
        title += f" (problem 1 of {solution.together['problems']}; solutions_ has all)"
    axes.set_title(title, loc="left")
    return axes
