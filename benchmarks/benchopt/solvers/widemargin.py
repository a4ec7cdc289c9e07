"""The solvers of widemargin."""

from benchopt import BaseSolver

from widemargin import Problem, solve


class Solver(BaseSolver):
    """One of the linear solvers, or the one that `auto` takes."""

    name = "widemargin"
    sampling_strategy = "tolerance"
    parameters = {
        "solver": [
            "auto",
            "augmented_lagrangian",
            "coordinate_descent",
            "interior_point",
        ]
    }

    def set_objective(self, X, y, C):
        """Make the problem: the time of it does not count."""
        self.problem = Problem(X, y, C, loss="hinge", intercept="penalized")

    def run(self, tol):
        """Solve to a relative gap; benchopt begins with a tolerance above 1."""
        solver = self.solver
        self.solution = solve(self.problem, solver, tol=min(max(tol, 1e-9), 0.5))

    def get_result(self):
        """The weights and the intercept."""
        return {"w": self.solution.w, "b": self.solution.b}
