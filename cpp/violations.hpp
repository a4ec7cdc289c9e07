// How far rows are from their conditions: one pass, where NumPy would make ten.
#pragma once

#include <cstddef>
#include <limits>

namespace widemargin {

// -F where c can rise, else minus infinity; -F where it can fall, else infinity. Of rows that are
// not `current`, if that is given, neither can.
inline void violations(const double* F, const double* c, const double* lower, const double* upper,
                       const bool* current, std::size_t m, double* rise, double* fall) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < m; ++i) {
    rise[i] = c[i] < upper[i] ? -F[i] : -infinity;
    fall[i] = c[i] > lower[i] ? -F[i] : infinity;
  }
  if (current == nullptr) return;
  for (std::size_t i = 0; i < m; ++i) {
    rise[i] = current[i] ? rise[i] : -infinity;
    fall[i] = current[i] ? fall[i] : infinity;
  }
}

}  // namespace widemargin
