// Steps in the span of what pair steps did of late.
#pragma once

#include <cstddef>

#include "pair_steps.hpp"

namespace widemargin {

// What pair steps did: moves of x, each of many steps, and what they did to F; in memory of the
// caller. The latest take the places of the oldest.
struct Moves {
  // Of the steps without them it takes 0.87 with one, 0.85 with four and 0.87 with eight
  // (benchmarks/core/moves.py; 0.43 of the most that any set takes).
  static constexpr std::size_t kMost = 4, kVectors = kMost + 5;
  // kMost + 1 vectors of `width` numbers each, the moves and where the next one begins, and some
  // to work in.
  double* x;
  float* F;
  std::size_t width;
  std::size_t count = 0, next = 0;     // of moves; and the place of the next one
  double products[kMost][kMost] = {};  // of moves of x and of F
};

// Go to the least of the objective in the span of the moves, with what was done since the last one
// began as one more of them (Narkiss, Zibulevsky 2005). Variables that would leave their bounds
// stay there, and free ones take what keeps the sums; where they are many, or the objective is not
// lower, it goes half of the way, or less. Then the next move begins.
using SpanStep = void (*)(const SmallProblem<float, MadeRows>& problem, Moves& moves);

namespace baseline {
SpanStep span_step();
}
namespace avx2 {
SpanStep span_step();
}
namespace avx512 {
SpanStep span_step();
}

}  // namespace widemargin
