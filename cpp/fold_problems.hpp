// The arrays of the problems of a search: for each binary problem one for each fold, and for each
// of these one for each C, over the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace widemargin {

struct FoldProblems {
  std::size_t folds;
  std::span<const std::int64_t> end, row;  // of binary problems, and of their places
  std::span<const double> y;               // of these
  std::span<const double> weights;         // of each fold and row
  std::span<const double> factors;         // of each fold and binary problem, for rows of label +1
  std::span<const double> Cs;
};

// Of each place of all problems.
struct FoldPlaces {
  std::span<std::int64_t> row;
  std::span<double> y, C, c;  // c: zero
};

void lay_out(const FoldProblems& problems, std::size_t threads, const FoldPlaces& out);

}  // namespace widemargin
