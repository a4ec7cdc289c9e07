// Compiled once for each instruction set, with WIDEMARGIN_SIMD naming the namespace. It must
// not use inline functions of the standard library: the linker would keep one copy of them,
// compiled for any of the instruction sets.
#include "row_steps.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Sums are kept in this many lanes whatever the vector width, so that instruction sets agree
// up to fused multiply-add.
constexpr std::size_t kLanes = 8;

struct Lanes {
  double value[kLanes] = {};
  double sum() const {
    double total = 0.0;
    for (double x : value) total += x;
    return total;
  }
};

// Largest ratio and the row that has it, by lanes.
struct Largest {
  double ratio[kLanes] = {};
  std::size_t row[kLanes] = {};
  void store(StepSums& sums) const {
    sums.ratio = 0.0;
    sums.row = 0;
    for (std::size_t j = 0; j < kLanes; ++j) {
      if (ratio[j] > sums.ratio || (ratio[j] == sums.ratio && row[j] < sums.row)) {
        sums.ratio = ratio[j];
        sums.row = row[j];
      }
    }
  }
};

inline double larger(double a, double b) { return a > b ? a : b; }
inline double clipped(double x, double limit) {
  return x > limit ? limit : (x < -limit ? -limit : x);
}

// Runs body(i, lane) over all rows, eight at a time.
template <typename Body>
inline void for_each_row(std::size_t k, Body body) {
  std::size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
#pragma omp simd  // or the short loop is unrolled before it can be vectorized
    for (std::size_t lane = 0; lane < kLanes; ++lane) body(i + lane, lane);
  }
  for (std::size_t lane = 0; i < k; ++i, ++lane) body(i, lane);
}

template <bool Hinge>
PointSums advance(const RowVectors& r, double t) {
  Lanes products, losses, linear;
  const double* __restrict C = r.C, * __restrict dalpha = r.dalpha, * __restrict ds = r.ds, * __restrict dxi = r.dxi;
  double* __restrict alpha = r.alpha, * __restrict u = r.u, * __restrict s = r.s, * __restrict xi = r.xi, * __restrict d = r.d;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double a = alpha[i] + t * dalpha[i], si = s[i] + t * ds[i], x = xi[i] + t * dxi[i];
    alpha[i] = a;
    s[i] = si;
    xi[i] = x;
    const double violation = larger(x - si, 0.0);
    products.value[lane] += si * a;
    if constexpr (Hinge) {
      const double ui = u[i] - t * dalpha[i];
      u[i] = ui;
      d[i] = 1.0 / (si / a + x / ui);
      products.value[lane] += x * ui;
      losses.value[lane] += C[i] * violation;
      linear.value[lane] += a;
    } else {
      d[i] = 1.0 / (si / a + 0.5 / C[i]);
      losses.value[lane] += C[i] * violation * violation;
      linear.value[lane] += a - 0.25 * a * a / C[i];
    }
  });
  return {products.sum(), losses.sum(), linear.sum()};
}

template <bool Hinge>
StepSums predict(const RowVectors& r, const double* __restrict z, double clip,
                 double* __restrict E) {
  Lanes first, second;
  Largest largest;
  const double* __restrict C = r.C, * __restrict alpha = r.alpha, * __restrict u = r.u, * __restrict s = r.s, * __restrict xi = r.xi, * __restrict d = r.d;
  double* __restrict p = r.ds, * __restrict q = r.dxi;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double a = alpha[i], si = s[i], limit = clip * C[i], inverse = 1.0 / a;
    double slack = si;
    if constexpr (Hinge) slack -= xi[i];
    const double da = -d[i] * (slack + z[i]);
    const double dsi = -si - si * inverse * da;
    double ratio = larger(-da * inverse, 1.0 + da * inverse);  // -dalpha/alpha, -ds/s
    p[i] = clipped(dsi * da, limit);
    double column1 = p[i] * inverse, column2 = inverse;
    double one = si * da + a * dsi, two = dsi * da;
    if constexpr (Hinge) {
      const double inverse_u = 1.0 / u[i];
      const double dx = -xi[i] + xi[i] * inverse_u * da;
      ratio = larger(ratio, larger(da * inverse_u, 1.0 - da * inverse_u));  // -du/u, -dxi/xi
      q[i] = clipped(-dx * da, limit);
      column1 -= q[i] * inverse_u;
      column2 -= inverse_u;
      one += u[i] * dx - xi[i] * da;
      two -= dx * da;
    }
    E[2 * i] = d[i] * column1;
    E[2 * i + 1] = d[i] * C[i] * column2;
    first.value[lane] += one;
    second.value[lane] += two;
    largest.row[lane] = ratio > largest.ratio[lane] ? i : largest.row[lane];
    largest.ratio[lane] = larger(ratio, largest.ratio[lane]);
  });
  StepSums sums{0.0, 0, first.sum(), second.sum()};
  largest.store(sums);
  return sums;
}

template <bool Hinge>
StepSums correct(const RowVectors& r, const double* __restrict z, double target) {
  Lanes first, second;
  Largest largest;
  const double* __restrict C = r.C, * __restrict alpha = r.alpha, * __restrict u = r.u, * __restrict s = r.s, * __restrict xi = r.xi, * __restrict d = r.d;
  double* __restrict dalpha = r.dalpha, * __restrict ds = r.ds, * __restrict dxi = r.dxi;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double a = alpha[i], si = s[i], inverse = 1.0 / a;
    const double rs = si * a - target * C[i] + ds[i];
    double rhs = rs * inverse, rx = 0.0, inverse_u = 0.0;
    if constexpr (Hinge) {
      inverse_u = 1.0 / u[i];
      rx = xi[i] * u[i] - target * C[i] + dxi[i];
      rhs -= rx * inverse_u;
    }
    const double da = -d[i] * (rhs + z[i]);
    const double dsi = -(rs + si * da) * inverse;
    double ratio = larger(-da * inverse, -dsi / si);
    double one = si * da + a * dsi, two = dsi * da;
    if constexpr (Hinge) {
      const double dx = (xi[i] * da - rx) * inverse_u;
      ratio = larger(ratio, larger(da * inverse_u, -dx / xi[i]));
      one += u[i] * dx - xi[i] * da;
      two -= dx * da;
      dxi[i] = dx;
    } else {
      dxi[i] = 0.5 * da / C[i];
    }
    dalpha[i] = da;
    ds[i] = dsi;
    first.value[lane] += one;
    second.value[lane] += two;
    largest.row[lane] = ratio > largest.ratio[lane] ? i : largest.row[lane];
    largest.ratio[lane] = larger(ratio, largest.ratio[lane]);
  });
  StepSums sums{0.0, 0, first.sum(), second.sum()};
  largest.store(sums);
  return sums;
}

}  // namespace

RowSteps row_steps() {
  return {[](const RowVectors& rows, double t, bool hinge) {
            return hinge ? advance<true>(rows, t) : advance<false>(rows, t);
          },
          [](const RowVectors& rows, const double* z, double clip, double* E, bool hinge) {
            return hinge ? predict<true>(rows, z, clip, E) : predict<false>(rows, z, clip, E);
          },
          [](const RowVectors& rows, const double* z, double target, bool hinge) {
            return hinge ? correct<true>(rows, z, target) : correct<false>(rows, z, target);
          }};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
