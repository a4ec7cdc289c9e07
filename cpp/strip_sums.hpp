// Sums of kernel values over rows, for the samples of a strip. For kernel_rows.cpp.
#pragma once

#include "kernel_functions.hpp"
#include "kernel_rows.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Sums of one strip for each column of the weights: of a tile in float32, then added to float64.
// Longer float32 sums were the largest error of all. Float64 is added up to the end.
template <typename Real>
struct Sums {
  static constexpr std::size_t kColumns = 64;  // of the weights that one pass serves
  Real values[kColumns][kStrip];

  void clear(std::size_t columns, std::size_t samples) {
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t s = 0; s < samples; ++s) values[c][s] = 0;
  }
  // Some more rows of values; weights[r * stride + c]. Sums of a column stay in registers.
  [[gnu::noinline]] void add(const Real* tile, std::size_t rows, const double* weights,
                             std::size_t stride, std::size_t columns, std::size_t samples) {
    constexpr std::size_t lanes = kLanes<Real>, some = 4 * lanes;
    std::size_t found[kGroup];
    for (std::size_t c = 0; c < columns; ++c) {
      std::size_t count = 0, s = 0;
      for (std::size_t r = 0; r < rows; ++r)
        found[count] = r, count += static_cast<Real>(weights[r * stride + c]) != 0 ? 1 : 0;
      const double* const own = weights + c;
      if (count == 0) continue;
      for (; s + some <= samples; s += some)
        add_vectors<4>(tile + s, found, count, own, stride, values[c] + s);
      for (; s < samples; s += lanes)
        add_vectors<1>(tile + s, found, count, own, stride, values[c] + s);
    }
  }
  template <std::size_t vectors>
  static void add_vectors(const Real* tile, const std::size_t* found, std::size_t count,
                          const double* weights, std::size_t stride, Real* sum) {
    constexpr std::size_t lanes = kLanes<Real>;
    Vector<Real> total[vectors];
    for (std::size_t k = 0; k < vectors; ++k) total[k] = load(sum + k * lanes);
    for (std::size_t i = 0; i < count; ++i) {
      const Real w = static_cast<Real>(weights[found[i] * stride]);
      const Real* const line = tile + found[i] * kStrip;
      for (std::size_t k = 0; k < vectors; ++k) total[k] = total[k] + load(line + k * lanes) * w;
    }
    for (std::size_t k = 0; k < vectors; ++k) store(sum + k * lanes, total[k]);
  }
  [[gnu::noinline]] void flush(double* sums, std::size_t columns, std::size_t samples,
                               std::size_t stride) {
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t s = 0; s < samples; ++s) {
        sums[c * stride + s] += static_cast<double>(values[c][s]);
        values[c][s] = 0;
      }
  }
};

// The sum of weights times the values of a line.
template <typename Real>
[[gnu::noinline]] double weighted(const Real* line, const Real* weights, std::size_t width) {
  Vector<Real> sums{};
  for (std::size_t s = 0; s < width; s += kLanes<Real>)
    sums = sums + load(line + s) * load(weights + s);
  return total(sums);
}

// The same sums, to the bit, where the strip has one sample: lanes are columns of the weights.
template <typename Real>
struct SumsOfOne {
  Real values[Sums<Real>::kColumns];

  void clear(std::size_t columns, std::size_t) {
    for (std::size_t c = 0; c < columns; ++c) values[c] = 0;
  }
  [[gnu::noinline]] void add(const Real* tile, std::size_t rows, const double* weights,
                             std::size_t stride, std::size_t columns, std::size_t) {
    for (std::size_t r = 0; r < rows; ++r, weights += stride) {
      const Real value = tile[r * kStrip];
#pragma omp simd
      for (std::size_t c = 0; c < columns; ++c) {
        const Real w = static_cast<Real>(weights[c]), sum = values[c] + value * w;
        values[c] = w == 0 ? values[c] : sum;
      }
    }
  }
  [[gnu::noinline]] void flush(double* sums, std::size_t columns, std::size_t, std::size_t stride) {
    for (std::size_t c = 0; c < columns; ++c) {
      sums[c * stride] += static_cast<double>(values[c]);
      values[c] = 0;
    }
  }
};

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
