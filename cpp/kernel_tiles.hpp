// What rows sum with the samples of a strip, before the kernel function: dense, sparse, of ones and
// of levels. For kernel_rows.cpp.
#pragma once

#include "kernel_rows.hpp"
#include "levels.hpp"
#include "ones.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// A tile of products: rows of the batch x samples of a strip. As many sums as the registers hold.
constexpr std::size_t kTileRows = 6;
constexpr std::size_t kTileVectors = kVectorBytes == 64 ? 4 : 2;
// A sparse row reads a strip alone: more sums hide their latency.
constexpr std::size_t kSparseVectors = 8;

template <typename Real, std::size_t wanted>
constexpr std::size_t vectors_of_strip() {
  return wanted * kLanes<Real> < kStrip ? wanted : kStrip / kLanes<Real>;
}

// One more term. Where z is sparse, |x - z|_1 begins at |x|_1, and its terms say what differs; so
// does what chi2 sums, whose terms of z = 0 are those of |x|_1, too.
template <typename Real, Term kind, bool is_sparse>
inline Vector<Real> add_term(Vector<Real> sum, Real z, Vector<Real> x) {
  const Vector<Real> term = kernel_term<kind>(x, all<Real>(z));
  if constexpr (is_sparse && (kind == Term::size || kind == Term::share))
    return sum + (term - magnitude(x));
  else
    return sum + term;
}

// Not inlined: beside the constants of a kernel function GCC spills these sums, and it takes twice
// as long. Of the first `width` samples of the strip.
template <typename Real, Term kind, std::size_t rows, std::size_t wanted>
[[gnu::noinline]] void dense_tile(const Real* strip, std::size_t n, const Real* z,
                                  std::size_t width, Real* tile) {
  constexpr std::size_t vectors = vectors_of_strip<Real, wanted>();
  constexpr std::size_t lanes = kLanes<Real>;
  for (std::size_t s = 0; s < width; s += vectors * lanes) {
    for (std::size_t first = 0; first < n; first += kChunk) {
      Vector<Real> sums[rows][vectors] = {};
      const std::size_t last = n - first < kChunk ? n : first + kChunk;
      for (std::size_t j = first; j < last; ++j) {
        Vector<Real> x[vectors];
        for (std::size_t v = 0; v < vectors; ++v) x[v] = load(strip + j * kStrip + s + v * lanes);
        for (std::size_t r = 0; r < rows; ++r) {
          const Real zj = z[r * n + j];
          for (std::size_t v = 0; v < vectors; ++v)
            sums[r][v] = add_term<Real, kind, false>(sums[r][v], zj, x[v]);
        }
      }
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t v = 0; v < vectors; ++v) {
          Real* total = tile + r * kStrip + s + v * lanes;
          store(total, first == 0 ? sums[r][v] : load(total) + sums[r][v]);
        }
    }
  }
}

template <typename Real, Term kind, std::size_t wanted>
inline void sparse_tile(const Real* strip, const Real* z, const std::int32_t* indices,
                        std::size_t count, std::size_t width, Real* tile) {
  constexpr std::size_t vectors = vectors_of_strip<Real, wanted>();
  constexpr std::size_t lanes = kLanes<Real>;
  for (std::size_t s = 0; s < width; s += vectors * lanes) {
    Vector<Real> sums[vectors] = {};
    for (std::size_t p = 0; p < count; ++p) {
      const Real* x = strip + static_cast<std::size_t>(indices[p]) * kStrip + s;
      const Real zj = z[p];
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] = add_term<Real, kind, true>(sums[v], zj, load(x + v * lanes));
    }
    for (std::size_t v = 0; v < vectors; ++v) store(tile + s + v * lanes, sums[v]);
  }
}

// The products of sparse samples with a group of packed rows.
template <typename Real, Term kind>
inline void group_tile(const Strips<Real>& X, std::size_t strip, const Real* group, Real* tile) {
  constexpr std::size_t lanes = kLanes<Real>, vectors = kGroup / lanes;
  const std::size_t first = strip * kStrip;
  const std::size_t count = X.samples - first < kStrip ? X.samples - first : kStrip;
  for (std::size_t s = 0; s < count; ++s) {
    Vector<Real> sums[vectors] = {};
    for (auto p = X.indptr[first + s]; p < X.indptr[first + s + 1]; ++p) {
      const Real* z = group + static_cast<std::size_t>(X.indices[p]) * kGroup;
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] = add_term<Real, kind, true>(sums[v], X.data[p], load(z + v * lanes));
    }
    Real values[kGroup];
    for (std::size_t v = 0; v < vectors; ++v) store(values + v * lanes, sums[v]);
    for (std::size_t r = 0; r < kGroup; ++r) tile[r * kStrip + s] = values[r];
  }
  for (std::size_t r = 0; r < kGroup; ++r)
    for (std::size_t s = count; s < kStrip; ++s) tile[r * kStrip + s] = 0;
}

// The distance of two sparse rows with sorted columns, by differences: x from entry p on, z from q.
template <typename Real, Term kind>
inline Real apart(const Strips<Real>& X, std::int64_t p, std::int64_t p_end,
                  const Batch<Real>& batch, std::int64_t q, std::int64_t q_end) {
  Real sum = 0;
  while (p < p_end || q < q_end) {
    const bool has_x = p < p_end && (q == q_end || X.indices[p] <= batch.indices[q]);
    const bool has_z = q < q_end && (p == p_end || batch.indices[q] <= X.indices[p]);
    sum += kernel_term<kind>(has_x ? X.data[p] : Real(0), has_z ? batch.data[q] : Real(0));
    p += has_x;
    q += has_z;
  }
  return sum;
}

// The distances of sparse samples from sparse rows.
template <typename Real, Term kind>
inline std::size_t merged_tile(const Strips<Real>& X, std::size_t strip, const Batch<Real>& batch,
                               std::size_t row, Real* tile) {
  const std::size_t first = strip * kStrip;
  const std::size_t count = X.samples - first < kStrip ? X.samples - first : kStrip;
  const std::size_t left = batch.count - row, rows = left < kGroup ? left : kGroup;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t s = 0; s < kStrip; ++s)
      tile[r * kStrip + s] =
          s < count ? apart<Real, kind>(X, X.indptr[first + s], X.indptr[first + s + 1], batch,
                                        batch.begin[row + r], batch.end[row + r])
                    : Real(0);
  return rows;
}

// A tile of rows of the batch x the first `width` samples of a strip: returns how many rows are in
// it. `dense` and `sparse` vectors of sums at a time. Not inlined, as the sums below: each kernel
// would compile its own, in twice the time, and none is faster for it.
template <typename Real, Term kind, std::size_t dense, std::size_t sparse, std::size_t samples>
[[gnu::noinline]] std::size_t products(const Strips<Real>& X, std::size_t strip_number,
                                       const Batch<Real>& batch, std::size_t row, std::size_t some,
                                       Real* tile) {
  const std::size_t width = samples > 0 ? samples : some;
  const std::size_t left = batch.count - row, n = X.n;
  if constexpr (kind != Term::product) {
    if (X.indptr != nullptr && batch.begin != nullptr)
      return merged_tile<Real, kind>(X, strip_number, batch, row, tile);
  }
  if (X.indptr != nullptr) {
    group_tile<Real, kind>(X, strip_number, batch.data + row * n, tile);
    return left < kGroup ? left : kGroup;
  }
  if (X.levels != nullptr) return level_rows(X, strip_number, batch, row, tile);
  const std::size_t rows = left < kTileRows ? left : kTileRows;
  if (X.ones != nullptr) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = batch.begin[row + r];
      ones_tile<Real>(X.ones + strip_number * n * kStrip, batch.indices + first,
                      static_cast<std::size_t>(batch.end[row + r] - first), tile + r * kStrip);
    }
    return rows;
  }
  const Real* strip = X.data + strip_number * n * kStrip;
  if (batch.begin != nullptr) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = batch.begin[row + r];
      sparse_tile<Real, kind, sparse>(strip, batch.data + first, batch.indices + first,
                                      static_cast<std::size_t>(batch.end[row + r] - first), width,
                                      tile + r * kStrip);
    }
    return rows;
  }
  const Real* z = batch.data + row * n;
  if (rows == kTileRows) {
    dense_tile<Real, kind, kTileRows, dense>(strip, n, z, width, tile);
  } else {
    // A row alone hides the latency of its sums as a sparse one does.
    constexpr std::size_t alone = samples == kStrip ? sparse : dense;
    for (std::size_t r = 0; r < rows; ++r)
      dense_tile<Real, kind, 1, alone>(strip, n, z + r * n, width, tile + r * kStrip);
  }
  return rows;
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
