// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "factor_steps.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

void forward(const double* R, std::size_t stride, std::size_t k, double* b, std::size_t first) {
  for (std::size_t p = first; p < k; ++p) {
    const double* const row = R + p * stride;
    const double by = b[p] /= row[p];
#pragma omp simd
    for (std::size_t j = p + 1; j < k; ++j) b[j] -= by * row[j];
  }
}

void backward(const double* R, std::size_t stride, std::size_t k, double* b) {
  for (std::size_t p = k; p-- > 0;) {
    const double* const row = R + p * stride;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = p + 1; j < k; ++j) sum += row[j] * b[j];
    b[p] = (b[p] - sum) / row[p];
  }
}

// Givens' rotations of two rows each: without its column the factor has one number below the
// diagonal in each column from there on.
void remove(double* R, std::size_t stride, std::size_t k, std::size_t a) {
  for (std::size_t i = 0; i < a; ++i) {
    double* const row = R + i * stride;
    for (std::size_t j = a; j + 1 < k; ++j) row[j] = row[j + 1];
  }
  for (std::size_t i = a; i + 1 < k; ++i) {
    double *const row = R + i * stride, *const next = row + stride;
    const double x = row[i + 1], y = next[i + 1], length = __builtin_sqrt(x * x + y * y);
    const double c = x / length, s = y / length;
#pragma omp simd
    for (std::size_t j = i + 1; j < k; ++j) {
      const double u = row[j], v = next[j];
      row[j - 1] = c * u + s * v;
      next[j] = c * v - s * u;
    }
  }
}

}  // namespace

FactorTable factor_table() { return {&forward, &backward, &remove}; }

}  // namespace widemargin::WIDEMARGIN_SIMD
