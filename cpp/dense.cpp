// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "dense.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Sums are kept in this many lanes whatever the vector width, so that instruction sets agree up to
// fused multiply-add.
constexpr std::size_t kLanes = 8;
// Rows that share the loads of w, or of the sums.
constexpr std::size_t kTogether = 4;

template <std::size_t together, typename Real>
inline void dots(const Real* const* x, std::size_t n, const double* w, double* out) {
  double lanes[together][kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (std::size_t r = 0; r < together; ++r) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        lanes[r][lane] += static_cast<double>(x[r][j + lane]) * w[j + lane];
    }
  }
  for (std::size_t r = 0; r < together; ++r) {
    double tail = 0.0;
    for (std::size_t i = j; i < n; ++i) tail += static_cast<double>(x[r][i]) * w[i];
    const double* l = lanes[r];
    out[r] = ((l[0] + l[1]) + (l[2] + l[3])) + ((l[4] + l[5]) + (l[6] + l[7])) + tail;
  }
}

template <typename Real>
void matvec(const DenseView<Real>& X, const double* w, double* out) {
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    const Real* x = X.data + i * X.n;
    const Real* rows[kTogether] = {x, x + X.n, x + 2 * X.n, x + 3 * X.n};
    dots<kTogether>(rows, X.n, w, out + i);
  }
  for (; i < X.k; ++i) {
    const Real* rows[1] = {X.data + i * X.n};
    dots<1>(rows, X.n, w, out + i);
  }
}

template <typename Real>
void rmatvec(const DenseView<Real>& X, const double* u, double* out) {
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    const double u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3];
    if (u0 == 0.0 && u1 == 0.0 && u2 == 0.0 && u3 == 0.0) continue;
    const Real *x0 = X.data + i * X.n, *x1 = x0 + X.n, *x2 = x1 + X.n, *x3 = x2 + X.n;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j)
      out[j] += (static_cast<double>(x0[j]) * u0 + static_cast<double>(x1[j]) * u1) +
                (static_cast<double>(x2[j]) * u2 + static_cast<double>(x3[j]) * u3);
  }
  for (; i < X.k; ++i) {
    const double ui = u[i];
    const Real* x = X.data + i * X.n;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j) out[j] += static_cast<double>(x[j]) * ui;
  }
}

template <typename Real>
DenseProducts<Real> products() {
  return {&matvec<Real>, &rmatvec<Real>};
}

}  // namespace

DenseTable dense_table() {
  return {products<double>(), products<float>(), products<std::int16_t>(),
          products<std::uint8_t>()};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
