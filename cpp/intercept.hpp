// The intercept that is best for the scores of a problem of the batch engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "objective.hpp"

namespace widemargin {

// What is least in an intercept: the sum of C L(q - y (f + b)), and b times a pull.
struct Line {
  const double* C;
  double pull;
};

class Intercept {
 public:
  // `breaks` is to work in.
  Intercept(const ObjectiveTable& passes, const Objective& of, const Line& line,
            std::vector<std::pair<double, double>>& breaks)
      : passes_(passes), of_(of), line_(line), breaks_(breaks) {}

  // The value of the line at b, and its slope there.
  Losses at(double b) const {
    const auto [value, slope] = passes_.losses(of_, line_.C, b);
    return {value + line_.pull * b, slope + line_.pull};
  }

  // The middle of the levels that x can rise to and fall to; or, where these say that it is not
  // best, where the line is least, if `is_best`.
  double find(bool is_best) {
    auto [low, high] = passes_.levels(of_, line_.C);
    if (!std::isfinite(low)) low = high;
    if (!std::isfinite(high)) high = low;
    if (!std::isfinite(low)) return 0;
    const double middle = 0.5 * (low + high);
    if (!is_best || low <= high) return middle;  // all between are best ones: as LIBSVM
    double apart = 0.5 * std::abs(low - high) + 1e-9;
    for (int k = 0; k < 60; ++k, apart *= 4) {
      if (at(middle - apart).slope > 0) continue;
      if (at(middle + apart).slope >= 0) return least(middle - apart, middle + apart);
    }
    return middle;
  }

 private:
  // Where the slope changes its sign, between two numbers.
  double least(double low, double high) {
    return of_.is_squared ? by_newton(low, high) : by_breaks(low, high);
  }

  double by_newton(double low, double high) const {
    double b = 0.5 * (low + high);
    for (int k = 0; k < 60 && low < high; ++k) {
      const double slope = at(b).slope;
      (slope > 0 ? high : low) = b;
      double curvature = 0;
      for (std::size_t p = 0; p < of_.width; ++p) curvature += has_loss(p, b) ? 2 * line_.C[p] : 0;
      double next = b - slope / curvature;
      if (!(next > low && next < high)) next = 0.5 * (low + high);
      if (std::abs(next - b) <= 1e-15 * (1 + std::abs(b))) break;
      b = next;
    }
    return b;
  }

  bool has_loss(std::size_t p, double b) const {
    if (of_.is_twofold) return std::abs(of_.target[p] - of_.f[p] - b) > of_.q[p];
    return of_.y[p] * (of_.f[p] + b) < of_.q[p];
  }

  // The slope grows by C where a loss begins or ends. Passes that halve the range take less time
  // than to sort all of these.
  double by_breaks(double low, double high) {
    for (int k = 0; k < kHalvings; ++k) {
      const double middle = 0.5 * (low + high);
      const double slope = at(middle).slope;
      if (slope == 0) break;  // both ends of where it is zero are wanted
      (slope > 0 ? high : low) = middle;
    }
    double slope = at(low).slope;
    breaks_.clear();
    // The slope at the low end itself has nothing of losses that begin there.
    const auto add = [&](double b, double weight, bool begins) {
      if (weight > 0 && (low < b || (begins && low == b)) && b <= high)
        breaks_.push_back({b, weight});
    };
    for (std::size_t p = 0; p < of_.width; ++p) {
      const double b = of_.target[p] - of_.f[p], q = of_.is_twofold ? of_.q[p] : 0.0;
      if (of_.is_twofold) add(b - q, line_.C[p], false);
      add(b + q, line_.C[p], of_.is_twofold || of_.y[p] < 0);
    }
    std::sort(breaks_.begin(), breaks_.end());
    // Between two breaks where it is zero all are best ones. The middle leaves room on both sides:
    // at a break a margin is met exactly, and with a large C what rounding takes of it is dear.
    for (std::size_t k = 0; k < breaks_.size(); ++k) {
      const auto [b, weight] = breaks_[k];
      slope += weight;
      if (std::abs(slope) <= kFlat * weight)
        return 0.5 * (b + (k + 1 < breaks_.size() ? breaks_[k + 1].first : high));
      if (slope > 0) return b;
    }
    return high;
  }

  static constexpr int kHalvings = 8;
  static constexpr double kFlat = 1e-9;  // of sums of C
  const ObjectiveTable& passes_;
  const Objective& of_;
  const Line line_;
  std::vector<std::pair<double, double>>& breaks_;
};

}  // namespace widemargin
