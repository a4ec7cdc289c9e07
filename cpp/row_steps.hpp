// Per-row steps of the solvers: what an iteration does to vectors of length m between products
// with the data. One fused loop each, where NumPy would make up to twenty passes. Formulas and
// their numbers: src/widemargin/solvers/linear/interior_point.py and augmented_lagrangian.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// State of k rows. `u`, `xi` and `dxi` of the squared hinge are unused or derived.
struct RowVectors {
  const double* C;
  double* alpha;
  double* u;
  double* s;
  double* xi;
  double* d;
  double* dalpha;
  double* ds;
  double* dxi;
  std::size_t k;

  RowVectors part(std::size_t begin, std::size_t end) const {
    return {C + begin, alpha + begin,  u + begin,  s + begin,   xi + begin,
            d + begin, dalpha + begin, ds + begin, dxi + begin, end - begin};
  }
};

struct StepSums {
  double ratio;     // largest -dx / x over all variables: 1 / the largest feasible step
  std::size_t row;  // where it is attained
  double first;     // sums of x dp + p dx over the complementary pairs (x, p)
  double second;    // sums of dx dp
};

struct PointSums {
  double products;  // s'alpha + xi'u
  double losses;    // sum C L(xi - s)
  double linear;    // sum alpha, less sum alpha^2 / (4 C) for the squared hinge
};

// Rows of the augmented Lagrangian: bounds C, multipliers, penalty s C, scores f. Without
// multipliers those of the squared hinge, which is its own: no bounds, multipliers 0, s = 2.
struct PenaltyRows {
  const double* C;
  const double* multiplier;
  const double* f;
  double s;
  std::size_t k;

  PenaltyRows part(std::size_t begin, std::size_t end) const {
    return {C + begin, multiplier ? multiplier + begin : nullptr, f + begin, s, end - begin};
  }
};

struct PenaltySums {
  double losses;  // sum C L(1 - f)
  double linear;  // sum alpha, less sum alpha^2 / (4 C) for the squared hinge
  double value;   // sum alpha (1 - f) - (alpha - multiplier)^2 / (2 s C)
};

// Which rows are counted in a matrix A'D A, D = C where alpha is strictly between its bounds.
struct CountedRows {
  std::size_t active, changed;  // rows with D > 0, and those that were counted otherwise before
};

struct SlopeSums {
  double first;   // derivative of `value` along f + t change
  double second;  // minus its derivative
};

// The functions of one instruction set.
struct RowSteps {
  // Apply the last step and recompute d.
  PointSums (*advance)(const RowVectors& rows, double t, bool hinge);
  // Predictor from z = A dv: leaves the clipped second-order products p and q in ds and dxi, and
  // E1 = d (p/alpha - q/u), E2 = d (C/alpha - C/u).
  StepSums (*predict)(const RowVectors& rows, const double* z, double clip, double* E1, double* E2,
                      bool hinge);
  // Corrector from z = A dv: leaves the direction in dalpha, ds, dxi.
  StepSums (*correct)(const RowVectors& rows, const double* z, double target, bool hinge);
  // alpha = multiplier + s C (1 - f), clipped to [0, C].
  PenaltySums (*penalty)(const PenaltyRows& rows, double* alpha);
  // D less the one of the rows counted before, which become those with D > 0.
  CountedRows (*count)(const PenaltyRows& rows, const double* alpha, std::uint8_t* counted,
                       double* d);
  // What the value does at f + t (f_new - f).
  SlopeSums (*slope)(const PenaltyRows& rows, const double* f_new, double t);
};

namespace baseline {
RowSteps row_steps();
}
namespace avx2 {
RowSteps row_steps();
}
namespace avx512 {
RowSteps row_steps();
}

}  // namespace widemargin
