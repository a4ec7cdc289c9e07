// Passes over the places of one problem of the batch engine: its objective, and what makes it.
#pragma once

#include <cstddef>

namespace widemargin {

// P(x, b) = 1/2 x'f + sum C L(q - y (f + b)), with f = K x; or, of rows that are there twice, with
// the loss of |target - f - b| - q. All arrays have `width` numbers, a multiple of 16.
struct Objective {
  const double *x, *f, *target, *q, *y, *lower, *upper;
  const float* ridge;  // of the squared loss; else null
  std::size_t width;
  bool is_squared, is_twofold;
};

struct Products {
  double square;  // x'f
  double linear;  // target'x, less q'|x| of rows that are there twice
  double ridges;  // x'(ridge x)
};

// A sum of losses at an intercept, and its slope there.
struct Losses {
  double value, slope;
};

// Share of C by which x lies away from its bounds: rounding. Where the classes weigh the same the
// last x would else be free, and say that one end of an interval of intercepts is best, by chance.
constexpr double kInside = 1e-12;

// The levels -F that x can rise to and fall to: the largest of those that can rise, the least of
// those that can fall; infinite where there is none.
struct Levels {
  double low, high;
};

// |x|^2, and the weights of those x between their bounds that are not zero.
struct Sizes {
  double square, free;
};

struct ObjectiveTable {
  Products (*products)(const Objective&);
  Losses (*losses)(const Objective&, const double* C, double b);
  Levels (*levels)(const Objective&, const double* C);
  Sizes (*sizes)(const Objective&, const double* C);
  // Scores by the gradient F = f + ridge x + shift - near, and the gradient by scores.
  void (*scores)(const Objective&, const float* F, double shift, const double* near, double* f);
  void (*gradient)(const Objective&, double shift, const double* near, float* F);
};

namespace baseline {
ObjectiveTable objective_table();
}
namespace avx2 {
ObjectiveTable objective_table();
}
namespace avx512 {
ObjectiveTable objective_table();
}

}  // namespace widemargin
