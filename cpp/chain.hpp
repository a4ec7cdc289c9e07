// Where problems of the batch engine start that follow another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

// For each problem that follows none: the first one of those that have its rows and labels, and
// other weights, as folds have; or -1. Classifiers with the hinge and a free intercept, whose start
// is zero, have one.
std::vector<std::int64_t> models_of(const BatchProblems& problems);

// Let problem t start near the answer of its model: rows that have no weight there take over what
// rows have that have none here, those first that violate most. Its scores are those of the model.
// Whether it can: else it starts at its own start.
bool begin_near(const BatchProblems& problems, std::size_t t, std::size_t model);

}  // namespace widemargin
