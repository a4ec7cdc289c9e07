// Newton's steps over the free variables of a small problem in float64.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "factor_steps.hpp"
#include "pair_steps.hpp"

namespace widemargin {

// The least of the objective where all variables at a bound stay there: pair steps find soon which
// these are, and how large the others are late.
//
// Of the free variables those are a basis whose matrix has a Cholesky factor R, which is kept from
// one time to the next: variables enter and leave it one by one. What steps keep of sums that are
// given may count in this matrix; so a linear kernel of n columns has bases of n + 1 variables.
// A variable whose column is one of sums of columns of the basis goes, with these, the way along
// which the objective is linear, up to rounding, until one of them meets a bound.
class ExactFace {
 public:
  // The most variables of a basis: a factor of more would take as long as many pair steps.
  static constexpr std::size_t kMostBasis = 1024;

  explicit ExactFace(const FactorTable& code) : code_(code) {}

  // Go there, or on the way as far as the bounds allow, and on without the variable that has met
  // its own. No variable enters the basis after so many multiplications in all.
  void go(const SmallProblem<double>& p, double most) {
    if (place_.empty()) begin(p);
    more_ = {};
    for (std::size_t a = basis_.size(); a-- > 0;)
      if (!is_free(p, basis_[a])) remove(a);
    for (std::size_t i = 0; i < p.q && basis_.size() < kMostBasis && work_ < most; ++i)
      if (place_[i] == kNone && is_free(p, i)) add(p, i);
    if (!basis_.empty()) go_to_least(p);
    add_scores(p);
  }

  // Multiplications by factors so far.
  double work() const { return work_; }

 private:
  typedef std::array<double, 2> Pair;  // one number for each sum that is given
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kLeastRoom = 16;
  // A pivot of a smaller share of the diagonal, or of what sums have added to it, is rounding, or
  // near it. (1e-6: NuSVC with small gammas, whose K is nearly constant, is not solved; 1e-10: as
  // long.) The same of the determinant of two sums.
  static constexpr double kPivot = 1e-8, kRounding = 1e-13, kApart = 1e-6;

  void begin(const SmallProblem<double>& p) {
    place_.assign(p.q, kNone), moved_.assign(p.q, 0.0);
    for (std::size_t i = 0; p.sums > 0 && i < p.q; ++i)
      of_sums_ = std::max(of_sums_, std::abs(p.diagonal[i]));
  }

  static bool is_free(const SmallProblem<double>& p, std::size_t i) {
    return p.lower[i] < p.x[i] && p.x[i] < p.upper[i] && !(p.kink && p.x[i] == 0);
  }
  static std::size_t sum_of(const SmallProblem<double>& p, std::size_t i) {
    return p.sums > 1 && !(p.upper[i] > 0) ? 1 : 0;
  }
  static double slope(const SmallProblem<double>& p, std::size_t i) {
    return p.kink ? p.F[i] + (p.x[i] > 0 ? p.kink[i] : -p.kink[i]) : p.F[i];
  }
  // The same of a variable that is not in the basis, after what has moved.
  double slope_now(const SmallProblem<double>& p, std::size_t i) const {
    const double* row = p.K.K + i * p.K.width;
    double sum = slope(p, i);
    for (const std::size_t j : changed_) sum += moved_[j] * (row[j] + p.shift);
    return sum;
  }
  // Where x_i ends if it goes this way: at its bound, or its kink.
  static double end(const SmallProblem<double>& p, std::size_t i, double way) {
    const double bound = way > 0 ? p.upper[i] : p.lower[i];
    return p.kink && (way > 0) != (p.x[i] > 0) ? 0 : bound;
  }
  // An entry of the matrix.
  double entry(const SmallProblem<double>& p, std::size_t i, std::size_t j) const {
    const double of_sums = sum_of(p, i) == sum_of(p, j) ? of_sums_ : 0.0;
    return (i == j ? p.diagonal[i] : p.K.K[i * p.K.width + j] + p.shift) + of_sums;
  }

  // Take x_i into the basis; or along the way that changes no score of it, until it meets a bound,
  // or another one, which leaves, does.
  void add(const SmallProblem<double>& p, std::size_t i) {
    for (;;) {
      const std::size_t k = basis_.size();
      reserve(k + 1, std::min(p.width, kMostBasis));
      for (std::size_t a = 0; a < k; ++a) way_[a] = entry(p, i, basis_[a]);
      code_.forward(R_.data(), stride_, k, way_.data(), 0);
      work_ += square(k);  // with what follows
      const double own = entry(p, i, i);
      double left = own;
      for (std::size_t a = 0; a < k; ++a) left -= way_[a] * way_[a];
      if (left > kPivot * p.diagonal[i] && left > kRounding * own) {
        for (std::size_t a = 0; a < k; ++a) R_[a * stride_ + k] = way_[a];
        R_[k * stride_ + k] = std::sqrt(left);
        place_[i] = k, basis_.push_back(i), has_ones_ = false;
        return;
      }
      code_.backward(R_.data(), stride_, k, way_.data());
      for (std::size_t a = 0; a < k; ++a) way_[a] = -way_[a];
      way_[k] = 1;
      find_ones(p);
      basis_.push_back(i);
      const std::size_t meets = go_along(p, left);
      basis_.pop_back();
      if (meets >= k) return;
      remove(meets);
    }
  }

  // The way of the basis and one more, whose curvature is `left` or rounding: which of them meets
  // a bound, or how many there are.
  std::size_t go_along(const SmallProblem<double>& p, double left) {
    const std::size_t last = basis_.size() - 1;
    Pair sum{}, by{};
    sum[sum_of(p, basis_[last])] = 1;
    if (!keep_sums(p, last, sum, by)) return last;
    double curvature = std::max(left, 0.0), first = 0;
    for (std::size_t g = 0; g < by.size(); ++g) curvature += by[g] * sum_of_way_[g];
    for (std::size_t a = 0; a < last; ++a)
      first += way_[a] * (slope(p, basis_[a]) + more_[sum_of(p, basis_[a])]);
    first += slope_now(p, basis_[last]);
    const double t = curvature > 0 ? std::abs(first) / curvature : kInfinity;
    const double way = first > 0 ? -1 : 1;
    for (std::size_t a = 0; a <= last; ++a) way_[a] *= way;
    const auto [far, meets] = room(p, last + 1, t);
    if (!std::isfinite(far)) return last;
    move(p, last + 1, far, meets);
    for (std::size_t g = 0; g < by.size(); ++g) more_[g] -= way * far * by[g];
    return meets;
  }

  // Newton's steps of the basis.
  void go_to_least(const SmallProblem<double>& p) {
    const std::size_t begin = basis_.size();
    newton_.resize(begin);
    for (std::size_t a = 0; a < begin; ++a) newton_[a] = -slope(p, basis_[a]);
    solve(newton_);
    find_ones(p);
    while (!basis_.empty()) {
      const std::size_t k = basis_.size();
      Pair by{};
      std::copy(newton_.begin(), newton_.end(), way_.begin());
      if (!keep_sums(p, k, {}, by)) break;
      const auto [t, meets] = room(p, k, 1);
      move(p, k, t, meets);
      if (meets == k) break;
      // What is left of the step, and of it without the variable that has met its bound.
      for (std::size_t a = 0; a < k; ++a) {
        newton_[a] *= 1 - t;
        for (std::size_t g = 0; g < sums(p); ++g) newton_[a] += t * by[g] * ones_[g][a];
      }
      column_.assign(k, 0.0);
      column_[meets] = 1;
      solve(column_, meets);
      leave_out(newton_, meets);
      for (std::size_t g = 0; g < sums(p); ++g) leave_out(ones_[g], meets);
      remove(meets);
      has_ones_ = true;
    }
  }

  // The solution of the matrix without a row and column, whose column of the inverse is known.
  void leave_out(std::vector<double>& solution, std::size_t a) const {
    const double share = solution[a] / column_[a];
    for (std::size_t b = 0; b < solution.size(); ++b) solution[b] -= share * column_[b];
    solution.erase(solution.begin() + static_cast<std::ptrdiff_t>(a));
  }

  // How far the first k of them can go that way, up to t; and which one meets a bound.
  std::pair<double, std::size_t> room(const SmallProblem<double>& p, std::size_t k,
                                      double t) const {
    std::size_t meets = k;
    for (std::size_t a = 0; a < k; ++a) {
      const double most = std::abs(end(p, basis_[a], way_[a]) - p.x[basis_[a]]);
      if (std::abs(t * way_[a]) > most) t = most / std::abs(way_[a]), meets = a;
    }
    return {t, meets};
  }
  // The variable that meets its bound is there to the last bit, and others are not beyond.
  void move(const SmallProblem<double>& p, std::size_t k, double t, std::size_t meets) {
    for (std::size_t a = 0; a < k; ++a) {
      const std::size_t i = basis_[a];
      const double by = t * way_[a];
      p.x[i] = a == meets ? end(p, i, by) : std::clamp(p.x[i] + by, p.lower[i], p.upper[i]);
      if (moved_[i] == 0 && by != 0) changed_.push_back(i);
      moved_[i] += by;
    }
  }
  // Of what has moved.
  void add_scores(const SmallProblem<double>& p) {
    for (const std::size_t i : changed_) {
      const double by = moved_[i], *row = p.K.K + i * p.K.width;
      for (std::size_t s = 0; s < p.q; ++s) p.F[s] += by * (row[s] + p.shift);
      p.F[i] += by * p.ridge[i];
      moved_[i] = 0;
    }
    changed_.clear();
  }

  static double square(std::size_t k) { return static_cast<double>(k) * static_cast<double>(k); }
  static std::size_t sums(const SmallProblem<double>& p) {
    return static_cast<std::size_t>(p.sums);
  }
  // What the inverse makes of each sum that is given.
  void find_ones(const SmallProblem<double>& p) {
    if (has_ones_) return;
    has_ones_ = true;
    for (std::size_t g = 0; g < sums(p); ++g) {
      ones_[g].resize(basis_.size());
      for (std::size_t a = 0; a < basis_.size(); ++a) ones_[g][a] = sum_of(p, basis_[a]) == g;
      solve(ones_[g]);
    }
  }
  // Leave so much of these out of the way of the k that sums stay, which have `more` beside it:
  // twice, as few digits may be left the first time. Whether that can be done.
  bool keep_sums(const SmallProblem<double>& p, std::size_t k, const Pair& more, Pair& by) {
    sum_of_way_ = {};
    if (p.sums == 0) return true;
    std::array<Pair, 2> of{};
    for (std::size_t a = 0; a < k; ++a)
      for (std::size_t h = 0; h < sums(p); ++h) of[sum_of(p, basis_[a])][h] += ones_[h][a];
    std::array<bool, 2> has_none{};
    for (std::size_t g = 0; g < 2; ++g)
      if (has_none[g] = !(of[g][g] > 0); has_none[g]) of[g][g] = 1;
    const double det = of[0][0] * of[1][1] - of[0][1] * of[1][0];
    if (!(det > kApart * of[0][0] * of[1][1])) return false;
    for (const bool again : {false, true}) {
      Pair sum = more;
      for (std::size_t a = 0; a < k; ++a) sum[sum_of(p, basis_[a])] += way_[a];
      if (!again) sum_of_way_ = sum;
      for (std::size_t g = 0; g < 2; ++g)
        if (has_none[g] && sum[g] != 0) return false;
      const Pair out{(of[1][1] * sum[0] - of[0][1] * sum[1]) / det,
                     (of[0][0] * sum[1] - of[1][0] * sum[0]) / det};
      for (std::size_t g = 0; g < sums(p); ++g) {
        by[g] += out[g];
        for (std::size_t a = 0; a < k; ++a) way_[a] -= out[g] * ones_[g][a];
      }
    }
    return std::isfinite(by[0]) && std::isfinite(by[1]);
  }

  void solve(std::vector<double>& b, std::size_t first = 0) {
    code_.forward(R_.data(), stride_, basis_.size(), b.data(), first);
    code_.backward(R_.data(), stride_, basis_.size(), b.data());
    work_ += square(basis_.size());
  }
  void remove(std::size_t a) {
    code_.remove(R_.data(), stride_, basis_.size(), a);
    work_ += 2 * square(basis_.size() - a);
    place_[basis_[a]] = kNone, has_ones_ = false;
    basis_.erase(basis_.begin() + static_cast<std::ptrdiff_t>(a));
    for (std::size_t b = a; b < basis_.size(); ++b) place_[basis_[b]] = b;
  }
  // Room for a basis of k variables, of `most` at most.
  void reserve(std::size_t k, std::size_t most) {
    if (k <= stride_) return;
    const std::size_t wider = std::min(std::max(2 * stride_, kLeastRoom), most);
    std::vector<double> R(wider * wider);
    for (std::size_t a = 0; a < basis_.size(); ++a)
      std::copy_n(&R_[a * stride_], basis_.size(), &R[a * wider]);
    R_.swap(R), stride_ = wider;
    way_.resize(wider);
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const FactorTable& code_;
  std::vector<std::size_t> basis_, changed_, place_;  // the place of each variable in the basis
  std::vector<double> R_, newton_, way_, column_, moved_;
  std::array<std::vector<double>, 2> ones_;
  Pair sum_of_way_{};   // before it was made zero
  Pair more_{};         // what the slopes of the basis have more, by what has moved
  double of_sums_ = 0;  // what each sum adds to the matrix
  double work_ = 0;
  std::size_t stride_ = 0;
  bool has_ones_ = false;  // of the basis as it is
};

}  // namespace widemargin
