// Newton's step over the free variables of a small problem in float64.
#pragma once

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
        if (p.lower[i] < p.x[i] && p.x[i] < p.upper[i]) free_.push_back(i);
      if (free_.size() < 2) return true;
      if (!make_way(p)) return false;
      if (move(p)) return true;
    }
  }

 private:
  // A pivot of a smaller share is rounding.
  static constexpr double kPivot = 1e-9;

  // Newton's step, whose sum is zero where that is asked for.
  bool make_way(const SmallProblem<double>& p) {
    const std::size_t f = free_.size();
    Q_.resize(f * f), way_.resize(f), ones_.assign(f, 1.0);
    for (std::size_t a = 0; a < f; ++a) {
      const std::size_t i = free_[a];
      const double* row = p.K.K + i * p.K.width;
      Q_[a * f + a] = p.diagonal[i];
      for (std::size_t b = a + 1; b < f; ++b) Q_[a * f + b] = row[free_[b]] + p.shift;
      way_[a] = -p.F[i];
    }
    if (!factor(Q_, f, kPivot)) return false;
    substitute(Q_, way_);
    if (p.sums == 0) return true;
    substitute(Q_, ones_);
    double sum = 0, of_ones = 0;
    for (std::size_t a = 0; a < f; ++a) sum += way_[a], of_ones += ones_[a];
    for (std::size_t a = 0; a < f; ++a) way_[a] -= sum / of_ones * ones_[a];
    return std::isfinite(sum / of_ones);
  }

  // Go that way within the bounds; whether all of it.
  bool move(const SmallProblem<double>& p) {
    const std::size_t f = free_.size();
    double t = 1;
    std::size_t meets = f;
    for (std::size_t a = 0; a < f; ++a) {
      const std::size_t i = free_[a];
      const double room = (way_[a] > 0 ? p.upper[i] : p.lower[i]) - p.x[i];
      if (std::abs(t * way_[a]) > std::abs(room)) t = room / way_[a], meets = a;
    }
    for (std::size_t a = 0; a < f; ++a) {
      const std::size_t i = free_[a];
      const double by = t * way_[a], *row = p.K.K + i * p.K.width;
      p.x[i] = a != meets ? p.x[i] + by : by > 0 ? p.upper[i] : p.lower[i];
      for (std::size_t s = 0; s < p.q; ++s) p.F[s] += by * (row[s] + p.shift);
      p.F[i] += by * p.ridge[i];
    }
    return meets == f;
  }

  std::vector<std::size_t> free_;
  std::vector<double> Q_, way_, ones_;
};

}  // namespace widemargin
