// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library. Without contraction: a product that were fused with the sum
// behind it would no longer have the error that is computed for it.
#include "twofold.hpp"

#include <math.h>

#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

constexpr std::size_t kRows = kTwofoldRows;
// What exp and tanh of the C library may be off, relative to their values: 2 and 4 units in the
// last place, where glibc states 1 and 2.
constexpr double kExpError = 4.0 * kUnit, kTanhError = 8.0 * kUnit;

using Lane = Vector<double>;

// Of a double, or of as many as a vector holds.
template <class T>
struct Twofold {
  T hi, lo;
};

// a b + c, rounded once.
inline double fused(double a, double b, double c) { return ::fma(a, b, c); }
inline Lane fused(Lane a, Lane b, Lane c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  for (std::size_t lane = 0; lane < kLanes<double>; ++lane)
    c[lane] = ::fma(a[lane], b[lane], c[lane]);
  return c;
#endif
}

// a + b = hi + lo exactly (Knuth); not finite where it overflows.
template <class T>
inline Twofold<T> two_sum(T a, T b) {
  const T sum = a + b, rest = sum - a;
  return {sum, (a - (sum - rest)) + (b - rest)};
}

// a b = hi + lo exactly, but for underflow.
template <class T>
inline Twofold<T> two_product(T a, T b) {
  const T product = a * b;
  return {product, fused(a, b, -product)};
}

template <class T>
inline Twofold<T> add(Twofold<T> x, Twofold<T> y) {
  const auto sum = two_sum(x.hi, y.hi);
  return two_sum(sum.hi, (x.lo + y.lo) + sum.lo);
}

inline void add_to(const TwofoldSums& sums, std::size_t j, Twofold<double> term, double size) {
  const auto sum = add<double>({sums.hi[j], sums.lo[j]}, term);
  sums.hi[j] = sum.hi;
  sums.lo[j] = sum.lo;
  sums.size[j] += size;
}

template <bool has_columns>
inline void dot_lanes(const TwofoldRow& x, const double* w, double* hi, double* lo, double* size) {
  const auto step = [&](std::size_t t, std::size_t lane) {
    const double other = has_columns ? w[x.columns[t]] : w[t];
    const auto p = two_product(x.values[t], other), sum = add<double>({hi[lane], lo[lane]}, p);
    hi[lane] = sum.hi;
    lo[lane] = sum.lo;
    size[lane] += ::fabs(p.hi);
  };
  std::size_t t = 0;
  for (; t + kRows <= x.count; t += kRows) {
#pragma omp simd
    for (std::size_t lane = 0; lane < kRows; ++lane) step(t + lane, lane);
  }
  for (std::size_t lane = 0; t + lane < x.count; ++lane) step(t + lane, lane);
}

void dot(const TwofoldRow& x, const double* w, const TwofoldSums& sums) {
  double hi[kRows] = {}, lo[kRows] = {}, size[kRows] = {};
  if (x.columns)
    dot_lanes<true>(x, w, hi, lo, size);
  else
    dot_lanes<false>(x, w, hi, lo, size);
  const std::size_t used = x.count < kRows ? x.count : kRows;
  for (std::size_t lane = 0; lane < used; ++lane) add_to(sums, 0, {hi[lane], lo[lane]}, size[lane]);
}

void add_row(const TwofoldRow& x, double a, const TwofoldSums& sums) {
  if (x.columns) {
    for (std::size_t t = 0; t < x.count; ++t) {
      const auto p = two_product(x.values[t], a);
      add_to(sums, x.columns[t], p, ::fabs(p.hi));
    }
    return;
  }
#pragma omp simd
  for (std::size_t j = 0; j < x.count; ++j) {
    const auto p = two_product(x.values[j], a);
    add_to(sums, j, p, ::fabs(p.hi));
  }
}

// ----------------------------------------------------------------------------- kernel values

// Numbers of the rows of a group, each with a bound of its error.
struct Values {
  double hi[kRows], lo[kRows], error[kRows];
};

// An entry of a row, for `kernel_term`: its operators are exact.
struct Entry {
  Lane value;

  friend Twofold<Lane> operator*(Entry x, Entry z) { return two_product(x.value, z.value); }
  friend Twofold<Lane> operator+(Entry x, Entry z) { return two_sum(x.value, z.value); }
  friend Twofold<Lane> operator-(Entry x, Entry z) { return two_sum(x.value, -z.value); }
};

// Of the square lo^2 is left out.
inline Twofold<Lane> squared(Twofold<Lane> d) {
  const auto square = two_product(d.hi, d.hi);
  return {square.hi, fused(d.hi + d.hi, d.lo, square.lo)};
}

inline Twofold<Lane> magnitude(Twofold<Lane> d) {
  const auto is_negative = d.hi < all(0.0);
  return {is_negative ? -d.hi : d.hi, is_negative ? -d.lo : d.lo};
}

// a / b; 0 where both are. Off by 11u^2 of itself: lo is 3u of hi at most, its divisor lacks b.lo,
// and three operations round.
inline Twofold<Lane> quotient(Twofold<Lane> a, Twofold<Lane> b) {
  const Lane divisor = b.hi == all(0.0) ? all(1.0) : b.hi, hi = a.hi / divisor;
  const Lane rest = fused(-hi, divisor, a.hi);
  return {hi, (rest + fused(-hi, b.lo, a.lo)) / divisor};
}

// Of an exact a, the product of the low parts is left out: 10u^2 more.
inline Twofold<Lane> operator*(Twofold<Lane> a, Twofold<Lane> b) {
  const auto product = two_product(a.hi, b.hi);
  return {product.hi, fused(a.hi, b.lo, fused(a.lo, b.hi, product.lo))};
}

// How many terms as `twofold_error` has them a sum counts for. Those of chi2 have |e| <= 5u |p| and
// are known to 21u^2 |p|: they cost u |l + e| + u |l + e + t| + 21u^2 |p| <= 3u^2 |h| + 32u^2 |p|,
// in all (3n + 32) u^2 S, and 3 eta each where they underflow. 4n + 8 terms have 16n + 48 of that.
constexpr std::size_t terms_of(Term term, std::size_t n) {
  return term == Term::share ? 4 * n + 8 : n;
}

// values = sum of the terms of x_t and z_t, t < n: group(t) is where the x of the rows lie, z(t,
// row) what this row and the next ones meet.
template <Term kind, class Group, class Other>
[[gnu::noinline]] void sum_terms(std::size_t n, Group group, Other z, Values& values) {
  constexpr std::size_t lanes = kLanes<double>, vectors = kRows / lanes;
  Twofold<Lane> sums[vectors] = {};
  Lane sizes[vectors] = {};
  for (std::size_t t = 0; t < n; ++t) {
    const double* x = group(t);
    for (std::size_t v = 0; v < vectors; ++v) {
      const Twofold<Lane> term =
          kernel_term<kind>(Entry{load(x + v * lanes)}, Entry{z(t, v * lanes)});
      sums[v] = add(sums[v], term);
      sizes[v] += magnitude(term.hi);
    }
  }
  double size[kRows];
  for (std::size_t v = 0; v < vectors; ++v) {
    store(values.hi + v * lanes, sums[v].hi);
    store(values.lo + v * lanes, sums[v].lo);
    store(size + v * lanes, sizes[v]);
  }
  for (std::size_t r = 0; r < kRows; ++r)
    values.error[r] = twofold_error(terms_of(kind, n), rounded_up(size[r], n));
}

// values = gamma values + coef0
inline Values& affine(Values& values, double gamma, double coef0) {
#pragma omp simd
  for (std::size_t r = 0; r < kRows; ++r) {
    auto p = two_product(gamma, values.hi[r]);
    p.lo = ::fma(gamma, values.lo[r], p.lo);
    const auto sum = add<double>(p, {coef0, 0.0});
    const double size = ::fabs(p.hi) + ::fabs(coef0);
    values.hi[r] = sum.hi;
    values.lo[r] = sum.lo;
    values.error[r] =
        (::fabs(gamma) * values.error[r] + 8.0 * kUnit * kUnit * size) * (1.0 + 8.0 * kUnit) +
        8.0 * kLeast;
  }
  return values;
}
inline Values& scaled(Values& values, double factor) { return affine(values, factor, 0.0); }

// a = a b. Left out: the product of the low parts.
inline void multiply(Values& a, const Values& b) {
#pragma omp simd
  for (std::size_t r = 0; r < kRows; ++r) {
    auto p = two_product(a.hi[r], b.hi[r]);
    p.lo = ::fma(a.hi[r], b.lo[r], ::fma(a.lo[r], b.hi[r], p.lo));
    const auto product = two_sum(p.hi, p.lo);
    const double x = ::fabs(a.hi[r]) * (1.0 + 4.0 * kUnit) + a.error[r],
                 z = ::fabs(b.hi[r]) * (1.0 + 4.0 * kUnit);
    a.error[r] = (x * b.error[r] + z * a.error[r] + 16.0 * kUnit * kUnit * ::fabs(p.hi)) *
                     (1.0 + 8.0 * kUnit) +
                 8.0 * kLeast;
    a.hi[r] = product.hi;
    a.lo[r] = product.lo;
  }
}

// values = values^degree, by squaring.
inline Values& power(Values& values, int degree) {
  Values base = values;
  int left = degree - 1;
  while (left > 0) {
    if (left & 1) multiply(values, base);
    left >>= 1;
    if (left > 0) {
      const Values same = base;
      multiply(base, same);
    }
  }
  return values;
}

// values = exp(values). The series of what hi leaves of the argument ends after its first term:
// with |lo| <= 746u the next is far below u.
inline Values& exponential(Values& values) {
  for (std::size_t r = 0; r < kRows; ++r) {
    const double hi = values.hi[r], lo = values.lo[r], apart = values.error[r];
    const double size = ::exp(hi), value = ::fma(size, lo, size);
    values.hi[r] = value;
    values.lo[r] = 0.0;
    if (hi == 0.0 && lo == 0.0) {  // equal rows: exp(0) is 1
      values.error[r] = 2.0 * apart;
    } else if (hi + (apart + ::fabs(lo)) * (1.0 + 4.0 * kUnit) < -746.0) {
      values.hi[r] = 0.0;
      values.error[r] = kLeast;
    } else if (apart <= 1.0 && ::fabs(lo) <= 0x1p-40) {  // exp(apart) - 1 <= 1.72 apart
      values.error[r] = value * (kExpError + 2.0 * kUnit + 2.0 * apart) + 8.0 * kLeast;
    } else {
      values.error[r] = HUGE_VAL;
    }
  }
  return values;
}
inline Values& decay(Values& values, double gamma) { return exponential(scaled(values, -gamma)); }

// values = tanh(values): tanh hi + lo (1 - tanh^2 hi), whose next term is below lo^2.
inline Values& tangent(Values& values) {
  for (std::size_t r = 0; r < kRows; ++r) {
    const double hi = values.hi[r], lo = values.lo[r];
    const double apart = values.error[r], left = ::fabs(lo);
    const double size = ::tanh(hi), value = ::fma(lo, ::fma(-size, size, 1.0), size);
    values.lo[r] = 0.0;
    if (::fabs(hi) - 2.0 * (apart + left) >= 20.0) {  // 1 - tanh 20 < u
      values.hi[r] = hi < 0.0 ? -1.0 : 1.0;
      values.error[r] = kUnit;
    } else {
      values.hi[r] = value;
      values.error[r] =
          (::fabs(value) * (kTanhError + 2.0 * kUnit) + apart + left * (left + 20.0 * kUnit)) *
              (1.0 + 8.0 * kUnit) +
          8.0 * kLeast;
    }
  }
  return values;
}

template <class Group, class Other>
void kernel_values(const KernelForm& form, std::size_t n, Group group, Other z, Values& values) {
  with_kind(form.kind, [&](auto kind) {
    sum_terms<term_of(kind.value)>(n, group, z, values);
    kernel_value<kind.value>(values, form.gamma, form.coef0, form.degree);
  });
}

inline void add_values(const Values& values, double c, TwofoldKernelSums& sums) {
#pragma omp simd
  for (std::size_t r = 0; r < kRows; ++r) {
    auto p = two_product(c, values.hi[r]);
    p.lo = ::fma(c, values.lo[r], p.lo);
    const auto sum = add<double>({sums.hi[r], sums.lo[r]}, p);
    sums.hi[r] = sum.hi;
    sums.lo[r] = sum.lo;
    sums.size[r] += ::fabs(p.hi);
    sums.error[r] += ::fabs(c) * values.error[r];
  }
}

void add_kernel(const KernelForm& form, const TwofoldPair& pair, double c,
                TwofoldKernelSums& sums) {
  Values values;
  const auto& z = pair.z;
  const auto other = [&](std::size_t t, std::size_t) { return all(z.values[t]); };
  if (z.columns)
    kernel_values(
        form, z.count, [&](std::size_t t) { return pair.group + z.columns[t] * kRows; }, other,
        values);
  else
    kernel_values(
        form, z.count, [&](std::size_t t) { return pair.group + t * kRows; }, other, values);
  add_values(values, c, sums);
}

void add_diagonal(const KernelForm& form, const double* group, std::size_t n,
                  TwofoldKernelSums& sums) {
  Values values;
  kernel_values(
      form, n, [&](std::size_t t) { return group + t * kRows; },
      [&](std::size_t t, std::size_t r) { return load(group + t * kRows + r); }, values);
  add_values(values, 1.0, sums);
}

}  // namespace

TwofoldTable twofold_table() { return {&dot, &add_row, &add_kernel, &add_diagonal}; }

}  // namespace widemargin::WIDEMARGIN_SIMD
