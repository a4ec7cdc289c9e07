// What judges a problem of the batch engine: its gap, the intercepts, and what rounding adds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "intercept.hpp"
#include "objective.hpp"
#include "problem_data.hpp"

namespace widemargin {

// What scores in float32 are off by, as a share of |x|. Of 4,440 problems with C of 1 to 1,000 and
// gaps of 1e-3 and 1e-4, 7 were not solved with 1e-8, 2 with 2e-8; this makes scores in float64 for
// more of them, which takes usps with C = 1,000 twice as long to 1e-3.
constexpr double kNoise = 1e-8;
// The most that scores in float32 are off by, as a share of |x|: 0.1 to 0.6 of it were seen.
constexpr double kFarthest = 1e-6;
// The gap has fallen if it is less than this share of the least so far, or if the dual objective
// has risen by this share of that: where steps are slow the primal one goes up and down. (Of the
// dual 0.003 and 0.03: 1.07 and 1.17 of the time of 42 fits, benchmarks/kernel/large_c.py.)
constexpr double kProgress = 0.9, kRise = 0.01;
// The objective at zero, times this, is the least that a gap is relative to.
constexpr double kFloor = 1e-10;
// Where the optimum may be zero, gaps are relative to this share of what the certificate has them
// relative to: it counts rounding, too.
constexpr double kSure = 0.25;
// Where the optimum may be zero: without a margin so far, and at a small share of the largest
// objective there is, pair steps are given up that take it no faster than this factor at a time:
// where there is no margin they hardly move.
constexpr double kQuick = 0.7;

// Both bounds of the objective by the scores, with intercepts that suit these.
class ProblemBounds {
 public:
  ProblemBounds(ProblemData& of, const ObjectiveTable& passes)
      : of_(of), passes_(passes), may_be_zero_(of.has_mass && of.largest_q == 0) {
    const double mass = of.all.mass[static_cast<std::size_t>(of.problem)];
    const double most = *std::ranges::max_element(of.diagonal);
    scale_ = std::max(most, 0.0);
    if (may_be_zero_) largest_ = mass * mass * most;
    zero_ =
        may_be_zero_ ? kSure * largest_ : passes_.losses(of.objective(), of.C.data(), 0.0).value;
  }

  double b() const { return b_; }
  double rho() const { return rho_; }
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double losses() const { return losses_; }  // in the primal objective
  // The intercept of a line.
  double level(std::size_t line) const { return level_[line]; }
  bool are_finite() const { return std::isfinite(b_) && std::isfinite(rho_); }

  // The relative gap by the scores, with the intercept and rho that suit them, or nearly do.
  double gap(bool is_best = true) {
    const auto of = of_.objective();
    const auto [square, linear, squares] = passes_.products(of);
    auto& b = level_;
    b[0] = of_.shift * of_.total;
    losses_ = 0;
    for (std::size_t k = 0; k < of_.lines.size(); ++k) {
      Intercept intercept(passes_, of, of_.lines[k], of_.breaks);
      b[k] = intercept.find(is_best);
      losses_ += intercept.at(b[k]).value;
    }
    if (of_.lines.empty()) losses_ = passes_.losses(of, of_.C.data(), b[0]).value;
    b_ = of_.has_mass ? (of_.sums > 1 ? 0.5 * (b[0] + b[1]) : 0.0) : b[0];
    rho_ = of_.has_mass ? (of_.sums > 1 ? 0.5 * (b[1] - b[0]) : -b[0]) : 0.0;
    const double rest = 0.5 * (square + of_.shift * b_ * b_);
    primal_ = rest + losses_;
    dual_ = linear - rest - 0.5 * squares;
    if (may_be_zero_) primal_ = std::min(primal_, 0.0);  // that of no function
    return relative_gap();
  }

  // That of the last bounds.
  double relative_gap() const {
    const double size = size_of_bounds();
    return size > 0 ? (primal_ - dual_) / size : primal_ == dual_ ? 0.0 : 1.0;
  }

  // What the loss is of, by the last intercept.
  double slack(std::size_t p) const {
    if (of_.is_twofold) return std::abs(of_.target[p] - of_.f[p] - b_) - of_.q[p];
    return of_.q[p] + rho_ - of_.y[p] * (of_.f[p] + b_);
  }

  // About what kernel values in float32 may add to the relative gap: scores are off by a share of
  // |x|, and free variables have a loss where theirs are.
  double noise() const {
    const auto [square, free] = passes_.sizes(of_.objective(), of_.C.data());
    const double largest = std::sqrt(square) * scale_;
    if (of_.margin - 1 > kFarthest * largest) return 0;
    const double size = size_of_bounds();
    return size > 0 ? kNoise * largest * free / size : 0.0;
  }

  // Whether there is no margin so far, hardly any is possible, and steps were slow since the bound
  // `before`.
  bool is_hopeless(double before, double share) {
    if (!may_be_zero_ || primal_ < 0 || -dual_ > share * largest_) return false;
    if (dual_ > kQuick * before) return false;
    (void)gap();
    return primal_ == 0;
  }

  // Whether the gap has fallen, or the dual objective has risen, within so many of the steps. Above
  // the objective at zero, where an indefinite kernel can take it, it may rise without end.
  bool has_fallen(std::int64_t steps, std::size_t patience) {
    const double now = primal_ - dual_;
    if (now < kProgress * least_gap_) fallen_ = steps;
    const bool has_risen = dual_ <= zero_ && dual_ - last_dual_ > kRise * least_gap_;
    if (fallen_ == steps || has_risen) {
      least_gap_ = std::min(least_gap_, now);
      last_dual_ = dual_, since_ = steps;
    }
    return steps - since_ <= static_cast<std::int64_t>(patience);
  }
  // Whether the gap has fallen with the last of them.
  bool has_just_fallen(std::int64_t steps) const { return fallen_ == steps; }
  // From now on it is to fall below what it is.
  void count_from(std::int64_t steps) {
    least_gap_ = primal_ - dual_, last_dual_ = dual_, since_ = fallen_ = steps;
  }

 private:
  // What gaps are relative to.
  double size_of_bounds() const {
    return std::max({std::abs(primal_), std::abs(dual_), kFloor * zero_});
  }

  ProblemData& of_;
  const ObjectiveTable& passes_;
  bool may_be_zero_;    // the optimum: q is 0, and there is a rho
  double scale_ = 0;    // the largest k(x, x)
  double largest_ = 0;  // the largest |w|^2, where there is a rho
  double zero_ = 0;     // the objective at zero
  double b_ = 0, rho_ = 0, primal_ = 0, dual_ = 0, losses_ = 0;
  std::array<double, 2> level_{};  // intercepts, of each class where these have their own
  double least_gap_ = std::numeric_limits<double>::infinity(), last_dual_ = 0;
  std::int64_t since_ = 0, fallen_ = 0;
};

}  // namespace widemargin
