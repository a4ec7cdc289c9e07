// Linear problems of few dense rows and few columns, all over the same rows with labels of their
// own, each by Newton's method in one loop: the squared hinge itself, the hinge by its augmented
// Lagrangian. Formulas: src/widemargin/solvers/linear/newton.py and augmented_lagrangian.py.
#pragma once

#include <cstdint>
#include <span>

#include "dense.hpp"
#include "linear_problems.hpp"
#include "simd.hpp"

namespace widemargin {

using NewtonProblems = LinearProblems<DenseView<double>>;

// steps[t]: Newton steps of problem t; a gap of `digits`, below the one that is asked for, is worth
// some of them. What is not begun before `stop` says yes is zero.
void newton_batch(const Compiled& code, const NewtonProblems& problems, const LinearLimits& limits,
                  double digits, std::span<std::int64_t> steps);

}  // namespace widemargin
