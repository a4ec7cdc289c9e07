// Linear problems over the same rows with labels of their own, each by Newton's method in one loop.
// Of dense rows with few columns, whose matrix is factored: the squared hinge itself, the hinge by
// its augmented Lagrangian. Of sparse rows the squared hinge, by conjugate gradients. Formulas:
// src/widemargin/solvers/linear/newton.py and augmented_lagrangian.py.
#pragma once

#include <cstdint>
#include <span>

#include "csr.hpp"
#include "dense.hpp"
#include "linear_problems.hpp"
#include "simd.hpp"

namespace widemargin {

// steps[t]: Newton steps of problem t; a gap of `digits`, below the one that is asked for, is worth
// some of them. From `few` steps on, if any, a problem is given up while nothing is proved and
// fewer rows than columns have a loss: other methods take less time then. What is not begun before
// `stop` says yes is zero.
void newton_batch(const Compiled& code, const LinearProblems<DenseView<double>>& problems,
                  const LinearLimits& limits, double digits, std::int64_t few,
                  std::span<std::int64_t> steps);
void newton_batch(const Compiled& code, const LinearProblems<Csr>& problems,
                  const LinearLimits& limits, double digits, std::int64_t few,
                  std::span<std::int64_t> steps);

}  // namespace widemargin
