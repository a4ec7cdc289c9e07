// Distances of samples whose entries are a unit times integers from 0 to 255: sums of products of
// bytes, which are exact. For kernel_rows.cpp.
#pragma once

#include "kernel_rows.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// sums[r][s] = sum of x_js z_rj over the features of a strip, for some rows.
template <std::size_t rows>
inline void level_products(const std::uint8_t* strip, const std::int8_t* z, std::size_t n,
                           std::int32_t (*sums)[kStrip]) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t s = 0; s < kStrip; ++s) sums[r][s] = 0;
  for (std::size_t j = 0; j < n; j += kLevelsTogether, strip += kLevelsTogether * kStrip)
    for (std::size_t r = 0; r < rows; ++r) {
      const std::int8_t* own = z + r * n + j;
      for (std::size_t s = 0; s < kStrip; ++s)
        for (std::size_t k = 0; k < kLevelsTogether; ++k)
          sums[r][s] += std::int32_t{strip[s * kLevelsTogether + k]} * own[k];
    }
}

#if defined(__AVX512BW__) && defined(__x86_64__)
// The same by an instruction of some processors: 64 products at once.
template <std::size_t rows>
[[gnu::noinline, gnu::target("avx512vnni")]] void level_products_vnni(
    const std::uint8_t* strip, const std::int8_t* z, std::size_t n, std::int32_t (*sums)[kStrip]) {
  constexpr std::size_t vectors = kStrip / kLanes<float>;
  IntVector<float> some[rows][vectors] = {};
  for (std::size_t j = 0; j < n; j += kLevelsTogether, strip += kLevelsTogether * kStrip) {
    __m512i x[vectors];
    for (std::size_t v = 0; v < vectors; ++v) x[v] = _mm512_loadu_si512(strip + 64 * v);
    for (std::size_t r = 0; r < rows; ++r) {
      std::int32_t four;
      std::memcpy(&four, z + r * n + j, sizeof(four));
      const __m512i own = _mm512_set1_epi32(four);
      for (std::size_t v = 0; v < vectors; ++v)
        some[r][v] = (IntVector<float>)_mm512_dpbusd_epi32((__m512i)some[r][v], x[v], own);
    }
  }
  std::memcpy(sums, some, sizeof(some));
}
inline bool has_vnni() { return __builtin_cpu_supports("avx512vnni"); }
#endif

template <std::size_t rows>
inline void level_sums(const std::uint8_t* strip, const std::int8_t* z, std::size_t n,
                       std::int32_t (*sums)[kStrip]) {
#if defined(__AVX512BW__) && defined(__x86_64__)
  if (has_vnni()) return level_products_vnni<rows>(strip, z, n, sums);
#endif
  level_products<rows>(strip, z, n, sums);
}

// Minus half of the squared distances, as products stand where norms are zero, of a strip from
// some rows of a batch. Sums that wrap end right: no distance is above what 32 bits hold.
template <std::size_t rows, typename Real>
inline void level_tile(const Strips<Real>& X, std::size_t strip, const Batch<Real>& batch,
                       std::size_t row, Real* tile) {
  std::int32_t sums[rows][kStrip];
  level_sums<rows>(X.levels + strip * X.n * kStrip, batch.levels + row * X.n, X.n, sums);
  const std::int32_t* norms = X.level_norms + strip * kStrip;
  const Real factor = Real(-0.5) * X.square;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto own = static_cast<std::uint32_t>(batch.level_norms[row + r]);
    for (std::size_t s = 0; s < kStrip; ++s) {
      const std::uint32_t apart =
          static_cast<std::uint32_t>(norms[s]) + own - 2 * static_cast<std::uint32_t>(sums[r][s]);
      tile[r * kStrip + s] = static_cast<Real>(static_cast<std::int32_t>(apart)) * factor;
    }
  }
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
