// Sweeps that read each row once: scores z = Y (X w + b), a step of the row vectors that makes
// u of z, and the sums (Y [X 1])' u, in chunks of rows that stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "csr.hpp"
#include "dense.hpp"
#include "simd.hpp"

namespace widemargin {

// About what a chunk of rows may take of the cache, and the most rows of one.
constexpr std::size_t kChunkBytes = 16384;
constexpr std::size_t kChunkRows = 128;

// Dense rows with the products of this processor's instruction set.
template <typename Real>
struct FusedDense {
  DenseView<Real> X;
  DenseProducts<Real> products;

  std::size_t rows() const { return X.k; }
  std::size_t columns() const { return X.n; }
  std::size_t chunk() const {
    return std::clamp(kChunkBytes / (X.n * sizeof(Real) + 1) / 8 * 8, std::size_t{8}, kChunkRows);
  }
  DenseView<Real> slice(std::size_t begin, std::size_t end) const {
    return {X.data + begin * X.n, end - begin, X.n};
  }
  void matvec(std::size_t begin, std::size_t end, const double* w, double* out) const {
    products.matvec(slice(begin, end), w, out);
  }
  void rmatvec(std::size_t begin, std::size_t end, const double* u, double* out) const {
    products.rmatvec(slice(begin, end), u, out);
  }
};

template <typename Real, typename Index>
struct FusedCsr {
  CsrView<Real, Index> X;
  std::size_t n;

  std::size_t rows() const { return X.rows(); }
  std::size_t columns() const { return n; }
  std::size_t chunk() const { return kChunkRows; }
  void matvec(std::size_t begin, std::size_t end, const double* w, double* out) const {
    X.matvec(begin, end, w, out);
  }
  void rmatvec(std::size_t begin, std::size_t end, const double* u, double* out) const {
    X.rmatvec(begin, end, u, out);
  }
};

// step(begin, end, z, u) gets the scores z = y (X w + b) of the rows begin .. end - 1, where v is
// not empty, and fills the columns of u. Then G += U' Y [X 1], a line for each column: as wide as
// X, or one wider with an intercept. v = (w, b), or w without intercept.
template <std::size_t columns, typename Rows, typename Step>
void fused_sweep(const Rows& X, const double* y, std::span<const double> v, std::span<double> G,
                 Step step) {
  double z[kChunkRows], u[std::max(columns, std::size_t{1})][kChunkRows];
  const std::size_t size = X.chunk(), k = X.rows(), n = X.columns();
  const std::size_t width = columns ? G.size() / columns : 0;
  const double b = v.size() > n ? v[n] : 0.0;
  for (std::size_t begin = 0; begin < k; begin += size) {
    const std::size_t end = std::min(begin + size, k), rows = end - begin;
    if (!v.empty()) {
      X.matvec(begin, end, v.data(), z);
      for (std::size_t i = 0; i < rows; ++i) z[i] = y[begin + i] * (z[i] + b);
    }
    step(begin, end, z, u);
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0.0;
      for (std::size_t i = 0; i < rows; ++i) {
        u[c][i] *= y[begin + i];
        sum += u[c][i];
      }
      X.rmatvec(begin, end, u[c], &G[c * width]);
      if (width > n) G[c * width + n] += sum;
    }
  }
}

}  // namespace widemargin
