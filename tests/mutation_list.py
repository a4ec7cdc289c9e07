"""The faults of `mutations.py`: a file by its base name, a text, and what it becomes.

Where a change of the code moves or rewrites such a text, the script says so; give the
fault its new text then.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    """A fault, and the tests that should see it first."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


PROBLEM = ("tests/problems/test_problem.py",)
REGRESSION = ("tests/problems/test_regression.py",)
KERNEL_PROBLEM = ("tests/problems/test_kernel_problem.py",)
ROWS = ("tests/data/test_rows.py",)
VALUES = ("tests/kernels/test_kernels.py", "tests/core/test_core_kernels.py")
POINTWISE = ("tests/losses/test_pointwise.py",)
NORMS = ("tests/losses/test_loss_norms.py", "tests/problems/test_norm_intercept.py")
MANY = ("tests/problems/test_many.py",)
MANY_DRAWN = ("tests/certificates/test_campaign.py",)
FAMILY = ("tests/solvers/kernel/test_batch_family.py",)
BATCH = ("tests/solvers/kernel/test_batch.py",)
NEWTON_TWICE = ("tests/solvers/linear/test_newton_batch_regression.py",)
NEWTON = (
    "tests/solvers/linear/test_newton_batch.py",
    "tests/certificates/test_campaign.py",
)
EXACT = ("tests/certificates",)
CORE = (
    "tests/core/test_core.py",
    "tests/core/test_core_sweeps.py",
    "tests/core/test_core_csr.py",
)
BALL = ("tests/estimators/test_enclosing_ball.py",)
SCALING = ("tests/features/test_scaling.py", "tests/models/test_scaled_models.py")
LIBSVM = ("tests/models/test_libsvm.py",)
LIBLINEAR = ("tests/models/test_liblinear.py",)
MODEL = ("tests/models/test_model.py", "tests/estimators/test_multiclass.py")
CRSVM = ("tests/solvers/linear/test_published_crsvm.py",)
ASVM = ("tests/solvers/linear/test_active_set.py",)
SVCRADIT = ("tests/solvers/kernel/test_published_irwls.py",)
FRANK_WOLFE = ("tests/solvers/kernel/test_frank_wolfe.py",)
HARD = ("tests/problems/test_hard.py",)
SELECTION = (
    "tests/estimators/test_selection.py",
    "tests/estimators/test_selection_regression.py",
)

MUTATIONS = [
    # -- the dual value
    Mutation(
        "dual value: the quadratic term",
        "linear.py",
        "return float(linear[0]) - quadratic -",
        "return float(linear[0]) + quadratic -",
        PROBLEM,
    ),
    Mutation(
        "dual value: squares of alpha",
        "linear.py",
        "- self.pointwise.dual_share * float(squares)",
        "+ self.pointwise.dual_share * float(squares)",
        PROBLEM,
    ),
    Mutation(
        "dual value: with a kernel",
        "kernel.py",
        "rest = 0.5 * (square + self._penalty_of(total)) + squares",
        "rest = 0.5 * (square - self._penalty_of(total)) + squares",
        KERNEL_PROBLEM,
    ),
    # -- the clip, and the repair
    Mutation(
        "clip: below zero",
        "pointwise.py",
        "return np.clip(alpha, 0.0, C)",
        "return np.clip(alpha, -C, C)",
        PROBLEM,
    ),
    Mutation(
        "clip: the upper bound of the other loss",
        "pointwise.py",
        "return np.clip(alpha, 0.0, None)",
        "return np.clip(alpha, 0.0, C)",
        KERNEL_PROBLEM,
    ),
    Mutation(
        "clip: the class that is scaled",
        "base.py",
        "heavy = int(sums[1] > sums[0])",
        "heavy = int(sums[1] < sums[0])",
        PROBLEM,
    ),
    # -- the signed view
    Mutation(
        "signed view: the column of ones",
        "linalg.py",
        "np.asarray(self._y @ U)[np.newaxis]",
        "np.asarray(-self._y @ U)[np.newaxis]",
        ROWS,
    ),
    Mutation(
        "signed view: rows that are taken",
        "linalg.py",
        "return np.asarray(self._y[:, np.newaxis] * X)",
        "return np.asarray(-self._y[:, np.newaxis] * X)",
        ROWS,
    ),
    Mutation(
        "signed view: products of rows",
        "linalg.py",
        "inner *= self._y[:, np.newaxis]",
        "inner *= -self._y[:, np.newaxis]",
        ("tests/core/test_core_sweeps.py",),
    ),
    # -- the intercept
    Mutation(
        "intercept: breakpoints of the hinge",
        "intercept.py",
        'return part.labels * getattr(part, "q", 1.0) - part.score, part.C',
        'return part.labels * getattr(part, "q", 1.0) + part.score, part.C',
        PROBLEM,
    ),
    Mutation(
        "intercept: slope of the squared hinge",
        "intercept.py",
        "        -float(part.labels @ weighted),",
        "        float(part.labels @ weighted),",
        PROBLEM,
    ),
    Mutation(
        "intercept: of a norm of losses",
        "norm.py",
        "slope = -float(y @ a)",
        "slope = float(y @ a)",
        NORMS,
    ),
    # -- the Gram kernels
    Mutation(
        "Gram kernel: dense",
        "dense.cpp",
        "lj = di * xj;",
        "lj = -di * xj;",
        CORE,
    ),
    Mutation(
        "Gram kernel: sparse",
        "csr.hpp",
        "border[X.indices[p]] += di * static_cast<double>(X.data[p]);",
        "border[X.indices[p]] -= di * static_cast<double>(X.data[p]);",
        CORE,
    ),
    Mutation(
        "Gram kernel: weights of either sign",
        "linalg.py",
        "return _blas_gram(block, np.maximum(d, 0.0)) - _blas_gram(",
        "return _blas_gram(block, np.maximum(d, 0.0)) + _blas_gram(",
        ("tests/core/test_core_sweeps.py",),
    ),
    # -- steps of the core
    Mutation(
        "pair steps: with the equality",
        "pair_steps.cpp",
        "p_.F[j] -= p_.ridge[j] * step;",
        "p_.F[j] += p_.ridge[j] * step;",
        ("tests/core/test_core_kernels.py",),
    ),
    Mutation(
        "pair steps: free of each other",
        "pair_steps.cpp",
        "s = (c * b.slope - b.curvature * a.slope) / det;",
        "s = (c * b.slope + b.curvature * a.slope) / det;",
        ("tests/core/test_core_kernels.py",),
    ),
    Mutation(
        "sampled steps: the best row",
        "simplex_steps.cpp",
        "if (G < least) least = G, found = i;",
        "if (G < least) found = i;",
        ("tests/solvers/kernel/test_frank_wolfe.py",),
    ),
    Mutation(
        "simplex steps: across",
        "simplex_steps.cpp",
        "p.linear += 2 * length * (p.half[i] - p.half[j]);",
        "p.linear += 2 * length * (p.half[i] + p.half[j]);",
        BALL,
    ),
    Mutation(
        "simplex steps: toward",
        "simplex_steps.cpp",
        "p.linear = (1 - length) * p.linear + 2 * length * p.half[i];",
        "p.linear = (1 - length) * p.linear - 2 * length * p.half[i];",
        BALL,
    ),
    Mutation(
        "coordinate steps: the intercept",
        "coordinate_descent.cpp",
        "if (z.intercept) z.v[X.n] += s.weight * t;",
        "if (z.intercept) z.v[X.n] -= s.weight * t;",
        ("tests/solvers/linear/test_coordinate_descent.py",),
    ),
    # -- the allowance of the certificate
    Mutation(
        "allowance: of the dual value",
        "linear.py",
        "return Certificate(primal + over, dual - under, self.scale, over + under)",
        "return Certificate(primal + over, dual + under, self.scale, over + under)",
        EXACT,
    ),
    Mutation(
        "allowance: of the primal value",
        "linear.py",
        "return Certificate(primal + over, dual - under, self.scale, over + under)",
        "return Certificate(primal - over, dual - under, self.scale, over + under)",
        EXACT,
    ),
    Mutation(
        "allowance: of the dual value with a kernel",
        "kernel.py",
        "return linear - rest - cost - under, under",
        "return linear - rest - cost + under, under",
        EXACT,
    ),
    Mutation(
        "regression: margins above the tube",
        "regression.py",
        "[target - epsilon, -target - epsilon]",
        "[target - epsilon, -target + epsilon]",
        REGRESSION,
    ),
    Mutation(
        "regression: the shift of a free intercept",
        "conditioning.py",
        "v[-1] += self.shift",
        "v[-1] -= self.shift",
        REGRESSION,
    ),
    Mutation(
        "regression: linear part of the dual with a kernel",
        "kernel.py",
        "return float((self.margins * alpha).sum())",
        "return float(alpha.sum())",
        REGRESSION,
    ),
    Mutation(
        "regression: margins in sweeps of Newton's method",
        "newton.py",
        "part.f, v = block @ v + (1.0 - q), None",
        "part.f, v = block @ v - (1.0 - q), None",
        REGRESSION,
    ),
    Mutation(
        "doubled columns: sums of both coefficients",
        "doubled.py",
        "sums[self._m : 2 * self._m] += some[: self._m]",
        "sums[self._m : 2 * self._m] -= some[: self._m]",
        REGRESSION,
    ),
    Mutation(
        "allowance: of scores",
        "scores.py",
        "return twofold.slacks(y * hi, y * lo, self.errors, q)",
        "return twofold.slacks(y * hi, y * lo, -self.errors, q)",
        EXACT,
    ),
    Mutation(
        "allowance: of a norm of losses",
        "norm.py",
        "return dual - more, under + more",
        "return dual + more, under + more",
        EXACT,
    ),
    Mutation(
        "allowance: of the exact problem",
        "exact_bounds.py",
        "dual -= _repair_error(problem, alpha, lifted, t) + off",
        "dual += _repair_error(problem, alpha, lifted, t) + off",
        (*EXACT, "tests/problems/test_exact_bounds.py"),
    ),
    # -- losses
    Mutation(
        "loss: hinge",
        "pointwise.py",
        "        return np.maximum(t, 0.0)",
        "        return np.maximum(-t, 0.0)",
        PROBLEM,
    ),
    Mutation(
        "loss: squared hinge",
        "pointwise.py",
        "return positive * positive",
        "return -positive * positive",
        PROBLEM,
    ),
    Mutation(
        "loss: dual term of the squared hinge with a kernel",
        "pointwise.py",
        "return 0.25 * float((alpha * (alpha / C)).sum())",
        "return -0.25 * float((alpha * (alpha / C)).sum())",
        KERNEL_PROBLEM,
    ),
    Mutation(
        "loss: slope of the squared hinge",
        "pointwise.py",
        "return 2.0 * np.maximum(t, 0.0)",
        "return np.maximum(t, 0.0)",
        POINTWISE,
    ),
    Mutation(
        "loss: ridge of the squared hinge",
        "pointwise.py",
        "return 0.5 / C",
        "return 0.25 / C",
        POINTWISE,
    ),
    Mutation(
        "loss: L1 norm",
        "norms.py",
        '"""Gives c: all of the box."""\n        return c\n',
        '"""Gives c: all of the box."""\n        return -c\n',
        NORMS,
    ),
    Mutation(
        "loss: L2 norm",
        "norms.py",
        '"""Gives c t, scaled to length 1."""\n        return c *',
        '"""Gives c t, scaled to length 1."""\n        return -c *',
        NORMS,
    ),
    Mutation(
        "loss: budget-L1",
        "norms.py",
        'order = np.argsort(-t, kind="stable")',
        'order = np.argsort(t, kind="stable")',
        NORMS,
    ),
    Mutation(
        "loss: budget-L2",
        "norms.py",
        "rest = max(share * second - first**2, 0.0)",
        "rest = max(share * second + first**2, 0.0)",
        NORMS,
    ),
    Mutation(
        "loss: between L1 and L2",
        "norms.py",
        "room = max(square - float(c[full].sum()), 0.0)",
        "room = max(square + float(c[full].sum()), 0.0)",
        NORMS,
    ),
    Mutation(
        "loss: Mahalanobis",
        "mahalanobis.py",
        "return np.asarray(right + A @ _least_squares(A, -right))",
        "return np.asarray(right - A @ _least_squares(A, -right))",
        NORMS,
    ),
    Mutation(
        "loss: p norm",
        "norms.py",
        "** (self.p - 1.0))",
        "** self.p)",
        NORMS,
    ),
    Mutation(
        "loss: p norm, from above",
        "norms.py",
        "* (1.0 + 8.0 * (1.0 + self.p) * _EPS)",
        "* (1.0 - 8.0 * (1.0 + self.p) * _EPS)",
        NORMS,
    ),
    # -- kernel formulas
    Mutation(
        "kernel formula: linear",
        "kernel_formulas.hpp",
        "    return sum;\n",
        "    return scaled(sum, Real(-1));\n",
        VALUES,
    ),
    Mutation(
        "kernel formula: poly",
        "kernel_formulas.hpp",
        "return a * factor + shift;",
        "return a * factor - shift;",
        VALUES,
    ),
    Mutation(
        "kernel formula: rbf",
        "kernel_rows.cpp",
        "(x_norm - (p + p)) + z_norm",
        "(x_norm - (p + p)) - z_norm",
        VALUES,
    ),
    Mutation(
        "kernel formula: distances",
        "kernel_formulas.hpp",
        "exponential(scaled(sum, -gamma))",
        "exponential(scaled(sum, gamma))",
        (*VALUES, "tests/kernels/test_far_clusters.py"),
    ),
    Mutation(
        "kernel formula: laplacian",
        "kernel_rows.cpp",
        "(p + x_norm) + z_norm",
        "(p - x_norm) + z_norm",
        VALUES,
    ),
    Mutation(
        "kernel formula: sigmoid",
        "kernel_formulas.hpp",
        "return a < T{} ? -size : size;",
        "return a > T{} ? -size : size;",
        VALUES,
    ),
    Mutation(
        "kernel formula: chi2",
        "kernel_formulas.hpp",
        "quotient(apart, x + z)",
        "quotient(apart, x - z)",
        (*VALUES, "tests/kernels/test_chi2.py"),
    ),
    Mutation(
        "kernel formula: the diagonal",
        "kernel.py",
        "inner = float(self.gamma) * squares + self.coef0",
        "inner = float(self.gamma) * squares - self.coef0",
        VALUES,
    ),
    # -- labels
    Mutation(
        "label order: signs of the classes",
        "multiclass.py",
        "(labels == positive).view(np.int8)",
        "(labels != positive).view(np.int8)",
        MODEL,
    ),
    Mutation(
        "label order: the decision",
        "model.py",
        "return (scores >= 0).astype(np.intp)",
        "return (scores <= 0).astype(np.intp)",
        ("tests/estimators/test_estimators.py",),
    ),
    Mutation(
        "label order: the positive class of two",
        "multiclass.py",
        "return [BinaryTask(1)]",
        "return [BinaryTask(0)]",
        ("tests/estimators/test_estimators.py",),
    ),
    # -- votes of pairs
    Mutation(
        "pair votes: for whom a decision speaks",
        "votes.hpp",
        "      sum -= against;\n      votes += against < 0.0;\n",
        "      sum += against;\n      votes += against > 0.0;\n",
        MODEL,
    ),
    Mutation(
        "pair votes: a tie",
        "votes.hpp",
        "votes += speaks >= 0.0;",
        "votes += speaks > 0.0;",
        MODEL,
    ),
    Mutation(
        "pair votes: coefficients of the second class",
        "multiclass.py",
        "np.where(first, 1.0, -1.0)",
        "np.where(first, 1.0, 1.0)",
        ("tests/estimators/test_svc.py",),
    ),
    # -- weights
    Mutation(
        "weights: of rows",
        "checks.py",
        "reduce(np.multiply, factors, C)",
        "reduce(np.divide, factors, C)",
        ("tests/estimators/test_estimators.py",),
    ),
    Mutation(
        "weights: of classes",
        "classifier.py",
        "weighted(self.C, weights, factors)",
        "weighted(self.C, weights, 1.0 / factors)",
        ("tests/estimators/test_estimators.py",),
    ),
    Mutation(
        "weights: balanced",
        "labels.py",
        "factors = mass.sum() / (len(classes) * mass)",
        "factors = (len(classes) * mass) / mass.sum()",
        ("tests/estimators/test_labels.py",),
    ),
    # -- checkpoints
    Mutation(
        "checkpoint: the point of the solver",
        "checkpoint.py",
        '_write(archive, "v", v)',
        '_write(archive, "v", -v)',
        ("tests/solvers/driver/test_checkpoint.py",),
    ),
    Mutation(
        "checkpoint: the best dual point",
        "checkpoint.py",
        '_write(archive, "best_alpha", best.alpha())',
        '_write(archive, "best_alpha", -best.alpha())',
        ("tests/solvers/driver/test_checkpoint.py",),
    ),
    Mutation(
        "checkpoint: of another problem",
        "checkpoint.py",
        "            if not same:\n",
        "            if same is None:\n",
        ("tests/solvers/driver/test_checkpoint.py",),
    ),
    # -- many problems at once
    Mutation(
        "linear problems at once: rounding of the slacks",
        "many_linear.py",
        "        slack += errors\n",
        "        slack -= errors\n",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: the losses' own rounding",
        "many_linear.py",
        "* (1.0 + more)",
        "* (1.0 - more)",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: b counts where it is penalized",
        "many_linear.py",
        "            rest += 0.5 * b * b\n",
        "            rest -= 0.5 * b * b\n",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: y'alpha counts where it is penalized",
        "many_linear.py",
        "            rest += 0.5 * total * total\n",
        "            rest -= 0.5 * total * total\n",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: squares of alpha",
        "many_linear.py",
        "rest += (0.25 * self.loss.dual_share)",
        "rest += (0.5 * self.loss.dual_share)",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: rounding of A'alpha",
        "many_linear.py",
        "        under = (np.sqrt(squares) * SLACK + error) * error\n",
        "        under = 0.0 * (np.sqrt(squares) * SLACK + error) * error\n",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: what feasibility costs",
        "many_linear.py",
        "            under += np.fromiter(costs, np.float64)\n",
        "            under += 0.0 * np.fromiter(costs, np.float64)\n",
        NEWTON,
    ),
    Mutation(
        "linear problems at once: alpha within its bounds",
        "many_linear.py",
        "(alpha >= 0.0) & (alpha <= self.loss.upper(self.C))",
        "(alpha >= 0.0) | (alpha <= self.loss.upper(self.C))",
        NEWTON,
    ),
    Mutation(
        "linear regressions at once: signs of both rows",
        "many_linear.py",
        "np.stack([f, -f], axis=1)",
        "np.stack([f, f], axis=1)",
        NEWTON_TWICE,
    ),
    Mutation(
        "linear regressions at once: q'alpha",
        "many_linear.py",
        "        return product.sum(axis=(1, 2)), mass,",
        "        return mass, mass,",
        NEWTON_TWICE,
    ),
    Mutation(
        "linear regressions at once: C in units of the margins",
        "many_linear.py",
        "C = self.C / unit if self.loss.is_bounded else self.C",
        "C = self.C",
        NEWTON_TWICE,
    ),
    Mutation(
        "many problems: the quadratic term",
        "many.py",
        "return linear - rest - under, under",
        "return linear + rest - under, under",
        MANY,
    ),
    Mutation(
        "many problems: the allowance of P",
        "many.py",
        "return rest + over + losses, over + more, (square, error)",
        "return rest - over + losses, over + more, (square, error)",
        MANY_DRAWN,
    ),
    Mutation(
        "many problems: the allowance of D",
        "many.py",
        "return linear - rest - under, under",
        "return linear - rest + under, under",
        MANY_DRAWN,
    ),
    Mutation(
        "many problems: rows without a loss",
        "many.py",
        "matters &= support | ~(safe & np.isfinite(scores))",
        "matters &= support | (safe & np.isfinite(scores))",
        MANY,
    ),
    Mutation(
        "many problems: the order of rows",
        "many.py",
        'return np.argsort(rows, kind="stable")',
        "return slice(None)",
        MANY,
    ),
    Mutation(
        "many problems: lengths of the errors of float32",
        "grouped.py",
        "if self._double_layout.expands_squares:",
        "if self._layout.expands_squares:",
        ("tests/kernels/test_grouped.py",),
    ),
    Mutation(
        "many problems: labels",
        "batch.py",
        "np.where(flat == np.repeat(positive, sizes), 1.0, -1.0)",
        "np.where(flat == np.repeat(positive, sizes), -1.0, 1.0)",
        BATCH,
    ),
    Mutation(
        "many problems: the gap in the core",
        "batch.cpp",
        "(primal_ - dual_) / size",
        "(dual_ - primal_) / size",
        BATCH,
    ),
    Mutation(
        "many problems: no end without progress",
        "batch.cpp",
        " || !goes_on(steps)) end",
        ") end",
        BATCH,
    ),
    Mutation(
        "many problems: the start of a chain",
        "batch.cpp",
        "(problems.C[to + i] / before)",
        "(before / problems.C[to + i])",
        BATCH,
    ),
    Mutation(
        "many problems: the clip of a start",
        "batch.cpp",
        "std::clamp(c, lower_[p], upper_[p])",
        "c",
        BATCH,
    ),
    Mutation(
        "many problems: sums that are not made",
        "batch.cpp",
        "std::fill(sums.out.begin(), sums.out.end(), "
        "std::numeric_limits<double>::quiet_NaN());",
        "std::fill(sums.out.begin(), sums.out.end(), 0.0);",
        MANY,
    ),
    # -- a linear term, and sums of alpha that are given
    Mutation(
        "sums of alpha: the pull of rho",
        "many.py",
        "return rest - pull, np.abs(rest) + np.abs(pull)",
        "return rest + pull, np.abs(rest) + np.abs(pull)",
        FAMILY,
    ),
    Mutation(
        "sums of alpha: what a wrong sum costs",
        "sums.py",
        "            return share * room",
        "            return 0.0 * room",
        ("tests/problems/test_mass.py",),
    ),
    Mutation(
        "sums of alpha: the level of a class in the core",
        "batch.cpp",
        "lines_.push_back({&C, sign * 0.5 * mass});",
        "lines_.push_back({&C, sign * mass});",
        FAMILY,
    ),
    Mutation(
        "sums of alpha: the pull of rho by working sets",
        "mass.py",
        "primal = 0.5 * square - pull + over + losses",
        "primal = 0.5 * square + pull + over + losses",
        ("tests/problems/test_mass.py",),
    ),
    Mutation(
        "regression: the kink in the core",
        "pair_steps.cpp",
        "p_.x[i] < 0 ? kink : p_.x[i] < p_.upper[i] ? -kink : -kInfinity",
        "p_.x[i] < 0 ? -kink : p_.x[i] < p_.upper[i] ? -kink : -kInfinity",
        FAMILY,
    ),
    # -- the memory limit
    Mutation(
        "memory limit: too small",
        "stored.py",
        "    if memory_limit < least:\n",
        "    if memory_limit < -least:\n",
        ("tests/data/test_outofcore.py",),
    ),
    Mutation(
        "memory limit: what readers take",
        "stored.py",
        "spare -= readers * source.reader_bytes",
        "spare += readers * source.reader_bytes",
        ("tests/data/test_parquet_memory.py::test_what_readers_take_is_not_spare",),
    ),
    Mutation(
        "memory limit: of kernel values",
        "matrix.py",
        "room = self._limit - source.n_bytes",
        "room = self._limit + source.n_bytes",
        ("tests/kernels/test_columns.py",),
    ),
    # -- scaling, and the files of other programs
    Mutation(
        "scaling: the sign of the shift that is folded in",
        "scaling.py",
        "float(b - inner @ self.shift)",
        "float(b + inner @ self.shift)",
        SCALING,
    ),
    Mutation(
        "scaling: the order of two maps",
        "scaling.py",
        "shift = self.shift + self.scale * after.shift",
        "shift = after.shift + self.scale * self.shift",
        SCALING,
    ),
    Mutation(
        "scaling: zeros that are not stored count for the mean",
        "scaling.py",
        "squares + (block.shape[0] - stored) * mean * mean",
        "squares + block.shape[0] * mean * mean",
        SCALING,
    ),
    Mutation(
        "scaling: sparse columns reach to 0",
        "scaling.py",
        "low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)",
        "low, high = low + 0.0, high + 0.0",
        SCALING,
    ),
    Mutation(
        "scaling: data with zeros that are not stored stay in place",
        "scaling.py",
        "return Scaling(zero if is_sparse else shift, scale)",
        "return Scaling(shift, scale)",
        SCALING,
    ),
    Mutation(
        "model: rows are scaled once",
        "model.py",
        "return self.decide(self._scored(rows).scores)",
        "return self.decide(self.scores(rows))",
        SCALING,
    ),
    Mutation(
        "pipeline: a step that clips is refused",
        "pipelines.py",
        'if getattr(step, "clip", False):',
        'if getattr(step, "clip", True) is None:',
        SCALING,
    ),
    Mutation(
        "LIBSVM: of two classes the first label is positive",
        "libsvm.py",
        "sign = 1.0 if order[0] == 1 else -1.0",
        "sign = 1.0 if order[0] == 0 else -1.0",
        LIBSVM,
    ),
    Mutation(
        "LIBSVM: a pair whose classes change places changes sign",
        "libsvm.py",
        "sign = 1.0 if (was_i < was_j) == (i < j) else -1.0",
        "sign = 1.0",
        LIBSVM,
    ),
    Mutation(
        "LIBSVM: indices rise",
        "libsvm.py",
        "if index <= before:",
        "if index < before:",
        LIBSVM,
    ),
    Mutation(
        "LIBSVM: rho is subtracted",
        "libsvm.py",
        "(-sign * found.b).tolist()",
        "(sign * found.b).tolist()",
        LIBSVM,
    ),
    Mutation(
        "LIBLINEAR: rho of one class is subtracted",
        "liblinear.py",
        "_read_intercepts(lines, bias, width)) - rho",
        "_read_intercepts(lines, bias, width)) + rho",
        LIBLINEAR,
    ),
    # -- hard margins
    Mutation(
        "hard margins: the best intercept",
        "hard.py",
        "slack[y > 0].max() - slack[y < 0].max()",
        "slack[y > 0].max() + slack[y < 0].max()",
        HARD,
    ),
    Mutation(
        "hard margins: the factor of the upper bound",
        "hard.py",
        "factor = (1.0 + 8.0 * UNIT) / (least * least)",
        "factor = (1.0 + 8.0 * UNIT) / least",
        HARD,
    ),
    Mutation(
        "hard margins: a point that does not reach them",
        "hard.py",
        "if slack <= 0.0 else (np.inf, 0.0)",
        "if slack <= 0.1 else (np.inf, 0.0)",
        HARD,
    ),
    Mutation(
        "hard margins: what proves that hulls meet",
        "hard.py",
        "alpha = (4.0 * self.most / linear) * alpha",
        "alpha = (0.25 * self.most / linear) * alpha",
        HARD,
    ),
    Mutation(
        "hard margins: larger margins",
        "hard.py",
        "self.shift = SHIFT * self.limits.tol * size / total",
        "self.shift = -SHIFT * self.limits.tol * size / total",
        HARD,
    ),
    Mutation(
        "hard margins: C rises",
        "hard.py",
        "max(FACTOR * self.C, 4.0 * total)",
        "min(FACTOR * self.C, 4.0 * total)",
        HARD,
    ),
    Mutation(
        "hard margins: hulls by columns",
        "hard.py",
        "np.maximum(a - a * A.matvec(t), 0.0)",
        "np.maximum(a + a * A.matvec(t), 0.0)",
        HARD,
    ),
    Mutation(
        "hard margins: hulls by kernel values",
        "hard.py",
        "values <= ZERO * len(J) * values[-1]",
        "values > ZERO * len(J) * values[-1]",
        HARD,
    ),
    # -- selection
    Mutation(
        "selection: of equal points the smallest C",
        "points.py",
        "near = means >= top - TIE * max(1.0, abs(top))",
        "near = means > top",
        SELECTION,
    ),
    Mutation(
        "selection: rows that a fold holds out",
        "points.py",
        "for weights, (train, _) in zip(out, self.folds, strict=True):",
        "for weights, (_, train) in zip(out, self.folds, strict=True):",
        SELECTION,
    ),
    Mutation(
        "selection: weights in the training",
        "points.py",
        "weights *= self.weights",
        "weights /= self.weights",
        SELECTION,
    ),
    Mutation(
        "selection: parameters of the scorer",
        "points.py",
        "np.asarray(value)[test] if _n_rows(value) == m else value",
        "np.asarray(value)[: len(test)] if _n_rows(value) == m else value",
        SELECTION,
    ),
    Mutation(
        "selection: coefficients of regressions of all folds",
        "folds.py",
        "c[:, :half] + c[:, half:]",
        "c[:, :half] - c[:, half:]",
        SELECTION,
    ),
    Mutation(
        "selection: the width of the best point",
        "svr_cv.py",
        "self.epsilon_ = float(self.epsilons_[e])",
        "self.epsilon_ = float(self.epsilons_[-1 - e])",
        SELECTION,
    ),
    # -- methods as published
    Mutation(
        "published CRSVM: adaptive",
        "normal_equations.py",
        "if knows and self._options.adaptive:",
        "if knows and not self._options.adaptive:",
        CRSVM,
    ),
    Mutation(
        "published CRSVM: theta",
        "normal_equations.py",
        "threshold = self._options.theta * np.sqrt(mu)",
        "threshold = self._options.theta * mu",
        CRSVM,
    ),
    Mutation(
        "published CRSVM: balance",
        "normal_equations.py",
        "elif self._options.balanced:",
        "elif not self._options.balanced:",
        CRSVM,
    ),
    Mutation(
        "published CRSVM: the first Q",
        "normal_equations.py",
        'self._rule if knows else "random"',
        "self._rule",
        CRSVM,
    ),
    Mutation(
        "published CRSVM: sigma",
        "published_crsvm.py",
        "sums.products) ** 3",
        "sums.products) ** 2",
        CRSVM,
    ),
    Mutation(
        "published CRSVM: the step rule",
        "published_crsvm.py",
        "t = A.sweep(_correct",
        "t = 0.99 * A.sweep(_correct",
        CRSVM,
    ),
    Mutation(
        "published CRSVM: second-order terms",
        "published_crsvm.py",
        "share = affine**damping",
        "share = affine ** (damping + 1)",
        CRSVM,
    ),
    Mutation(
        "published ASVM: step (4a)",
        "published_asvm.py",
        "t = min(1.0, self._state.sweep(_longest).key)",
        "t = 1.0",
        ASVM,
    ),
    Mutation(
        "published ASVM: step (4b)",
        "published_asvm.py",
        "MOST_PROJECTIONS = 10",
        "MOST_PROJECTIONS = 1",
        ASVM,
    ),
    Mutation(
        "published ASVM: the projected gradient",
        "published_asvm.py",
        "p[(part.u <= 0.0) & (p > 0.0)] = 0.0",
        "p[part.u <= 0.0] = 0.0",
        ASVM,
    ),
    Mutation(
        "SVCradit: weights (8)",
        "published_irwls.py",
        "1.0 / self.sharpest) / C",
        "1.0 / self.sharpest) * C",
        SVCRADIT,
    ),
    Mutation(
        "SVCradit: the sets of (4)",
        "published_irwls.py",
        "group[(group == 3) & (u < 0)] = 2",
        "group[(group == 3) & (u < 0)] = 1",
        SVCRADIT,
    ),
    Mutation(
        "SVCradit: eps",
        "published_selection.py",
        "EPSILON, APART = 1e-3,",
        "EPSILON, APART = 1e-2,",
        SVCRADIT,
    ),
    Mutation(
        "SVCradit: seeds",
        "published_selection.py",
        "self._random.choice(some))",
        "some[0])",
        SVCRADIT,
    ),
    Mutation(
        "SVCradit: fill-up",
        "published_selection.py",
        "np.argsort(np.abs(u[others])",
        "np.argsort(-np.abs(u[others])",
        SVCRADIT,
    ),
    Mutation(
        "Frank-Wolfe: samples of both classes",
        "draws.py",
        "if balanced and len(front)",
        "if not balanced and len(front)",
        FRANK_WOLFE,
    ),
    Mutation(
        "Frank-Wolfe: tries",
        "simplex.py",
        "tries=samples.tries,",
        "tries=1,",
        FRANK_WOLFE,
    ),
    Mutation(
        "Frank-Wolfe: the stop (37)",
        "frank_wolfe.py",
        "np.full(len(a), Q.kappa)",
        "Q.diagonal",
        FRANK_WOLFE,
    ),
    # -- what fewer cases look at
    Mutation(
        "NaN: the row in the data below all views",
        "rows.py",
        "{self._origin(start + row)}, {self._column(column)} instead.",
        "{start + row}, {self._column(column)} instead.",
        ("tests/data/test_rows_refused.py",),
    ),
    Mutation(
        "NaN: rows of the blocks before",
        "rows.py",
        "            start += length\n\n    def _column",
        "            start += 0 * length\n\n    def _column",
        ("tests/data/test_rows_refused.py",),
    ),
    Mutation(
        "standard input: a line stands for it",
        "options.py",
        "setattr(options, name, _STANDARD_INPUT)",
        "pass",
        ("tests/cli/test_cli_face.py",),
    ),
    Mutation(
        "Dask: imported where it is not asked for",
        "collection.py",
        '    dask = sys.modules.get("dask")\n    if dask is None:',
        "    import dask\n\n    if dask is None:",
        ("tests/cli/test_cli_process.py",),
    ),
]
