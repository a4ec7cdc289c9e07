// Compiled once for each instruction set: see row_steps.cpp for what this file must not use.
#include "coordinate_descent.hpp"

#include <limits>

#ifdef _MSC_VER
#include <intrin.h>
#define WIDEMARGIN_PREFETCH(p) _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0)
#else
#define WIDEMARGIN_PREFETCH(p) __builtin_prefetch(p)
#endif

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Sums of dense rows are kept in this many lanes whatever the vector width, so that instruction
// sets agree up to fused multiply-add: four vectors of AVX-512, enough to hide their latency.
constexpr std::size_t kLanes = 32, kFewLanes = 8;
// Rows lie in random order: what one needs is asked for so many rows before its turn, first its
// variables and where it lies, then its entries, at most this many bytes of them.
constexpr std::int64_t kFar = 8, kNear = 4;
constexpr std::size_t kCacheLine = 64, kPrefetched = 1024;
// Projected gradients below this are rounding. (With 1e-12 the gap ends at 1e-12 sum C.)
constexpr double kStill = 1e-15;
// A round ends where the gap has fallen to these shares of what it was, or of what is asked for.
// (a9a, C = 0.01, to 1e-8, with shares of what it was of 0.3, 0.1, 0.03, 0.01: 29, 25, 23, 21 ms;
// with 0.003 22, but C = 0.1 264 instead of 137. Shares of what is asked for from 0.1 to 0.5:
// alike.)
constexpr double kOfRound = 0.01, kOfGoal = 0.3;
// The thresholds in the first epoch of a round are this many times wider than the last ones
// (ijcnn1, C = 0.01, to 1e-8: 24 ms, without any 28; 30 is as good).
constexpr double kAllRows = 100.0;
// The next epoch is not to find less than this share of a gap: the fall of the first ones is that
// from zero. (a9a, ijcnn1, w8a, C = 0.01: gaps 0.2 to 0.6 of what the second and third have found,
// after falls of 0.02 to 0.16. A wasted certificate costs less than an epoch too many.)
constexpr double kLeastFall = 0.1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ------------------------------------------------------------------------------------- rows

template <typename T>
inline void prefetch(const T* first, std::size_t count) {
  const char* p = reinterpret_cast<const char*>(first);
  const std::size_t bytes = count * sizeof(T);
  for (std::size_t b = 0; b < bytes && b < kPrefetched; b += kCacheLine) WIDEMARGIN_PREFETCH(p + b);
}

template <typename Real>
inline void announce(const DenseRows<Real>&, std::int64_t) {}

template <typename Real>
inline void fetch(const DenseRows<Real>& X, std::int64_t i) {
  prefetch(X.data + static_cast<std::size_t>(i) * X.n, X.n);
}

// Sum of kCount lanes in a fixed order, by halves.
template <std::size_t kCount>
inline double total(const double* lanes) {
  if constexpr (kCount == 1) {
    return lanes[0];
  } else {
    double half[kCount / 2];
#pragma omp simd
    for (std::size_t j = 0; j < kCount / 2; ++j) half[j] = lanes[j] + lanes[j + kCount / 2];
    return total<kCount / 2>(half);
  }
}

// lanes += x v, in kCount lanes; as many of the n entries from j on as fill all lanes.
template <std::size_t kCount, typename Real, typename Other>
inline std::size_t multiply(const Real* x, const Other* v, std::size_t j, std::size_t n,
                            double* lanes) {
  for (; j + kCount <= n; j += kCount)
#pragma omp simd
    for (std::size_t lane = 0; lane < kCount; ++lane)
      lanes[lane] += static_cast<double>(x[j + lane]) * static_cast<double>(v[j + lane]);
  return j;
}

// x'v of n entries
template <typename Real, typename Other>
inline double product(const Real* x, const Other* v, std::size_t n) {
  double many[kLanes] = {}, few[kFewLanes] = {}, rest = 0.0;
  std::size_t j = multiply<kLanes>(x, v, 0, n, many);
  j = multiply<kFewLanes>(x, v, j, n, few);
  for (; j < n; ++j) rest += static_cast<double>(x[j]) * static_cast<double>(v[j]);
  return total<kLanes>(many) + (total<kFewLanes>(few) + rest);
}

// x_i'v
template <typename Real>
inline double dot(const DenseRows<Real>& X, std::int64_t i, const double* v) {
  return product(X.data + static_cast<std::size_t>(i) * X.n, v, X.n);
}

// |x_i|^2
template <typename Real>
inline double square(const DenseRows<Real>& X, std::int64_t i) {
  const Real* x = X.data + static_cast<std::size_t>(i) * X.n;
  return product(x, x, X.n);
}

// v += t x_i
template <typename Real>
inline void add(const DenseRows<Real>& X, std::int64_t i, double t, double* v) {
  const Real* x = X.data + static_cast<std::size_t>(i) * X.n;
#pragma omp simd
  for (std::size_t j = 0; j < X.n; ++j) v[j] += t * static_cast<double>(x[j]);
}

template <typename Real, typename Index>
inline void announce(const CsrRows<Real, Index>& X, std::int64_t i) {
  WIDEMARGIN_PREFETCH(X.indptr + i);
}

template <typename Real, typename Index>
inline void fetch(const CsrRows<Real, Index>& X, std::int64_t i) {
  const auto begin = static_cast<std::size_t>(X.indptr[i]);
  const auto count = static_cast<std::size_t>(X.indptr[i + 1]) - begin;
  prefetch(X.indices + begin, count);
  prefetch(X.data + begin, count);
}

template <typename Real, typename Index>
inline double dot(const CsrRows<Real, Index>& X, std::int64_t i, const double* v) {
  const Real* x = X.data + X.indptr[i];
  const Index* column = X.indices + X.indptr[i];
  const Index count = X.indptr[i + 1] - X.indptr[i];
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  Index p = 0;
  for (; p + 4 <= count; p += 4) {
    a += static_cast<double>(x[p]) * v[column[p]];
    b += static_cast<double>(x[p + 1]) * v[column[p + 1]];
    c += static_cast<double>(x[p + 2]) * v[column[p + 2]];
    d += static_cast<double>(x[p + 3]) * v[column[p + 3]];
  }
  if (p + 2 <= count) {
    a += static_cast<double>(x[p]) * v[column[p]];
    b += static_cast<double>(x[p + 1]) * v[column[p + 1]];
    p += 2;
  }
  if (p < count) c += static_cast<double>(x[p]) * v[column[p]];
  return (a + b) + (c + d);
}

template <typename Real, typename Index>
inline double square(const CsrRows<Real, Index>& X, std::int64_t i) {
  const Real* x = X.data + X.indptr[i];
  return product(x, x, static_cast<std::size_t>(X.indptr[i + 1] - X.indptr[i]));
}

template <typename Real, typename Index>
inline void add(const CsrRows<Real, Index>& X, std::int64_t i, double t, double* v) {
  const Real* x = X.data + X.indptr[i];
  const Index* column = X.indices + X.indptr[i];
  const Index count = X.indptr[i + 1] - X.indptr[i];
  for (Index p = 0; p < count; ++p) v[column[p]] += t * static_cast<double>(x[p]);
}

// ------------------------------------------------------------------------------------ order

// splitmix64 (Steele, Lea, Flood 2014).
inline std::uint64_t next(std::uint64_t& state) {
  std::uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A number in 0 .. count - 1, as good as uniform.
inline std::int64_t draw(std::uint64_t& state, std::int64_t count) {
  const std::uint64_t x = next(state), bound = static_cast<std::uint64_t>(count);
  if (bound >> 32) return static_cast<std::int64_t>(x % bound);
  return static_cast<std::int64_t>(((x >> 32) * bound) >> 32);  // no division
}

inline void swap(std::int64_t& a, std::int64_t& b) {
  const std::int64_t other = a;
  a = b;
  b = other;
}

// Settle whose turn comes, up to kFar rows ahead of the next visit, and ask for their data. The
// same orders whatever the budgets: a row is settled when the one kFar before it is visited.
template <typename Rows, typename Row>
inline void look_ahead(const Rows& X, const Variables<Row>& z, DescentState& s) {
  const std::int64_t want = s.position + kFar < s.size ? s.position + kFar : s.size;
  for (; s.shuffled < want; ++s.shuffled) {
    swap(z.order[s.shuffled], z.order[s.shuffled + draw(s.random, s.size - s.shuffled)]);
    const std::int64_t i = z.order[s.shuffled];
    WIDEMARGIN_PREFETCH(z.rows + i);
    announce(X, i);
  }
  if (s.position + kNear < s.size) fetch(X, z.order[s.position + kNear]);
}

// ---------------------------------------------------------------------------------- descent

// What a row adds to P - D, by the gradient G of its alpha.
inline double gap_of(const Coordinate& row, double G) {
  if (row.diagonal == 0.0) return G * (G > 0.0 ? row.alpha : row.alpha - row.upper);
  const double shrunk = row.diagonal * row.alpha;
  return shrunk > G ? 0.5 * G * G / row.diagonal : row.alpha * (G - 0.5 * shrunk);
}

// x_i'v, with the intercept.
template <typename Rows, typename Row>
inline double score(const Rows& X, const Variables<Row>& z, std::int64_t i) {
  const double f = dot(X, i, z.v);
  return z.intercept ? f + z.v[X.n] : f;
}

// A step of the signed dual variable.
template <typename Rows, typename Row>
inline void move(const Rows& X, const Variables<Row>& z, const DescentState& s, std::int64_t i,
                 double t) {
  add(X, i, t, z.v);
  if (z.intercept) z.v[X.n] += s.weight * t;
}

// Find q_i where row i is visited for the first time, while its entries are at hand.
template <typename Rows, typename Row>
inline void measure(const Rows& X, const DescentState& s, std::int64_t i, Row& row) {
  if (s.visits < s.measured) row.step /= square(X, i) + s.weight + row.diagonal;
}

// Minimise over alpha_i. False: row i stays at its bound and is left out.
template <typename Rows>
inline bool visit(const Rows& X, const Variables<Coordinate>& z, DescentState& s, std::int64_t i) {
  Coordinate& row = z.rows[i];
  const double label = row.step > 0.0 ? 1.0 : -1.0, before = row.alpha;
  const double f = score(X, z, i);
  measure(X, s, i, row);
  const double G = label * f - 1.0 + row.diagonal * before;
  double projected = G;
  if (before == 0.0) {
    if (G > s.upper) return false;
    projected = G < 0.0 ? G : 0.0;
  } else if (before == row.upper) {
    if (G < s.lower) return false;
    projected = G > 0.0 ? G : 0.0;
  }
  s.sum += gap_of(row, G);
  s.largest = projected > s.largest ? projected : s.largest;
  s.smallest = projected < s.smallest ? projected : s.smallest;
  if (projected > kStill || projected < -kStill) {
    const double free = before - label * row.step * G;
    row.alpha = free < 0.0 ? 0.0 : (free > row.upper ? row.upper : free);
    move(X, z, s, i, label * (row.alpha - before));
  }
  return true;
}

inline double absolute(double x) { return x < 0.0 ? -x : x; }

// What a sample adds to P - D, by how far its target is above its prediction.
inline double gap_of(const TubeCoordinate& row, double apart) {
  const double size = absolute(row.alpha);
  const double way = row.alpha < 0.0 || (size == 0.0 && apart < 0.0) ? -apart : apart;
  const double shrunk = row.diagonal * size, G = row.kink - way + shrunk;
  const double dual = size * (G - 0.5 * shrunk);  // what it adds without a loss
  if (way > row.kink)
    return row.diagonal > 0.0 ? 0.5 * G * G / row.diagonal : G * (size - row.upper);
  if (way >= -row.kink) return dual;
  const double beyond = -way - row.kink;
  return dual + (row.diagonal > 0.0 ? 0.5 * beyond * beyond / row.diagonal : row.upper * beyond);
}

// The same for two rows at once: LIBLINEAR's method for regression (Ho, Lin 2012).
template <typename Rows>
inline bool visit(const Rows& X, const Variables<TubeCoordinate>& z, DescentState& s,
                  std::int64_t i) {
  TubeCoordinate& row = z.rows[i];
  const double before = row.alpha, apart = row.target - score(X, z, i);
  measure(X, s, i, row);
  const double G = row.diagonal * before - apart, rise = G + row.kink, fall = G - row.kink;
  double violation = 0.0;
  if (before == 0.0) {
    if (rise > s.upper && fall < s.lower) return false;
    violation = rise < 0.0 ? -rise : fall > 0.0 ? fall : 0.0;
  } else if (before == row.upper) {
    if (rise < s.lower) return false;
    violation = rise > 0.0 ? rise : 0.0;
  } else if (before == -row.upper) {
    if (fall > s.upper) return false;
    violation = fall < 0.0 ? -fall : 0.0;
  } else {
    violation = absolute(before > 0.0 ? rise : fall);
  }
  s.sum += gap_of(row, apart);
  s.largest = violation > s.largest ? violation : s.largest;
  s.smallest = -s.largest;
  if (violation > kStill) {
    const double up = before - rise * row.step, down = before - fall * row.step;
    const double free = up > 0.0 ? up : (down < 0.0 ? down : 0.0);
    row.alpha = free > row.upper ? row.upper : (free < -row.upper ? -row.upper : free);
    move(X, z, s, i, row.alpha - before);
  }
  return true;
}

// Begin an epoch over the first `size` rows of the order.
inline void begin_epoch(DescentState& s, std::int64_t size) {
  s.position = s.kept = s.shuffled = 0;
  s.size = size;
  s.sum = 0.0;
  s.largest = -kInfinity;
  s.smallest = kInfinity;
}

// A round begins with all rows, and ends where the gap of those that stay has fallen far enough.
inline void end_epoch(DescentState& s, std::int64_t m, bool shrinking) {
  if (s.size == m) s.first = s.sum;
  const double least = kOfGoal * s.goal, target = kOfRound * s.first;
  const bool ended = s.sum <= (target > least ? target : least) || s.kept == 0;
  const double factor = ended ? kAllRows : 1.0;
  s.upper = shrinking && s.largest > 0.0 ? factor * s.largest : kInfinity;
  s.lower = shrinking && s.smallest < 0.0 ? factor * s.smallest : -kInfinity;
  if (s.gap < kInfinity) {
    const double fall = s.sum < s.gap ? s.sum / s.gap : 1.0;
    s.fall = fall > kLeastFall ? fall : kLeastFall;
  }
  s.gap = s.sum;
  s.active = s.kept;
  ++s.epoch;
  begin_epoch(s, ended ? m : s.kept);
}

}  // namespace

template <typename Rows, typename Row>
bool descend(const Rows& X, const Variables<Row>& z, DescentState& state, std::int64_t budget,
             std::int64_t mark, bool shrinking) {
  DescentState s = state;  // a copy that the compiler knows nobody else writes to
  const std::int64_t stop = s.visits + budget;
  bool due = false;
  while (!due && s.visits < stop) {
    for (; s.position < s.size && s.visits < stop; ++s.position, ++s.visits) {
      look_ahead(X, z, s);
      if (visit(X, z, s, z.order[s.position])) swap(z.order[s.kept++], z.order[s.position]);
    }
    if (s.position == s.size) {
      end_epoch(s, z.m, shrinking);
      due = s.gap * s.fall <= s.goal || s.visits >= mark;
    }
  }
  state = s;
  return due;
}

#define WIDEMARGIN_DESCEND_OVER(Row, ...)                                            \
  template bool descend<__VA_ARGS__, Row>(const __VA_ARGS__&, const Variables<Row>&, \
                                          DescentState&, std::int64_t, std::int64_t, bool);
#define WIDEMARGIN_DESCEND(...)                    \
  WIDEMARGIN_DESCEND_OVER(Coordinate, __VA_ARGS__) \
  WIDEMARGIN_DESCEND_OVER(TubeCoordinate, __VA_ARGS__)
WIDEMARGIN_DESCEND(DenseRows<double>)
WIDEMARGIN_DESCEND(DenseRows<float>)
WIDEMARGIN_DESCEND(DenseRows<std::int16_t>)
WIDEMARGIN_DESCEND(DenseRows<std::uint8_t>)
WIDEMARGIN_DESCEND(CsrRows<double, std::int32_t>)
WIDEMARGIN_DESCEND(CsrRows<double, std::int64_t>)
WIDEMARGIN_DESCEND(CsrRows<float, std::int32_t>)
WIDEMARGIN_DESCEND(CsrRows<float, std::int64_t>)

}  // namespace widemargin::WIDEMARGIN_SIMD
