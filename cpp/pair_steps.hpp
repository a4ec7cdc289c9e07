// Pair steps on the small dense problem of a working set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// Rows of K in one piece.
template <typename Real>
struct StoredRows {
  const Real* K;
  std::size_t width;
};

// Rows of a K of values from 0 to 1 in half of the memory, in numbers of up to 32,767: steps over
// many rows wait for memory. They are off by 1.5e-5 at most.
template <typename Real>
struct RoundedRows {
  const std::int16_t* K;
  std::size_t width;
};
constexpr float kRoundedSteps = 32767, kRoundedUnit = 1 / kRoundedSteps;

// Rows of K in parts, each made when it is asked for first. Part g has the positions from begin[g]
// to begin[g + 1] - 1, a multiple of 16 of them, and is the part `id[g]` of the row parts[i]. Those
// from still[3 g] to still[3 g + 1] - 1, and from still[3 g + 2] on, multiples of 16 too, have
// bounds that leave no room: steps pass over them, and F is not kept current there.
template <typename Stored>
struct RowParts {
  const Stored* const* const* parts;
  const std::size_t *begin, *id, *still;
  std::size_t count;  // of parts
  void* maker;
  const Stored* (*make)(void* maker, std::size_t i, std::size_t g);
  const bool* is_over;  // whether steps are to end, as it was seen when rows were made
};
template <typename Real>
struct MadeRows : RowParts<Real> {};

// The same of a K of few different values: a byte for each value, its place among them. They take a
// quarter of the memory, so that steps wait less: SVCCV on 5,000 rows of a9a takes 0.65 of the
// time, with AVX2 0.9. (With 64 values 1.04 and 1.12 times as long.)
template <typename Real>
struct CodedRows : RowParts<std::uint8_t> {
  const Real* values;
};

// How much further than to the least of the objective steps go: successive overrelaxation
// (Mangasarian, Musicant 1999), which lowers it with any factor between 0 and 2. Steps learn it as
// they go. Where a variable goes on the way that it went last, steps are too short, and the next
// ones go further; where it turns back they are too long. Few free variables go on for long, and
// are not solved sooner by long steps: with 1.7 they may take 1.5 times as many. All that takes 0.5
// to 1.1 of the steps; other rates, by 0.3 and 3, 0.8 to 1.3 of these
// (benchmarks/core/relaxation.py).
struct Relaxation {
  static constexpr double kLonger = 0.005, kShorter = 0.01, kLongest = 1.7, kLongestOfFew = 1.3;
  static constexpr std::size_t kManyFree = 100;
  signed char* ways;  // of each variable the last one: 1 up, -1 down, 0 none
  double factor = 1;
  // How long factors may be, by the variables that are free when steps begin; or as long as before,
  // where these steps go on with others: the same ones then, however they are divided.
  double longest = kLongest;
  bool goes_on = false;

  void go(std::size_t i, signed char way) {
    const int turn = way * ways[i];
    factor += turn > 0 ? kLonger : turn < 0 ? -kShorter : 0.0;
    factor = factor > longest ? longest : factor < 1 ? 1.0 : factor;
    ways[i] = way;
  }
};

// Minimise 1/2 x'Q x + F0'x near the current x, lower <= x <= upper, with `sums` equalities, where
// Q = K + shift + diag(ridge) and F = F0 + Q x is kept current. `width` numbers a row of K, a
// multiple of 16; all arrays of Real numbers are as long, and what is behind q is finite. So are
// those of double for steps in the span of others, where what is behind q is zero.
template <typename Real, template <typename> class Rows = StoredRows>
struct SmallProblem {
  Rows<Real> K;
  std::size_t q, width;
  const Real* diagonal;  // of Q
  const Real* ridge;     // part of it
  Real shift;
  const double *lower, *upper;
  double* x;
  Real* F;
  Real* room;  // to work in: two vectors like F for each equality, two without
  int sums;    // 0; 1: sum x stays; 2: so does the sum of those with upper > 0. Without shift
  // Given, the objective has the sum of kink |x| too, numbers of 0 or more, and lower <= 0 <=
  // upper; sums is 0 or 1.
  const Real* kink = nullptr;
  Relaxation* relaxation = nullptr;  // always given
};

struct PairSteps {
  std::int64_t steps;
  std::int64_t negative;  // steps along which the curvature was negative
  double violation;       // what is left at the end
};

// Steps until the largest violation is at most `stop`, or `most` of them are made. The first one of
// a pair violates most, or decreases the objective most by itself; the second one decreases it most
// together with the first (Fan, Chen, Lin 2005).
template <typename Real, template <typename> class Rows = StoredRows>
using Descent = PairSteps (*)(const SmallProblem<Real, Rows>&, double stop, std::int64_t most);

struct PairTable {
  Descent<float> steps32;
  Descent<double> steps64;
  Descent<float, MadeRows> made32;
  Descent<float, RoundedRows> rounded32;
  // With one sum and without kinks; null where `KernelTable` makes no distances of ones.
  Descent<float, CodedRows> coded32;
  // A tile of K, up to 64 rows of 64 values from 0 to 1, as rounded rows; given `across`, also
  // those of the other side of the diagonal, where rows that are not there are zero.
  void (*round)(const float* tile, std::size_t rows, std::size_t stride, std::int16_t* out,
                std::int16_t* across);

  template <typename Real>
  Descent<Real> steps() const {
    if constexpr (sizeof(Real) == 4)
      return steps32;
    else
      return steps64;
  }
};

namespace baseline {
PairTable pair_table();
}
namespace avx2 {
PairTable pair_table();
}
namespace avx512 {
PairTable pair_table();
}

}  // namespace widemargin
