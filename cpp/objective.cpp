// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "objective.hpp"

#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

using Doubles = Vector<double>;
constexpr std::size_t kStep = kLanes<double>;
constexpr double kInfinity = __builtin_inf();

typedef float Floats __attribute__((vector_size(kVectorBytes / 2)));

inline Doubles load_wide(const float* p) {
  Floats v;
  std::memcpy(&v, p, sizeof(v));
  return __builtin_convertvector(v, Doubles);
}

inline double total(Doubles v) {
  double sum = 0;
  for (std::size_t k = 0; k < kStep; ++k) sum += v[k];
  return sum;
}

// What of a slack is positive: 0 for NaN.
inline Doubles positive(Doubles t) { return t > all(0.0) ? t : all(0.0); }

inline Doubles ridge_at(const Objective& of, std::size_t p) {
  return of.ridge != nullptr ? load_wide(of.ridge + p) * load(of.x + p) : Doubles{};
}

Products products(const Objective& of) {
  Doubles square{}, linear{}, ridges{};
  for (std::size_t p = 0; p < of.width; p += kStep) {
    const Doubles x = load(of.x + p);
    square += x * load(of.f + p);
    linear += load(of.target + p) * x;
    ridges += x * ridge_at(of, p);
    if (of.is_twofold) linear -= load(of.q + p) * absolute<double>(x);
  }
  return {total(square), total(linear), total(ridges)};
}

template <bool is_squared, bool is_twofold>
Losses losses_of(const Objective& of, const double* C, double b) {
  Doubles value{}, slope{};
  for (std::size_t p = 0; p < of.width; p += kStep) {
    const Doubles f = load(of.f + p) + b, q = load(of.q + p), weight = load(C + p);
    Doubles t, way;  // the slack, and the sign with which it falls as b rises
    if constexpr (is_twofold) {
      const Doubles apart = load(of.target + p) - f;
      t = positive(absolute<double>(apart) - q);
      way = apart < all(0.0) ? all(-1.0) : all(1.0);
    } else {
      way = load(of.y + p);
      t = positive(q - way * f);
    }
    if constexpr (is_squared) {
      value += weight * t * t;
      slope += weight * way * (2.0 * t);
    } else {
      const Doubles lost = t > all(0.0) ? weight : all(0.0);
      value += lost * t;
      slope += lost * way;
    }
  }
  return {total(value), -total(slope)};
}

Losses losses(const Objective& of, const double* C, double b) {
  if (of.is_squared)
    return of.is_twofold ? losses_of<true, true>(of, C, b) : losses_of<true, false>(of, C, b);
  return of.is_twofold ? losses_of<false, true>(of, C, b) : losses_of<false, false>(of, C, b);
}

template <bool is_twofold>
Levels levels_of(const Objective& of, const double* C) {
  Doubles low = all(0.0) - kInfinity, high = all(0.0) + kInfinity;
  const Doubles least = low, most = high;
  for (std::size_t p = 0; p < of.width; p += kStep) {
    const Doubles x = load(of.x + p);
    const Doubles level = load(of.target + p) - load(of.f + p) - ridge_at(of, p);
    const auto counts = load(C + p) != all(0.0);
    Doubles rise = level, fall = level;
    if constexpr (is_twofold) {
      const Doubles q = load(of.q + p);
      rise += x < all(0.0) ? q : -q;
      fall += x > all(0.0) ? -q : q;
    }
    const Doubles inside = kInside * load(C + p);
    rise = counts & (x < load(of.upper + p) - inside) ? rise : least;
    fall = counts & (x > load(of.lower + p) + inside) ? fall : most;
    low = rise > low ? rise : low;
    high = fall < high ? fall : high;
  }
  Levels out{-kInfinity, kInfinity};
  for (std::size_t k = 0; k < kStep; ++k) {
    if (low[k] > out.low) out.low = low[k];
    if (high[k] < out.high) out.high = high[k];
  }
  return out;
}

Levels levels(const Objective& of, const double* C) {
  return of.is_twofold ? levels_of<true>(of, C) : levels_of<false>(of, C);
}

Sizes sizes(const Objective& of, const double* C) {
  Doubles square{}, free{};
  for (std::size_t p = 0; p < of.width; p += kStep) {
    const Doubles x = load(of.x + p);
    square += x * x;
    const auto is_free = (x > load(of.lower + p)) & (x < load(of.upper + p)) & (x != all(0.0));
    free += is_free ? load(C + p) : all(0.0);
  }
  return {total(square), total(free)};
}

void scores(const Objective& of, const float* F, double shift, const double* near, double* f) {
  for (std::size_t p = 0; p < of.width; p += kStep)
    store(f + p, load_wide(F + p) - ridge_at(of, p) - shift + load(near + p));
}

void gradient(const Objective& of, double shift, const double* near, float* F) {
  for (std::size_t p = 0; p < of.width; p += kStep) {
    const Doubles exact = load(of.f + p) + ridge_at(of, p) + shift - load(near + p);
    const Floats rounded = __builtin_convertvector(exact, Floats);
    std::memcpy(F + p, &rounded, sizeof(rounded));
  }
}

}  // namespace

ObjectiveTable objective_table() {
  return {&products, &losses, &levels, &sizes, &scores, &gradient};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
