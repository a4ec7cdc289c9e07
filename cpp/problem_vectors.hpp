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

// Numbers of the longest vectors; and so many, with those that fill the last vector.
constexpr std::size_t kWhole = 16;
constexpr std::size_t in_vectors(std::size_t numbers) {
  return (numbers + kWhole - 1) / kWhole * kWhole;
}

// The vectors of a problem, by positions: see problem_data.hpp. Those that follow it use the memory
// again, and what is known of the same groups.
struct ProblemVectors {
  // Whether what does not change with the weights is that of problem t, too: of the same groups.
  bool are_for(const BatchProblems& problems, std::size_t t) const {
    if (problem < 0) return false;
    const auto before = static_cast<std::size_t>(problem);
    if (!std::ranges::equal(problems.groups_of(t), problems.groups_of(before))) return false;
    const auto are_same = [&](const auto& values) {  // by bytes: by vectors
      return std::memcmp(&values[problems.begin_of(t)], &values[problems.begin_of(before)],
                         problems.size_of(t) * sizeof(double)) == 0;
    };
    return std::isnan(problems.mass[t]) == std::isnan(problems.mass[before]) &&
           problems.is_twofold(t) == is_twofold && are_same(problems.y) && are_same(problems.q);
  }

  // Of each group the longest run of rows without weights, as a fold has where it holds some out,
  // and what is last: steps pass over these. In multiples of the longest vectors.
  void find_still() {
    constexpr std::size_t some = kWhole;
    still.clear();
    for (std::size_t g = 0; g < group.size(); ++g) {
      std::size_t from = group_begin[g], begin = from, on = from, end = from;
      for (std::size_t p = from; p < group_begin[g + 1]; p += some) {
        if (count_of<4>(some, [&](std::size_t k) { return C[p + k] > 0; }) > 0)
          from = end = p + some;
        else if (p + some - from > on - begin)
          begin = from, on = p + some;
      }
      still.insert(still.end(), {begin, on, end});
    }
  }

  // Of some places, or of all where there are none, those that a pair may take.
  std::vector<std::size_t> unsettled(std::vector<std::size_t> now) const {
    if (now.empty()) now.resize(x.size()), std::iota(now.begin(), now.end(), std::size_t{0});
    float low = -std::numeric_limits<float>::infinity(), high = -low;
    for (const auto p : now) {
      if (x[p] < upper[p]) low = std::max(low, -F[p]);
      if (x[p] > lower[p]) high = std::min(high, -F[p]);
    }
    std::erase_if(now, [&](std::size_t p) {
      const bool can_rise = x[p] < upper[p] && -F[p] > high;
      return !can_rise && !(x[p] > lower[p] && -F[p] < low);
    });
    return now;
  }

  // Whether no number of the answer and its scores has left the range.
  bool are_finite() const {
    constexpr double most = std::numeric_limits<double>::max();
    return count_of(x.size(), [&](std::size_t p) {
             return !(std::abs(x[p]) <= most) | !(std::abs(f[p]) <= most);
           }) == 0;
  }

  std::int64_t problem = -1;  // the problem whose they are; -1: none
  bool has_rows = false;      // what does not change with the weights is there
  bool is_dense = false;      // no group is padded but the last one: no steps in float32
  bool is_twofold = false;
  bool is_flat = true;  // all k(x, x) are one number
  KeptScores known;
  // Of each group: its first position (and the end of all), its number, and how many samples it
  // has.
  std::vector<std::size_t> group_begin, group, group_count;
  std::vector<std::size_t> still;
  std::vector<std::int64_t> rows;
  std::vector<double> lower, upper, x, y, q, C, f;
  // y q; the same less the levels. Of rows that are there twice half the difference of their q, and
  // q is half of what is missing between them.
  std::vector<double> target, near;
  std::vector<Line> lines;  // none without a free intercept and without rho
  std::vector<float> diagonal, ridge, F, room, kink;
  std::vector<signed char> ways;  // see `Relaxation`
  std::vector<const float* const*> parts;
  std::vector<const std::uint8_t* const*> codes;
  std::vector<std::pair<double, double>> breaks;
};

}  // namespace widemargin
