// A Cholesky factor to which columns are added, and from which they are taken.
#pragma once

#include <cstddef>

namespace widemargin {

// The functions of one instruction set. R is upper triangular, k x k, with rows `stride` apart.
struct FactorTable {
  // The solution of R'x = b in the place of b, of which the numbers before `first` are zero.
  void (*forward)(const double* R, std::size_t stride, std::size_t k, double* b, std::size_t first);
  // The solution of R x = b in the place of b.
  void (*backward)(const double* R, std::size_t stride, std::size_t k, double* b);
  // The factor of R'R without its row and column `a`, in the place of R.
  void (*remove)(double* R, std::size_t stride, std::size_t k, std::size_t a);
};

namespace baseline {
FactorTable factor_table();
}
namespace avx2 {
FactorTable factor_table();
}
namespace avx512 {
FactorTable factor_table();
}

}  // namespace widemargin
