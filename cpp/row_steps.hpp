// Per-row steps of the interior point method: what an iteration does to vectors of length m
// between products with the data. One fused loop each, where NumPy would make twenty passes.
// Formulas and their numbers: src/widemargin/solvers/interior_point.py.
#pragma once

#include <cstddef>

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

// The functions of one instruction set.
struct RowSteps {
  // Apply the last step and recompute d.
  PointSums (*advance)(const RowVectors& rows, double t, bool hinge);
  // Predictor from z = A dv: leaves the clipped second-order products in ds and dxi, and the
  // columns d (p/alpha - q/u) and d (C/alpha - C/u) in E (k, 2).
  StepSums (*predict)(const RowVectors& rows, const double* z, double clip, double* E, bool hinge);
  // Corrector from z = A dv: leaves the direction in dalpha, ds, dxi.
  StepSums (*correct)(const RowVectors& rows, const double* z, double target, bool hinge);
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
