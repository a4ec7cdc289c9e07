// Doubled precision: numbers hi + lo, unevaluated sums of two doubles with |lo| <= u |hi| and
// u = 2^-53, for what rounding would decide. Error-free transforms as in Ogita, Rump and Oishi 2005
// ("Accurate sum and dot product"), with sums kept normalized after each term.
//
// A sum of n terms p_j is off by at most `twofold_error(n, sum |p_j|)`. With u the unit roundoff
// and S = sum |p_j|, a term with |e| <= 3u |p| of its own, known to 4u^2 |p|, costs
//   u |l + e| + u |l + e + t| <= 3u^2 |h| + 11u^2 |p|,  |h| <= S,
// which makes (3n + 11) u^2 S. The bound says 4(n + 4) u^2 S: a third more, which covers the
// rounding of the bound itself. A term that underflows is off by no more than 2 eta.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel_rows.hpp"

namespace widemargin {

constexpr double kUnit = 0x1p-53, kLeast = 0x1p-1074;

// Rows that are computed together: the vectors of two chains of sums fill each other's pauses.
constexpr std::size_t kTwofoldRows = 16;

// At least the value that a sum of n nonnegative terms would have without rounding.
static constexpr double rounded_up(double sum, std::size_t n) {
  return sum * (1.0 + 2.0 * static_cast<double>(n + 4) * kUnit) +
         static_cast<double>(n + 4) * kLeast;
}

// How far a twofold sum of n terms may be off, of a bound on the sum of their sizes.
static constexpr double twofold_error(std::size_t n, double size) {
  return 4.0 * static_cast<double>(n + 4) * kUnit * kUnit * size +
         2.0 * static_cast<double>(n + 4) * kLeast;
}

// One row: its entries, and their columns unless these are 0, 1, 2...
struct TwofoldRow {
  const double* values;
  const std::size_t* columns;
  std::size_t count;
};

// Vectors of twofold numbers, and the sums of the sizes of what was added to them.
struct TwofoldSums {
  double *hi, *lo, *size;
};

// A group of rows against one row z: entry j of row r of the group lies at j * kTwofoldRows + r,
// and meets value z.values[t] for j = z.columns[t].
struct TwofoldPair {
  const double* group;
  TwofoldRow z;
};

// For each row of a group: sums of c_j k(x, z_j), and bounds of the sizes |c_j k| and of the errors
// of c_j k.
struct TwofoldKernelSums {
  double hi[kTwofoldRows] = {}, lo[kTwofoldRows] = {}, size[kTwofoldRows] = {},
         error[kTwofoldRows] = {};
};

struct TwofoldTable {
  // sums[0] += x'w
  void (*dot)(const TwofoldRow& x, const double* w, const TwofoldSums& sums);
  // sums[j] += a x_j
  void (*add_row)(const TwofoldRow& x, double a, const TwofoldSums& sums);
  // sums += c k(x, z)
  void (*add_kernel)(const KernelForm&, const TwofoldPair&, double c, TwofoldKernelSums& sums);
  // sums += k(x, x), of n entries
  void (*add_diagonal)(const KernelForm&, const double* group, std::size_t n,
                       TwofoldKernelSums& sums);
};

namespace baseline {
TwofoldTable twofold_table();
}
namespace avx2 {
TwofoldTable twofold_table();
}
namespace avx512 {
TwofoldTable twofold_table();
}

}  // namespace widemargin
