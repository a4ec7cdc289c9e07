// Linear problems over the same sparse rows, each by dual coordinate descent in one loop. Formulas
// and their source: src/widemargin/solvers/linear/coordinate_descent.py.
#pragma once

#include <cstdint>
#include <span>

#include "csr.hpp"
#include "linear_problems.hpp"
#include "simd.hpp"

namespace widemargin {

// visits[t]: of rows, by problem t, which draws their order by the seed. Each begins at its alpha,
// and at its v where the intercept is free; what is not begun before `stop` says yes stays there.
void descent_batch(Simd level, const LinearProblems<Csr>& problems, const LinearLimits& limits,
                   std::uint64_t seed, std::span<std::int64_t> visits);

}  // namespace widemargin
