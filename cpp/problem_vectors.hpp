// What the batch engine has of each sample of a problem.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "intercept.hpp"
#include "kept_scores.hpp"
#include "lane_sums.hpp"

namespace widemargin {

// The vectors of a problem, by positions: see batch.cpp. Those that follow it have the same groups,
// and use the memory again.
struct ProblemVectors {
  // Whether what does not change with the weights is that of problem t, too: of the same groups.
  bool are_for(const BatchProblems& problems, std::size_t t) const {
    if (of_ < 0) return false;
    const auto before = static_cast<std::size_t>(of_);
    const auto are_same = [&](const auto& values) {  // by bytes: by vectors
      return std::memcmp(&values[problems.begin_of(t)], &values[problems.begin_of(before)],
                         problems.size_of(t) * sizeof(double)) == 0;
    };
    return std::isnan(problems.mass[t]) == std::isnan(problems.mass[before]) &&
           problems.is_twofold(t) == is_twofold_ && are_same(problems.y) && are_same(problems.q);
  }

  // Of each group the longest run of rows without weights, as a fold has where it holds some out,
  // and what is last: steps pass over these. In multiples of the longest vectors.
  void find_still() {
    constexpr std::size_t some = 16;
    still_.clear();
    for (std::size_t g = 0; g < id_.size(); ++g) {
      std::size_t from = begin_[g], begin = from, on = from, end = from;
      for (std::size_t p = from; p < begin_[g + 1]; p += some) {
        if (count_of<4>(some, [&](std::size_t k) { return C_[p + k] > 0; }) > 0)
          from = end = p + some;
        else if (p + some - from > on - begin)
          begin = from, on = p + some;
      }
      still_.insert(still_.end(), {begin, on, end});
    }
  }

  // Of some places, or of all where there are none, those that a pair may take.
  std::vector<std::size_t> unsettled(std::vector<std::size_t> now) const {
    if (now.empty()) now.resize(x_.size()), std::iota(now.begin(), now.end(), std::size_t{0});
    float low = -std::numeric_limits<float>::infinity(), high = -low;
    for (const auto p : now) {
      if (x_[p] < upper_[p]) low = std::max(low, -F_[p]);
      if (x_[p] > lower_[p]) high = std::min(high, -F_[p]);
    }
    std::erase_if(now, [&](std::size_t p) {
      const bool can_rise = x_[p] < upper_[p] && -F_[p] > high;
      return !can_rise && !(x_[p] > lower_[p] && -F_[p] < low);
    });
    return now;
  }

  // Whether no number of the answer and its scores has left the range.
  bool are_finite() const {
    constexpr double most = std::numeric_limits<double>::max();
    return count_of(x_.size(), [&](std::size_t p) {
             return !(std::abs(x_[p]) <= most) | !(std::abs(f_[p]) <= most);
           }) == 0;
  }

  std::int64_t of_ = -1;  // the problem whose they are; -1: none
  bool is_twofold_ = false;
  bool is_flat_ = true;  // all k(x, x) are one number
  KeptScores known_;
  std::vector<std::size_t> begin_, id_, counts_, still_;
  std::vector<std::int64_t> rows_;
  std::vector<double> lower_, upper_, x_, y_, q_, C_, f_;
  // y q; the same less the levels. Of rows that are there twice half the difference of their q, and
  // q_ is half of what is missing between them.
  std::vector<double> target_, near_;
  std::vector<Line> lines_;  // none without a free intercept and without rho
  std::vector<float> diagonal_, ridge_, F_, room_, kink_;
  std::vector<const float* const*> parts_;
  std::vector<std::pair<double, double>> breaks_;
};

}  // namespace widemargin
