// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "span_steps.hpp"

#include "pair_rows.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Of the diagonal of the products of moves: moves that are nearly of one span add nothing. (1e-6
// and 1e-10: as many steps, benchmarks/core/moves.py.)
constexpr double kRidge = 1e-8;
// Variables at most that stay at their bounds, each of which takes a row of K, and another one for
// what keeps the sums; and the share of the way to the least below which that is not tried with
// fewer. (None at their bounds: 0.91 of the steps without, 16: 0.85; 48: 0.83, in as much time. No
// smaller share than all: 0.88. benchmarks/core/moves.py)
constexpr std::size_t kMostCut = 16;
constexpr double kLeastShare = 0.02;

inline Vector<double> doubles(const float* from) {
  typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
  Half v;
  std::memcpy(&v, from, sizeof(v));
  return __builtin_convertvector(v, Vector<double>);
}

inline double sum_of(Vector<double> v) {
  double sum = 0;
  for (std::size_t k = 0; k < kLanes<double>; ++k) sum += v[k];
  return sum;
}

inline double product(const double* a, const float* b, std::size_t n) {
  constexpr std::size_t lanes = kLanes<double>;
  Vector<double> even = all<double>(0), odd = even;
  for (std::size_t s = 0; s < n; s += 2 * lanes) {
    even += load(a + s) * doubles(b + s);
    odd += load(a + s + lanes) * doubles(b + s + lanes);
  }
  return sum_of(even + odd);
}

template <template <typename> class Rows>
class InSpan {
  static constexpr std::size_t kMost = Moves::kMost;

 public:
  InSpan(const SmallProblem<float, Rows>& problem, Moves& moves)
      : p_(problem),
        moves_(moves),
        n_(moves.width),
        low_(problem.lower),
        high_(problem.upper),
        slope_(problem.F) {
    if (p_.kink != nullptr) take_sides();
  }

  void run() {
    note();
    if (!find()) return;
    combine();
    for (double share = 1; share > kLeastShare && !is_over(p_.K) && !go(share);) share /= 2;
  }

 private:
  // With kinks these are bounds, and the slope is that of the side where x is.
  void take_sides() {
    double *const low = x_of(Moves::kLow), *const high = x_of(Moves::kHigh);
    float* const slope = F_of(Moves::kLow);
    for (std::size_t i = 0; i < n_; ++i) {
      const double x = p_.x[i];
      low[i] = x >= 0 ? 0 : p_.lower[i], high[i] = x <= 0 ? 0 : p_.upper[i];
      slope[i] = p_.F[i] + (x > 0 ? p_.kink[i] : x < 0 ? -p_.kink[i] : 0);
    }
    low_ = low, high_ = high, slope_ = slope;
  }

  // What was done since the last move.
  void note() {
    const std::size_t own = moves_.next;
    double* const x = x_of(own);
    float* const F = F_of(own);
    for (std::size_t i = 0; i < n_; ++i) x[i] = p_.x[i] - x_of(Moves::kBegin)[i];
    for (std::size_t i = 0; i < n_; ++i) F[i] = p_.F[i] - F_of(Moves::kBegin)[i];
    moves_.next = (own + 1) % kMost;
    if (moves_.count < kMost) ++moves_.count;
    for (std::size_t a = 0; a < moves_.count; ++a)
      moves_.products[own][a] = moves_.products[a][own] = product(x, F_of(a), n_);
  }

  // How far to go by each move, by a Cholesky factor; whether there is one.
  bool find() {
    const std::size_t count = moves_.count;
    double L[kMost][kMost], size[kMost];
    for (std::size_t a = 0; a < count; ++a) {
      if (!(moves_.products[a][a] > 0)) return false;
      size[a] = 1 / __builtin_sqrt(moves_.products[a][a]);
      by_[a] = -size[a] * product(x_of(a), slope_, n_);
    }
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        double left = moves_.products[a][b] * size[a] * size[b] + (a == b ? kRidge : 0.0);
        for (std::size_t k = 0; k < b; ++k) left -= L[a][k] * L[b][k];
        if (a == b && !(left > 0)) return false;
        L[a][b] = a == b ? __builtin_sqrt(left) : left / L[b][b];
      }
      for (std::size_t k = 0; k < a; ++k) by_[a] -= L[a][k] * by_[k];
      by_[a] /= L[a][a];
    }
    for (std::size_t a = count; a-- > 0;) {
      for (std::size_t k = a + 1; k < count; ++k) by_[a] -= L[k][a] * by_[k];
      by_[a] /= L[a][a];
    }
    for (std::size_t a = 0; a < count; ++a) by_[a] *= size[a];
    return true;
  }

  // What x and F change by then.
  void combine() {
    double* const x = x_of(Moves::kStep);
    float* const F = F_of(Moves::kStep);
    for (std::size_t s = 0; s < n_; s += kLanes<double>) {
      Vector<double> sum = all<double>(0);
      for (std::size_t a = 0; a < moves_.count; ++a) sum += by_[a] * load(x_of(a) + s);
      store(x + s, sum);
    }
    for (std::size_t s = 0; s < n_; s += kLanes<float>) {
      Vector<float> sum = all<float>(0);
      for (std::size_t a = 0; a < moves_.count; ++a)
        sum += static_cast<float>(by_[a]) * load(F_of(a) + s);
      store(F + s, sum);
    }
  }

  // Go a share of that, within bounds; whether few of these are in the way, and the objective is
  // lower there.
  bool go(double share) {
    const double* const x = x_of(Moves::kStep);
    double* const to = x_of(Moves::kTo);
    float* const F = F_of(Moves::kTo);
    std::size_t cut[kMostCut], cuts = 0;
    double off[kMostCut];
    for (std::size_t s = 0; s < n_; s += kLanes<double>) {
      const Vector<double> now = load(p_.x + s) + share * load(x + s);
      store(to + s, now);
      if (are_within(s, now)) continue;
      for (std::size_t i = s; i < s + kLanes<double>; ++i) {
        const double beyond = to[i];
        if (low_[i] <= beyond && beyond <= high_[i]) continue;
        if (cuts == kMostCut) return false;
        to[i] = beyond < low_[i] ? low_[i] : high_[i];
        cut[cuts] = i, off[cuts] = beyond - to[i], ++cuts;
      }
    }
    const Vector<float> by = all<float>(static_cast<float>(share));
    for (std::size_t s = 0; s < n_; s += kLanes<float>)
      store(F + s, by * load(F_of(Moves::kStep) + s));
    for (std::size_t k = 0; k < cuts && !is_over(p_.K); ++k) {
      add_row(cut[k], -off[k]);
      if (p_.sums > 0 && !pass_on(cut[k], off[k])) return false;
    }
    if (is_over(p_.K) || !(objective_change(to, F) < 0)) return false;
    for (std::size_t i = 0; i < n_; ++i) p_.x[i] = to[i];
    for (std::size_t i = 0; i < n_; ++i) p_.F[i] += F[i];
    return true;
  }

  // Whether a vector of x from s on is within bounds.
  bool are_within(std::size_t s, Vector<double> x) const {
    const IntVector<double> out = (x < load(low_ + s)) | (x > load(high_ + s));
    std::int64_t any = 0;
    for (std::size_t k = 0; k < kLanes<double>; ++k) any |= out[k];
    return any == 0;
  }

  // What x_i cannot take, a free variable takes: of those with room for it the one that is most
  // like it, so that scores change least. Whether there is one.
  bool pass_on(std::size_t i, double by) {
    double* const to = x_of(Moves::kTo);
    std::size_t best = n_;
    float least = 0;
    with_parts(p_.K, i, i, [&](auto a, auto, std::size_t s, std::size_t end, std::size_t) {
      for (std::size_t j = s; j < end; ++j) {
        if (!(low_[j] < to[j] && to[j] < high_[j]) || group(j) != group(i)) continue;
        const float apart = p_.diagonal[j] - 2 * one(a, j - s);
        if (best < n_ && !(apart < least)) continue;
        if (low_[j] <= to[j] + by && to[j] + by <= high_[j]) best = j, least = apart;
      }
    });
    if (best == n_) return false;
    to[best] += by;
    add_row(best, by);
    return true;
  }

  // To F, what x_i does that moves.
  void add_row(std::size_t i, double by) {
    float* const F = F_of(Moves::kTo);
    const float step = static_cast<float>(by);
    with_parts(p_.K, i, i, [&](auto a, auto, std::size_t s, std::size_t end, std::size_t) {
      for (; s < end; s += kLanes<float>, a += kLanes<float>)
        store(F + s, load(F + s) + (in_units(a) + p_.shift) * step);
    });
    F[i] += p_.ridge[i] * step;
  }

  // What the objective changes by where F changes by `more`.
  double objective_change(const double* to, const float* more) const {
    Vector<double> sums = all<double>(0);
    for (std::size_t s = 0; s < n_; s += kLanes<double>)
      sums += (load(to + s) - load(p_.x + s)) * (doubles(slope_ + s) + 0.5 * doubles(more + s));
    return sum_of(sums);
  }

  int group(std::size_t i) const { return p_.sums > 1 && !(p_.upper[i] > 0) ? 1 : 0; }

  double* x_of(std::size_t move) const { return moves_.x + move * n_; }
  float* F_of(std::size_t move) const { return moves_.F + move * n_; }

  const SmallProblem<float, Rows>& p_;
  Moves& moves_;
  const std::size_t n_;
  const double *low_, *high_;
  const float* slope_;
  double by_[kMost];
};

template <template <typename> class Rows>
void step(const SmallProblem<float, Rows>& problem, Moves& moves) {
  InSpan<Rows>(problem, moves).run();
}

}  // namespace

SpanTable span_table() { return {&step<MadeRows>, &step<CodedRows>}; }

}  // namespace widemargin::WIDEMARGIN_SIMD
