// Cholesky factors of small matrices, where a call of LAPACK takes as long as they.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace widemargin {

// R of H = R'R in the place of the upper triangle of H. No pivot falls to less than this share of
// itself by one row; whether none had to be kept from it, as H is positive definite in its digits.
inline bool factor(std::span<double> H, std::size_t k, double share) {
  bool is_definite = H[0] > 0;
  for (std::size_t p = 0; p < k; ++p) {
    double* row = &H[p * k];
    const double root = std::sqrt(row[p]);
    for (std::size_t j = p; j < k; ++j) row[j] /= root;
    for (std::size_t i = p + 1; i < k; ++i) {
      double* below = &H[i * k];
      const double by = row[i], least = share * below[i];
      for (std::size_t j = i; j < k; ++j) below[j] -= by * row[j];
      is_definite = is_definite && below[i] > least;
      below[i] = std::max(below[i], least);
    }
  }
  return is_definite;
}

// The solution of R'R x = b in the place of b.
inline void substitute(std::span<const double> R, std::span<double> b) {
  const std::size_t k = b.size();
  for (std::size_t p = 0; p < k; ++p) {
    b[p] /= R[p * k + p];
    for (std::size_t j = p + 1; j < k; ++j) b[j] -= R[p * k + j] * b[p];
  }
  for (std::size_t p = k; p-- > 0;) {
    for (std::size_t j = p + 1; j < k; ++j) b[p] -= R[p * k + j] * b[j];
    b[p] /= R[p * k + p];
  }
}

}  // namespace widemargin
