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

inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double clipped(double x, double limit) {
  return x > limit ? limit : (x < -limit ? -limit : x);
}

// What lies ahead of all rows: sums, and the largest ratio with the row that has it, by lanes.
struct Ahead {
  Lanes first, second, ratio;
  std::size_t row[kLanes] = {};

  void add(std::size_t lane, std::size_t i, double x, double one, double two) {
    first.value[lane] += one;
    second.value[lane] += two;
    row[lane] = x > ratio.value[lane] ? i : row[lane];
    ratio.value[lane] = larger(x, ratio.value[lane]);
  }

  StepSums sums() const {
    StepSums sums{0.0, 0, first.sum(), second.sum()};
    for (std::size_t j = 0; j < kLanes; ++j) {
      const double x = ratio.value[j];
      if (x > sums.ratio || (x == sums.ratio && row[j] < sums.row)) {
        sums.ratio = x;
        sums.row = row[j];
      }
    }
    return sums;
  }
};

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
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double a = r.alpha[i] + t * r.dalpha[i], si = r.s[i] + t * r.ds[i],
                 x = r.xi[i] + t * r.dxi[i];
    r.alpha[i] = a;
    r.s[i] = si;
    r.xi[i] = x;
    const double violation = larger(x - si, 0.0);
    products.value[lane] += si * a;
    if constexpr (Hinge) {
      const double ui = r.u[i] - t * r.dalpha[i];
      r.u[i] = ui;
      r.d[i] = 1.0 / (si / a + x / ui);
      products.value[lane] += x * ui;
      losses.value[lane] += r.C[i] * violation;
      linear.value[lane] += a;
    } else {
      r.d[i] = 1.0 / (si / a + 0.5 / r.C[i]);
      losses.value[lane] += r.C[i] * violation * violation;
      linear.value[lane] += a - 0.25 * a * a / r.C[i];
    }
  });
  return {products.sum(), losses.sum(), linear.sum()};
}

template <bool Hinge>
StepSums predict(const RowVectors& r, const double* z, double clip, double* E1, double* E2) {
  Ahead ahead;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double a = r.alpha[i], si = r.s[i], limit = clip * r.C[i], inverse = 1.0 / a;
    double slack = si;
    if constexpr (Hinge) slack -= r.xi[i];
    const double da = -r.d[i] * (slack + z[i]);
    const double dsi = -si - si * inverse * da;
    double ratio = larger(-da * inverse, 1.0 + da * inverse);  // -dalpha/alpha, -ds/s
    r.ds[i] = clipped(dsi * da, limit);
    double column1 = r.ds[i] * inverse, column2 = inverse;
    double one = si * da + a * dsi, two = dsi * da;
    if constexpr (Hinge) {
      const double inverse_u = 1.0 / r.u[i];
      const double dx = -r.xi[i] + r.xi[i] * inverse_u * da;
      ratio = larger(ratio, larger(da * inverse_u, 1.0 - da * inverse_u));  // -du/u, -dxi/xi
      r.dxi[i] = clipped(-dx * da, limit);
      column1 -= r.dxi[i] * inverse_u;
      column2 -= inverse_u;
      one += r.u[i] * dx - r.xi[i] * da;
      two -= dx * da;
    }
    E1[i] = r.d[i] * column1;
    E2[i] = r.d[i] * r.C[i] * column2;
    ahead.add(lane, i, ratio, one, two);
  });
  return ahead.sums();
}

template <bool Hinge>
StepSums correct(const RowVectors& r, const double* z, double target) {
  Ahead ahead;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double a = r.alpha[i], si = r.s[i], inverse = 1.0 / a;
    const double rs = si * a - target * r.C[i] + r.ds[i];
    double rhs = rs * inverse, rx = 0.0, inverse_u = 0.0;
    if constexpr (Hinge) {
      inverse_u = 1.0 / r.u[i];
      rx = r.xi[i] * r.u[i] - target * r.C[i] + r.dxi[i];
      rhs -= rx * inverse_u;
    }
    const double da = -r.d[i] * (rhs + z[i]);
    const double dsi = -(rs + si * da) * inverse;
    double ratio = larger(-da * inverse, -dsi / si);
    double one = si * da + a * dsi, two = dsi * da;
    if constexpr (Hinge) {
      const double dx = (r.xi[i] * da - rx) * inverse_u;
      ratio = larger(ratio, larger(da * inverse_u, -dx / r.xi[i]));
      one += r.u[i] * dx - r.xi[i] * da;
      two -= dx * da;
      r.dxi[i] = dx;
    } else {
      r.dxi[i] = 0.5 * da / r.C[i];
    }
    r.dalpha[i] = da;
    r.ds[i] = dsi;
    ahead.add(lane, i, ratio, one, two);
  });
  return ahead.sums();
}

PenaltySums squared(const PenaltyRows& r, double* alpha) {
  Lanes losses, linear;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double t = larger(1.0 - r.f[i], 0.0), a = 2.0 * r.C[i] * t, loss = r.C[i] * t * t;
    alpha[i] = a;
    losses.value[lane] += loss;
    linear.value[lane] += a - loss;
  });
  return {losses.sum(), linear.sum(), losses.sum()};
}

PenaltySums penalty(const PenaltyRows& r, double* alpha) {
  if (!r.multiplier) return squared(r, alpha);
  Lanes losses, linear, value;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double t = 1.0 - r.f[i], C = r.C[i], scaled = r.s * C;
    const double a = larger(0.0, smaller(C, r.multiplier[i] + scaled * t));
    const double change = a - r.multiplier[i];
    alpha[i] = a;
    losses.value[lane] += C * larger(t, 0.0);
    linear.value[lane] += a;
    value.value[lane] += a * t - 0.5 * change * change / scaled;
  });
  return {losses.sum(), linear.sum(), value.sum()};
}

// Sums are integers: their order does not matter.
template <bool Hinge>
CountedRows count(const PenaltyRows& r, const double* alpha, std::uint8_t* counted, double* d) {
  std::size_t active = 0, changed = 0;
  for (std::size_t i = 0; i < r.k; ++i) {
    const bool inside = (alpha[i] > 0.0) & (!Hinge || alpha[i] < r.C[i]);
    const bool before = counted[i];
    active += inside;
    changed += inside != before;
    d[i] = r.C[i] * (static_cast<double>(inside) - static_cast<double>(before));
    counted[i] = inside;
  }
  return {active, changed};
}

SlopeSums squared_slope(const PenaltyRows& r, const double* f_new, double t) {
  Lanes first, second;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double change = f_new[i] - r.f[i], weighted = 2.0 * r.C[i] * change;
    const double left = 1.0 - r.f[i] - t * change;
    first.value[lane] -= larger(left, 0.0) * weighted;
    second.value[lane] += left > 0.0 ? weighted * change : 0.0;
  });
  return {first.sum(), second.sum()};
}

SlopeSums slope(const PenaltyRows& r, const double* f_new, double t) {
  if (!r.multiplier) return squared_slope(r, f_new, t);
  Lanes first, second;
  for_each_row(r.k, [&](std::size_t i, std::size_t lane) {
    const double change = f_new[i] - r.f[i], C = r.C[i], scaled = r.s * C;
    const double u = r.multiplier[i] + scaled * (1.0 - r.f[i] - t * change);
    first.value[lane] -= larger(0.0, smaller(C, u)) * change;
    second.value[lane] += (u > 0.0) & (u < C) ? scaled * change * change : 0.0;
  });
  return {first.sum(), second.sum()};
}

}  // namespace

RowSteps row_steps() {
  return {
      [](const RowVectors& rows, double t, bool hinge) {
        return hinge ? advance<true>(rows, t) : advance<false>(rows, t);
      },
      [](const RowVectors& rows, const double* z, double clip, double* E1, double* E2, bool hinge) {
        return hinge ? predict<true>(rows, z, clip, E1, E2) : predict<false>(rows, z, clip, E1, E2);
      },
      [](const RowVectors& rows, const double* z, double target, bool hinge) {
        return hinge ? correct<true>(rows, z, target) : correct<false>(rows, z, target);
      },
      &penalty,
      [](const PenaltyRows& rows, const double* alpha, std::uint8_t* counted, double* d) {
        return rows.multiplier ? count<true>(rows, alpha, counted, d)
                               : count<false>(rows, alpha, counted, d);
      },
      &slope};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
