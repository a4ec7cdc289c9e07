"""Pictures of a solution in a notebook."""

from typing import Any

from widemargin.report import pictures
from widemargin.solution import Solution


def plot(solution: Solution, axes: Any = None) -> Any:
    """Draw the bounds against time: see `Solution.plot`."""
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(layout="constrained")[1]
    pictures.draw_convergence(axes, solution)
    axes.legend()
    axes.set_title(f"{solution.solver}: {solution.status.value}", loc="left")
    return axes
