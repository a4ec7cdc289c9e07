// Sweeps that read each row once: scores z = Y (X w + b), a step of the row vectors that makes
// u of z, and the sums (Y [X 1])' u, in chunks of rows that stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "csr.hpp"
#include "dense.hpp"
#include "lane_sums.hpp"
#include "simd.hpp"

namespace widemargin {

// About what a chunk of rows may take of the cache.
constexpr std::size_t kChunkBytes = 8192;

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

// Signs of the rows: numbers, or bytes, which are made numbers a chunk at a time.
class Signs {
 public:
  Signs(std::span<const double> y) : wide_(y.data()), size_(y.size()) {}
  Signs(std::span<const std::int8_t> y) : narrow_(y.data()), size_(y.size()) {}

  std::size_t size() const { return size_; }
  // Those of the rows begin .. end - 1, which lie in `chunk` where they are bytes.
  const double* at(std::size_t begin, std::size_t end, double* chunk) const {
    if (wide_) return wide_ + begin;
    for (std::size_t i = begin; i < end; ++i) chunk[i - begin] = narrow_[i];
    return chunk;
  }
  double operator[](std::size_t i) const { return wide_ ? wide_[i] : narrow_[i]; }

 private:
  const double* wide_ = nullptr;
  const std::int8_t* narrow_ = nullptr;
  std::size_t size_;
};

// step(begin, end, z, u) gets the scores z = y (X w + b) of the rows begin .. end - 1, where v is
// not empty, and fills the columns of u. Then G += U' Y [X 1], a line for each column: as wide as
// X, or one wider with an intercept. v = (w, b), or w without intercept.
template <std::size_t columns, typename Rows, typename Step>
void fused_sweep(const Rows& X, const Signs& all, std::span<const double> v, std::span<double> G,
                 Step step) {
  double z[kChunkRows], signs[kChunkRows], u[std::max(columns, std::size_t{1})][kChunkRows];
  const std::size_t size = X.chunk(), k = X.rows(), n = X.columns();
  const std::size_t width = columns ? G.size() / columns : 0;
  const double b = v.size() > n ? v[n] : 0.0;
  for (std::size_t begin = 0; begin < k; begin += size) {
    const std::size_t end = std::min(begin + size, k), rows = end - begin;
    const double* y = all.at(begin, end, signs);
    if (!v.empty()) {
      X.matvec(begin, end, v.data(), z);
      for (std::size_t i = 0; i < rows; ++i) z[i] = y[i] * (z[i] + b);
    }
    step(begin, end, z, u);
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t i = 0; i < rows; ++i) u[c][i] *= y[i];
      X.rmatvec(begin, end, u[c], &G[c * width]);
      if (width > n) G[c * width + n] += sum_of<4>(rows, [&](std::size_t i) { return u[c][i]; });
    }
  }
}

}  // namespace widemargin
