// Newton's step over the free variables of a small problem in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "pair_steps.hpp"
#include "small_factor.hpp"

namespace widemargin {

// The least of the objective where all variables at a bound stay there: pair steps come near it
// soon, and to its last digits late.
class ExactFace {
 public:
  // Go there, or on the way as far as the bounds allow, and on without the variable that has met
  // its own. Whether it may be tried again: not where the matrix of free variables is singular.
  bool go(const SmallProblem<double>& p) {
    for (;;) {
      free_.clear();
      for (std::size_t i = 0; i < p.q; ++i)
        if (p.lower[i] < p.x[i] && p.x[i] < p.upper[i] && !(p.kink && p.x[i] == 0))
          free_.push_back(i);
      if (free_.size() < 2) return true;
      if (!make_way(p)) return false;
      if (move(p)) return true;
    }
  }

 private:
  // A pivot of a smaller share is rounding, or near it. (With 1e-9 one of 780 pairs of ten rows,
  // of products of five columns, is not solved; with 1e-4 and 1e-6 all are, in as long.)
  static constexpr double kPivot = 1e-6;

  // Newton's step, whose sums are zero where they are given.
  bool make_way(const SmallProblem<double>& p) {
    const std::size_t f = free_.size(), sums = static_cast<std::size_t>(p.sums);
    Q_.resize(f * f), way_.resize(f);
    for (auto& ones : ones_) ones.assign(f, 0.0);
    double sum[2] = {0, 0}, of[2][2] = {{0, 0}, {0, 0}};
    for (std::size_t a = 0; a < f; ++a) {
      const std::size_t i = free_[a];
      const double* row = p.K.K + i * p.K.width;
      Q_[a * f + a] = p.diagonal[i];
      for (std::size_t b = a + 1; b < f; ++b) Q_[a * f + b] = row[free_[b]] + p.shift;
      way_[a] = -p.F[i];
      if (p.kink) way_[a] -= p.x[i] > 0 ? p.kink[i] : -p.kink[i];
      ones_[group(p, i)][a] = 1;
    }
    if (!factor(Q_, f, kPivot)) return false;
    substitute(Q_, way_);
    if (sums == 0) return true;
    for (std::size_t g = 0; g < sums; ++g) substitute(Q_, ones_[g]);
    for (std::size_t a = 0; a < f; ++a) {
      const int g = group(p, free_[a]);
      sum[g] += way_[a];
      for (int h = 0; h < 2; ++h) of[g][h] += ones_[h][a];
    }
    for (int g = 0; g < 2; ++g)
      if (!(of[g][g] > 0)) of[g][g] = 1;  // no free variable
    const double det = of[0][0] * of[1][1] - of[0][1] * of[1][0];
    const double by[] = {(of[1][1] * sum[0] - of[0][1] * sum[1]) / det,
                         (of[0][0] * sum[1] - of[1][0] * sum[0]) / det};
    for (std::size_t a = 0; a < f; ++a) way_[a] -= by[0] * ones_[0][a] + by[1] * ones_[1][a];
    return std::isfinite(by[0]) && std::isfinite(by[1]);
  }

  // Where the way of a free variable ends: at its bound, or its kink.
  double end(const SmallProblem<double>& p, std::size_t a) const {
    const std::size_t i = free_[a];
    const double bound = way_[a] > 0 ? p.upper[i] : p.lower[i];
    return p.kink && (way_[a] > 0) != (p.x[i] > 0) ? 0 : bound;
  }

  static int group(const SmallProblem<double>& p, std::size_t i) {
    return p.sums > 1 && !(p.upper[i] > 0) ? 1 : 0;
  }

  // Go that way within the bounds; whether all of it.
  bool move(const SmallProblem<double>& p) {
    const std::size_t f = free_.size();
    double t = 1;
    std::size_t meets = f;
    for (std::size_t a = 0; a < f; ++a) {
      const std::size_t i = free_[a];
      const double room = end(p, a) - p.x[i];
      if (std::abs(t * way_[a]) > std::abs(room)) t = room / way_[a], meets = a;
    }
    for (std::size_t a = 0; a < f; ++a) {
      const std::size_t i = free_[a];
      const double by = t * way_[a], *row = p.K.K + i * p.K.width;
      p.x[i] = a == meets ? end(p, a) : std::clamp(p.x[i] + by, p.lower[i], p.upper[i]);
      for (std::size_t s = 0; s < p.q; ++s) p.F[s] += by * (row[s] + p.shift);
      p.F[i] += by * p.ridge[i];
    }
    return meets == f;
  }

  std::vector<std::size_t> free_;
  std::vector<double> Q_, way_, ones_[2];
};

}  // namespace widemargin
