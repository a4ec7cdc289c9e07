// Votes of one against one.
#pragma once

#include <cmath>
#include <cstddef>

namespace widemargin {

// The votes of the pairs of `classes` classes for each class, plus a part of less than 1/3 of the
// sum of their decision values, which are added up in the order of the other classes. `value(p)` is
// that of pair p, in the order (0, 1), (0, 2), ..., and is positive for the first.
template <typename Value>
void count_votes(std::size_t classes, Value value, double* scores) {
  for (std::size_t i = 0; i < classes; ++i) {
    double sum = 0.0;
    std::size_t votes = 0;
    for (std::size_t j = 0, pair = i - 1; j < i; pair += classes - ++j - 1) {
      const double against = value(pair);
      sum -= against;
      votes += against < 0.0;
    }
    const std::size_t first = i * (2 * classes - i - 1) / 2;
    for (std::size_t j = i + 1; j < classes; ++j) {
      const double speaks = value(first + j - i - 1);
      sum += speaks;
      votes += speaks >= 0.0;
    }
    scores[i] = static_cast<double>(votes) + sum / (3.0 * (std::abs(sum) + 1.0));
  }
}

}  // namespace widemargin
