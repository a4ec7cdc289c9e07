// Steps of the Frank-Wolfe family on the unit simplex, by rows of a kernel matrix that are kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "draws.hpp"

namespace widemargin {

enum class SimplexStep : int { toward = 0, away = 1, pairwise = 2, swap = 3 };

// Minimise R(a) = a'Qa - h'a over a >= 0, sum a = 1, with Q = Y (K + shift) Y + diag(ridge). Kept
// current are a = scale * alpha and Q a = scale * g; square = a'Qa and linear = h'a. All have been
// updated `updates` times since they were computed, each time with rounding.
template <typename Real>
struct Simplex {
  const Real* rows;           // of K, `stride` apart
  const std::int64_t* place;  // of row i in `rows`, negative where it is not kept
  std::size_t stride, m;
  const double* y;
  const double *diagonal, *ridge;  // of Q, and part of it
  const double* half;              // h / 2
  double shift;
  double *alpha, *g;
  double scale, square, linear, updates;
};

struct SimplexSteps {
  std::int64_t steps, drops;
  std::int64_t missing;  // a row that is needed, or -1
  double least;          // the smallest g - h / 2 of a
};

// Steps until `most` are made, a row is missing, none gains more than rounding, or a is near: as a
// `ball`, or by the bound of R (`enough` in the source). The first point of a pair is the one of
// the least gradient, or in the first step a given one (else negative); the other one that of the
// largest, or with `second_order` the one that gains most.
template <typename Real>
using SimplexDescent = SimplexSteps (*)(Simplex<Real>& problem, SimplexStep kind, bool second_order,
                                        bool ball, double stop, std::int64_t most,
                                        std::int64_t given);

// What a step looks at: `size` random rows, and where the classes take turns also all that have
// weight.
struct Sample {
  Draws draws;
  std::size_t size;
  std::int64_t tries;  // draws after which a ball is near that has none of them outside
  std::int64_t* room;  // (size,)
};

struct SampledSteps {
  std::int64_t looks, steps, drops;
  std::int64_t missing;  // a row that is needed, or -1
  std::int64_t chosen;   // the best row of the last sample
  bool inside;           // whether the ball is near
};

// The same toward the best of random rows, until `most` samples were looked at, a row is missing,
// or, of a `ball`, none of `tries` samples has a row outside.
template <typename Real>
using SampledDescent = SampledSteps (*)(Simplex<Real>& problem, SimplexStep kind, bool second_order,
                                        bool ball, double stop, std::int64_t most,
                                        std::int64_t given, const Sample& sample);

struct SimplexTable {
  SimplexDescent<float> steps32;
  SimplexDescent<double> steps64;
  SampledDescent<float> sampled32;
  SampledDescent<double> sampled64;

  template <typename Real>
  SimplexDescent<Real> steps() const {
    if constexpr (sizeof(Real) == 4)
      return steps32;
    else
      return steps64;
  }
  template <typename Real>
  SampledDescent<Real> sampled() const {
    if constexpr (sizeof(Real) == 4)
      return sampled32;
    else
      return sampled64;
  }
};

namespace baseline {
SimplexTable simplex_table();
}
namespace avx2 {
SimplexTable simplex_table();
}
namespace avx512 {
SimplexTable simplex_table();
}

}  // namespace widemargin
