// Pair steps of a problem, with steps in the span of what they did between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pair_steps.hpp"
#include "span_steps.hpp"

namespace widemargin {

// The latest moves of a problem, and the memory for them.
class KeptMoves {
 public:
  // There are none.
  void clear() { moves_.width = 0; }

  // Pair steps like `Descent`, and at the end of each move one in the span of the latest: of those
  // before, too, if they are of the same variables. Others have another width, or come after
  // `clear`. F may have been made again: the first move begins there.
  template <template <typename> class Rows>
  PairSteps descend(Descent<float, Rows> pairs, SpanStep<Rows> span,
                    const SmallProblem<float, Rows>& problem, double stop, std::int64_t most) {
    PairSteps all{0, 0, std::numeric_limits<double>::infinity()};
    while (all.steps < most) {
      begin(problem);
      const auto few = std::min(most - all.steps, kSteps);
      const auto some = pairs(problem, stop, few);
      problem.relaxation->goes_on = true;
      all = {all.steps + some.steps, all.negative + some.negative, some.violation};
      if (some.steps < kSteps || !(some.violation > stop)) break;
      span(problem, moves_);
    }
    return all;
  }

 private:
  // Pair steps of a move: 36 fits with C of 10 to 1,000 take 0.90 of the time without moves; 0.93
  // with 125 (builds with each, `benchmarks.core.moves --fits`), which take fewer steps: 0.79 of
  // those without, not 0.85 (the same without --fits).
  static constexpr std::int64_t kSteps = 250;

  template <template <typename> class Rows>
  void begin(const SmallProblem<float, Rows>& problem) {
    const std::size_t width = problem.width;
    if (moves_.width != width) {
      x_.resize(Moves::kVectors * width), F_.resize(Moves::kVectors * width);
      moves_ = {x_.data(), F_.data(), width};
    }
    std::copy_n(problem.x, width, moves_.x + Moves::kBegin * width);
    std::copy_n(problem.F, width, moves_.F + Moves::kBegin * width);
  }

  std::vector<double> x_;
  std::vector<float> F_;
  Moves moves_{};
};

}  // namespace widemargin
