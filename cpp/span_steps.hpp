// Steps in the span of what pair steps did of late.
#pragma once

#include <cstddef>

#include "pair_steps.hpp"

namespace widemargin {

// What pair steps did: moves of x, each of many steps, and what they did to F; in memory of the
// caller. The latest take the places of the oldest.
struct Moves {
  // It takes 0.87 of the steps with one, 0.85 with four and 0.87 with eight as means of all sets,
  // and 0.43 with four on the set that saves most (benchmarks/core/moves.py).
  static constexpr std::size_t kMost = 4;
  // Vectors of `width` numbers after those of the moves: where the next one begins, the step, where
  // it leads to, and bounds of x; in place of the lower ones F has the slopes.
  static constexpr std::size_t kBegin = kMost, kStep = kMost + 1, kTo = kMost + 2, kLow = kMost + 3,
                               kHigh = kMost + 4, kVectors = kMost + 5;
  double* x;
  float* F;
  std::size_t width;
  std::size_t count = 0, next = 0;     // of moves; and the place of the next one
  double products[kMost][kMost] = {};  // of moves of x and of F
};

// Go to the least of the objective in the span of the moves, with what was done since the last one
// began as one more of them (Narkiss, Zibulevsky 2005). Variables that would leave their bounds
// stay there, and free ones take what keeps the sums. Where too many would leave, or the objective
// is not lower, it goes half of the way, or less.
template <template <typename> class Rows>
using SpanStep = void (*)(const SmallProblem<float, Rows>& problem, Moves& moves);

struct SpanTable {
  SpanStep<MadeRows> made;
  SpanStep<CodedRows> coded;
};

namespace baseline {
SpanTable span_table();
}
namespace avx2 {
SpanTable span_table();
}
namespace avx512 {
SpanTable span_table();
}

}  // namespace widemargin
