#include "chain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace widemargin {
namespace {

// The share of alpha at bounds from which an answer is a start for the next C as it is, but for its
// size: 450,000 steps of 2,250 problems of pendigits become 300,000 with any share of 0.2 to 0.8.
constexpr double kMostlyBound = 0.5;

// What the answer of another problem, for this one, is best multiplied by: between 1 and `most`, as
// the weights are. Without variables at their bounds that is 1. If most of alpha is at bounds it is
// likely to stay there; then it is `most`.
double best_share(const BatchProblems& problems, std::size_t from, std::size_t to, std::size_t m,
                  double most) {
  double linear = 0, square = 0, total = 0, size = 0, at_bound = 0;
  for (std::size_t i = 0; i < m; ++i) {
    const double c = problems.c[from + i], C = problems.C[to + i];
    linear += problems.q[to + i] * std::abs(c), total += c, size += std::abs(c);
    if (std::abs(c) >= problems.C[from + i] && !problems.squared) at_bound += std::abs(c);
    square += c * problems.scores[from + i];
    if (problems.squared && C > 0) square += 0.5 * c * c / C;
  }
  if (at_bound > kMostlyBound * size) return most;
  if (problems.intercept == 2) square += total * total;
  return std::clamp(square > 0 ? linear / square : most, std::min(1.0, most), most);
}

// What all weights of a problem are multiplied by in problem t, which follows it; NaN: by several
// numbers.
double ratio_of(const BatchProblems& problems, std::size_t t) {
  const std::size_t to = problems.begin_of(t), m = problems.size_of(t);
  const std::size_t from = problems.begin_of(static_cast<std::size_t>(problems.after[t]));
  const double* const before = problems.C.data() + from;
  const double* const now = problems.C.data() + to;
  const auto first = static_cast<std::size_t>(
      std::find_if(before, before + m, [](double C) { return C > 0; }) - before);
  const double ratio = first < m ? now[first] / before[first] : 0.0;
  bool is_one = true;
  for (std::size_t i = 0; i < m; ++i)
    is_one = is_one & (std::abs(now[i] - ratio * before[i]) <= kSame * now[i]);
  return is_one ? ratio : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

bool stays(const BatchProblems& problems, std::size_t t, double tol, double share,
           std::span<BatchResult> results) {
  if (problems.after[t] < 0 || problems.squared || !std::isnan(problems.mass[t])) return false;
  const auto before = static_cast<std::size_t>(problems.after[t]);
  BatchResult out = results[before];
  const double ratio = ratio_of(problems, t);
  if (out.end != BatchEnd::solved || !(ratio >= 1)) return false;
  out.primal += (ratio - 1) * out.losses;
  out.losses *= ratio, out.noise *= ratio, out.steps = 0;
  const double size = std::max(std::abs(out.primal), std::abs(out.dual));
  if (!(out.primal - out.dual <= std::min(share * tol, tol - out.noise) * size)) return false;
  const std::size_t from = problems.begin_of(before), m = problems.size_of(t);
  for (const auto& values : {problems.c, problems.scores})
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), m,
                values.begin() + static_cast<std::ptrdiff_t>(problems.begin_of(t)));
  results[t] = out;
  return true;
}

bool follow(const BatchProblems& problems, std::size_t t) {
  if (problems.after[t] < 0) return false;
  const std::size_t to = problems.begin_of(t), m = problems.size_of(t);
  const std::size_t from = problems.begin_of(static_cast<std::size_t>(problems.after[t]));
  const double mass = problems.mass[t];
  const double* const before = problems.C.data() + from;
  const double* const now = problems.C.data() + to;
  const double most = ratio_of(problems, t);
  const bool is_one = std::isnan(mass) && !std::isnan(most);
  std::vector<double> factor(m, is_one ? best_share(problems, from, to, m, most) : 0.0);
  for (std::size_t i = 0; !is_one && i < m; ++i)
    factor[i] = before[i] > 0 ? now[i] / before[i] : 0.0;
  const double share = m > 0 ? factor[0] : 0.0;
  double total = 0, size = 0;
  for (std::size_t i = 0; i < m; ++i) {
    factor[i] *= problems.c[from + i];
    total += factor[i], size += std::abs(factor[i]);
  }
  if (problems.intercept == 1 && !(std::abs(total) <= kSame * size)) return false;
  if (!std::isnan(mass) && !(std::abs(size - mass) <= kSame * mass)) return false;
  std::copy(factor.begin(), factor.end(), problems.c.begin() + static_cast<std::ptrdiff_t>(to));
  for (std::size_t i = 0; is_one && i < m; ++i)
    problems.scores[to + i] = share * problems.scores[from + i];
  return is_one;
}

std::vector<std::int64_t> models_of(const BatchProblems& problems) {
  const auto part = [&](auto values, std::size_t t) {
    return values.subspan(problems.begin_of(t), problems.size_of(t));
  };
  const auto groups = [&](std::size_t t) {
    const auto begin = static_cast<std::size_t>(t > 0 ? problems.group_end[t - 1] : 0);
    return problems.group.subspan(begin, static_cast<std::size_t>(problems.group_end[t]) - begin);
  };
  std::vector<std::int64_t> models(problems.size(), -1);
  if (problems.squared || problems.intercept != 1) return models;
  std::size_t first = 0;
  for (std::size_t t = 1; t < problems.size(); ++t) {
    if (problems.after[t] >= 0) continue;
    const bool is_like = std::isnan(problems.mass[t]) &&
                         std::ranges::equal(groups(first), groups(t)) &&
                         std::ranges::equal(part(problems.y, first), part(problems.y, t)) &&
                         std::ranges::count(part(problems.c, t), 0.0) == std::ssize(part(problems.c, t)) &&
                         std::ranges::count(part(problems.q, t), 1.0) == std::ssize(part(problems.q, t));
    if (is_like)
      models[t] = static_cast<std::int64_t>(first);
    else
      first = t;
  }
  return models;
}

bool begin_near(const BatchProblems& problems, std::size_t t, std::size_t model) {
  const std::size_t to = problems.begin_of(t), from = problems.begin_of(model);
  const std::size_t m = problems.size_of(t);
  std::vector<double> start(m);
  // Of each class: sum alpha of the model, of what stays, and the most that there may be.
  struct Sums {
    double before = 0, kept = 0, most = 0;
    std::vector<std::size_t> fresh;
  };
  std::array<Sums, 2> sums;
  for (std::size_t i = 0; i < m; ++i) {
    auto& own = sums[problems.y[to + i] < 0];
    const double C = problems.C[to + i], before = problems.C[from + i];
    if (before > 0) {
      start[i] = problems.c[from + i] * (C == before ? 1.0 : C / before);
      own.before += std::abs(problems.c[from + i]), own.kept += std::abs(start[i]);
    } else if (C > 0) {
      own.fresh.push_back(i), own.most += C;
    }
  }
  double total = std::numeric_limits<double>::infinity();
  for (const auto& own : sums) total = std::min({total, own.before, own.kept + own.most});
  for (auto& own : sums) {
    double left = total - own.kept;
    if (left < 0) return false;
    std::ranges::sort(own.fresh, {}, [&](std::size_t i) {
      return std::pair(problems.y[to + i] * problems.scores[from + i], i);
    });
    for (const auto i : own.fresh) {
      const double alpha = std::min(left, problems.C[to + i]);
      start[i] = problems.y[to + i] * alpha, left -= alpha;
    }
  }
  std::ranges::copy(start, problems.c.begin() + static_cast<std::ptrdiff_t>(to));
  std::copy_n(problems.scores.begin() + static_cast<std::ptrdiff_t>(from), m,
              problems.scores.begin() + static_cast<std::ptrdiff_t>(to));
  return true;
}

}  // namespace widemargin
