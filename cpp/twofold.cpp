// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library. Without contraction: a product that were fused with the sum
// behind it would no longer have the error that is computed for it.
#include "twofold.hpp"

#include <math.h>

#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

constexpr std::size_t kRows = kTwofoldRows;
// What `exponential` is off by at most, relative to the value, and tanh of the C library: 4 units
// in the last place, where glibc states 2.
constexpr double kExpError = 0x1p-88, kTanhError = 8.0 * kUnit;

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

template <class T>
inline Twofold<T> product(Twofold<T> a, Twofold<T> b) {
  const auto p = two_product(a.hi, b.hi);
  return two_sum(p.hi, fused(a.hi, b.lo, fused(a.lo, b.hi, p.lo)));
}

// 2^k, of integers k from -1022 to 1023: the last bits of the sum are those of the exponent.
inline Lane power_of_two(Lane k) {
  return (Lane)((IntVector<double>)(k + (0x1.8p52 + 1023.0)) << 52);
}

inline Twofold<Lane> twofold(double hi, double lo = 0.0) { return {all(hi), all(lo)}; }

// exp x = 2^k (1 + q)^64, where 64 r = x - k ln 2 is at most ln 2 / 2 (1 + 2^-8) and q = exp r - 1.
// ln 2 is cut in three, so that k times the first part is exact, and the rest is off by 2^-96 with
// what x.lo rounds. Of q the first four terms are twofold, and the others, r^4 / 120 of it, double:
// 2^-90; the series ends with r^10 / 10!, 2^-100 of it. As q <= 1.01 |r| that is 2^-97 of 1 + q,
// and 64 times as much in the end: 2^-91. Each product and sum adds 16u^2 at the most.
inline Twofold<Lane> exponential(Twofold<Lane> x) {
  const Lane k = (x.hi * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52;
  auto r = add(two_sum<Lane>(x.hi, -k * 0x1.62e42fefa38p-1), {x.lo, all(0.0)});
  const auto part = two_product<Lane>(-k, all(0x1.ef35793c7673p-45));
  r = add(r, {part.hi, fused(-k, all(0x1.f97b57a079a19p-103), part.lo)});
  r = {0x1p-6 * r.hi, 0x1p-6 * r.lo};
  constexpr double factorials[] = {362880.0, 40320.0, 5040.0, 720.0, 120.0};
  Lane rest = all(1.0 / 3628800);
  for (const double factorial : factorials) rest = fused(rest, r.hi, all(1.0 / factorial));
  const auto last = two_product(r.hi, rest);
  auto q = add(twofold(0x1.5555555555555p-5, 0x1.5555555555555p-59), last);
  q = add(twofold(0x1.5555555555555p-3, 0x1.5555555555555p-57), product(r, q));
  q = add(twofold(0.5), product(r, q));
  q = product(r, add(twofold(1.0), product(r, q)));
  for (int doubling = 0; doubling < 6; ++doubling) q = add({2.0 * q.hi, 2.0 * q.lo}, product(q, q));
  q = add(twofold(1.0), q);
  const Lane half = (0.5 * k + 0x1.8p52) - 0x1.8p52;  // one power alone may be no double
  const Lane first = power_of_two(half), second = power_of_two(k - half);
  return {q.hi * first * second, q.lo * first * second};
}

// values = exp(values)
inline Values& exponential(Values& values) {
  Values of = values;
  for (std::size_t r = 0; r < kRows; r += kLanes<double>) {
    const auto value = exponential({load(of.hi + r), load(of.lo + r)});
    store(values.hi + r, value.hi);
    store(values.lo + r, value.lo);
  }
#pragma omp simd
  for (std::size_t r = 0; r < kRows; ++r) {
    const double hi = of.hi[r], lo = of.lo[r], apart = of.error[r], value = values.hi[r];
    const bool is_none = hi + (apart + ::fabs(lo)) * (1.0 + 4.0 * kUnit) < -746.0;
    const bool is_near = apart <= 1.0 && ::fabs(lo) <= 0x1p-40;  // exp(apart) - 1 <= 1.72 apart
    // Of equal rows it is 1.
    const double own = hi == 0.0 && lo == 0.0 ? 0.0 : value * kExpError + 8.0 * kLeast;
    const double error = is_near ? 2.0 * value * apart + own : HUGE_VAL;
    if (is_none) values.hi[r] = values.lo[r] = 0.0;
    values.error[r] = is_none ? kLeast : error;
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
