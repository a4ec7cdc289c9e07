// Where problems of the batch engine start that follow another one.
#pragma once

#include <cstddef>
#include <span>

#include "batch.hpp"

namespace widemargin {

// A share of a number that rounding may change.
inline constexpr double kSame = 1e-12;

// Let problem t start at the answer of the one that it follows, times a number; where the weights
// are not all multiplied by one number, or sum alpha is given, each variable in proportion to its
// weight, so that bounds stay bounds. Where that is not feasible it starts at its own start.
// Whether its scores are there too.
bool follow(const BatchProblems& problems, std::size_t t);

// Let problem t have the answer of the one that it follows, where its gap stays small enough: with
// the hinge and larger weights the dual objective is the same, and only the losses grow. What
// bounds say of the gap is `share` of `tol` at most. Whether it has.
bool stays(const BatchProblems& problems, std::size_t t, double tol, double share,
           std::span<BatchResult> results);

}  // namespace widemargin
