// What one problem of the batch engine is: its rows, weights, bounds and start.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "batch.hpp"
#include "chain.hpp"
#include "intercept.hpp"
#include "kept_parts.hpp"
#include "lane_sums.hpp"
#include "objective.hpp"
#include "problem_vectors.hpp"

namespace widemargin {

// What else a problem has: new for each one.
struct ProblemNumbers {
  std::size_t at = 0, m = 0, width = 0;  // the first place; variables; positions
  int sums = 0;                          // that stay as they are
  bool has_mass = false;
  bool is_within_bounds = false;  // no variable of the start was clipped, of which there are scores
  bool is_plain = true;           // q is 1, and there is no rho
  // Whether the kernel need not be positive semidefinite. Elsewhere steps along a negative
  // curvature show that float32 can do no more; here they end at a bound.
  bool may_curve = false;
  double shift = 0, total = 0;
  double largest_q = 0;  // where it is not plain
  // What violations are a share of: of q, and of what rho is at the start.
  double unit = 1;
  double margin = 1;  // y (f + b) that steps end at, between bounds
};

// Positions count the samples with what pads their groups. The answer x, its scores f and the
// gradient F by them move as the problem is solved.
struct ProblemData : ProblemVectors, ProblemNumbers {
  ProblemData(KeptParts& kept_parts, const BatchSamples& all_samples, const BatchProblems& problems)
      : kept(kept_parts), samples(all_samples), all(problems) {}
  ProblemData(const ProblemData&) = delete;
  ProblemData& operator=(const ProblemData&) = delete;

  // Be problem t of all from now on, without pads where it has at most so many rows.
  void take(std::size_t t, std::size_t most_dense) {
    static_cast<ProblemNumbers&>(*this) = {};
    at = all.begin_of(t), m = all.size_of(t);
    const bool equality = all.intercept == 1;
    has_mass = !std::isnan(all.mass[t]);
    sums = has_mass ? (equality ? 2 : 1) : (equality ? 1 : 0);
    shift = all.intercept == 2 ? 1.0 : 0.0;
    may_curve =
        !samples.is_given() && (samples.form.kind == KernelKind::sigmoid ||
                                (samples.form.kind == KernelKind::poly && samples.form.coef0 < 0));
    if (!are_for(all, t)) has_rows = false;
    problem = static_cast<std::int64_t>(t);
    is_twofold = all.is_twofold(t);
    if (is_twofold) m /= 2;
    lay_out(m <= most_dense);
  }

  // Have the start in positions; `dense`, without what pads groups, until rows of K in float32 are
  // asked for.
  void lay_out(bool dense) {
    if (!has_rows || dense != is_dense) is_dense = dense, take_rows();
    has_rows = true;
    take_weights();
    if (is_twofold) take_halves();
    take_bounds();
    aim_at(margin);
    take_unit();
    take_lines();
  }

  // f(first position, first place in the arrays of all problems, first sample, their number).
  template <class Function>
  void each_group(const Function& f) const {
    std::size_t i = at;
    for (std::size_t g = 0; g < group.size(); i += group_count[g], ++g)
      f(group_begin[g], i, kept.first(group[g]), group_count[g]);
  }
  // f(position, place in the arrays of all problems, sample).
  template <class Function>
  void each(const Function& f) const {
    each_group([&](std::size_t p, std::size_t i, std::size_t s, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) f(p + k, i + k, s + k);
    });
  }

  // How many variables are between their bounds.
  std::size_t free() const {
    std::size_t some = 0;
    for (std::size_t p = 0; p < width; ++p)
      some += lower[p] < x[p] && x[p] < upper[p] && !(is_twofold && x[p] == 0);
    return some;
  }

  // What the passes over the places take.
  Objective objective() const {
    return {x.data(), f.data(),     target.data(), q.data(),
            y.data(), lower.data(), upper.data(),  all.squared ? ridge.data() : nullptr,
            width,    all.squared,  is_twofold};
  }

  // Let steps between bounds end at y (f + b) of so much.
  void aim_at(double value) {
    margin = value;
    for (std::size_t p = 0; p < width; ++p) near[p] = margin * target[p];
  }

  // What all variables have by a penalized intercept.
  void add_up() {
    if (shift != 0) total = std::accumulate(x.begin(), x.end(), 0.0);
  }

  // The answer and its scores, for all rows.
  void write() const {
    each([&](std::size_t p, std::size_t i, std::size_t) {
      all.c[i] = is_twofold ? std::max(x[p], 0.0) : x[p];
      all.scores[i] = f[p];
      if (!is_twofold) return;
      all.c[i + m] = std::min(x[p], 0.0);
      all.scores[i + m] = f[p];
    });
  }

  KeptParts& kept;
  const BatchSamples& samples;
  const BatchProblems& all;

 private:
  // What does not change with the weights: the rows, and what is known of them.
  void take_rows() {
    take_groups();
    const std::size_t size = group_begin.back();
    for (auto* vector : {&lower, &upper, &x, &y, &q, &C, &target, &near}) vector->assign(size, 0.0);
    for (auto* vector : {&diagonal, &ridge, &F}) vector->assign(size, 0.0f);
    rows.assign(size, 0), parts.assign(size, nullptr);
    codes.assign(kept.are_coded() ? size : 0, nullptr);
    room.assign((sums > 1 ? 4 : 2) * size, 0.0f);
    is_flat = true;
    each_group([&](std::size_t p, std::size_t i, std::size_t s, std::size_t count) {
      std::copy_n(&all.y[i], count, &y[p]);
      std::copy_n(&all.q[i], count, &q[p]);
      std::copy_n(&samples.groups.rows[s], count, &rows[p]);
      for (std::size_t k = 0; k < count; ++k) {
        const double own = samples.diagonal[static_cast<std::size_t>(rows[p + k])];
        is_flat = is_flat && own == samples.diagonal[static_cast<std::size_t>(rows[0])];
        diagonal[p + k] = static_cast<float>(own + shift);
        parts[p + k] = kept.of_sample(s + k);
        if (kept.are_coded()) codes[p + k] = kept.codes_of_sample(s + k);
      }
    });
    for (std::size_t p = 0; p < size; ++p) target[p] = y[p] * q[p];
  }
  void take_groups() {
    const auto own = all.groups_of(static_cast<std::size_t>(problem));
    group_begin.assign(1, 0), group.clear(), group_count.clear();
    const auto& of = samples.groups;
    for (const auto number : own.first(own.size() / (is_twofold ? 2 : 1))) {
      const auto g = static_cast<std::size_t>(number);
      group.push_back(g), group_count.push_back(static_cast<std::size_t>(of.count[g]));
      const auto strips = static_cast<std::size_t>(of.strip[g + 1] - of.strip[g]);
      group_begin.push_back(group_begin.back() + (is_dense ? group_count.back() : strips * kStrip));
    }
    group_begin.back() = in_vectors(group_begin.back());
  }

  // The weights, and the start.
  void take_weights() {
    width = group_begin.back();
    f.assign(width, 0.0);
    each_group([&](std::size_t p, std::size_t i, std::size_t, std::size_t count) {
      std::copy_n(&all.C[i], count, &C[p]);
      std::copy_n(&all.c[i], count, &x[p]);
    });
  }

  // What one variable for two rows has of both.
  void take_halves() {
    kink.resize(width);
    each([&](std::size_t p, std::size_t i, std::size_t) {
      x[p] = all.c[i] + all.c[i + m];
      target[p] = 0.5 * (all.q[i] - all.q[i + m]);
      q[p] = -0.5 * (all.q[i] + all.q[i + m]);
      kink[p] = static_cast<float>(q[p]);
    });
  }

  // Bounds by the weights, and the start within them.
  void take_bounds() {
    const double open = all.squared ? std::numeric_limits<double>::infinity() : 0.0;
    const double both = is_twofold ? 1.0 : 0.0;
    const double clipped = count_of(width, [&](std::size_t p) {
      const double most = C[p] + (C[p] > 0 ? open : 0.0), least = -most, before = x[p];
      const double high = y[p] > 0 ? most : 0.0, low = y[p] > both ? 0.0 : least;
      const double more = before < low ? low : before, now = more > high ? high : more;
      lower[p] = low, upper[p] = high, x[p] = now;
      return !(std::abs(now - before) <= kSame * std::abs(before));
    });
    is_within_bounds = clipped == 0 && !is_twofold;
    if (!is_dense) find_still();
    if (!all.squared) return;
    each([&](std::size_t p, std::size_t, std::size_t) {
      const double own = samples.diagonal[static_cast<std::size_t>(rows[p])];
      ridge[p] = C[p] > 0 ? static_cast<float>(0.5 / C[p]) : 0.0f;
      diagonal[p] = static_cast<float>(own + shift) + ridge[p];
    });
  }

  void take_unit() {
    is_plain = !has_mass && !is_twofold &&
               count_of(width, [&](std::size_t p) { return (C[p] != 0) & (q[p] != 1); }) == 0;
    for (std::size_t p = 0; !is_plain && p < width; ++p)
      if (C[p] != 0)
        largest_q = std::max(largest_q, std::abs(q[p]) + (is_twofold ? std::abs(target[p]) : 0.0));
    unit = is_plain || !(largest_q > 0 || has_mass) ? 1.0 : largest_q;
  }

  // The lines that intercepts are found by. Two classes whose sums are given have one each: rho
  // makes an intercept of each, b - rho and b + rho.
  void take_lines() {
    const double mass = all.mass[static_cast<std::size_t>(problem)];
    lines.clear();
    if (sums == 1) lines.push_back({C.data(), has_mass ? mass : 0.0});
    if (sums <= 1) return;
    for (const double sign : {1.0, -1.0}) {
      auto& own = class_C_[sign < 0];
      own = C;
      for (std::size_t p = 0; p < width; ++p)
        if (y[p] != sign) own[p] = 0;
      lines.push_back({own.data(), sign * 0.5 * mass});
    }
  }

  std::array<std::vector<double>, 2> class_C_;
};

}  // namespace widemargin
