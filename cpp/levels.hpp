// Distances of samples whose entries are a unit times integers from 0 to 255: sums of products of
// bytes, which are exact. For kernel_rows.cpp.
#pragma once

#include "kernel_rows.hpp"
#include "level_tiles.hpp"
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
  if constexpr (rows == kGroup) {
    level_products_tiles(strip, z, n, sums);
  } else {
#if defined(__AVX512BW__) && defined(__x86_64__)
    if (has_vnni()) return level_products_vnni<rows>(strip, z, n, sums);
#endif
    level_products<rows>(strip, z, n, sums);
  }
}

// sums[s] = sum of x_js z_j over the groups of features of a row that are not all zero: images are
// dark in many places. Words are multiplied, 16 at once.
inline void group_sums(const std::uint8_t* strip, const std::uint8_t* z, const std::int32_t* groups,
                       std::size_t count, std::int32_t* sums) {
#if defined(__AVX2__) && defined(__x86_64__)
  constexpr std::size_t vectors = 8, half = kStrip / 2;  // four samples each
  const __m256i zero = _mm256_setzero_si256();
  for (std::size_t s = 0; s < kStrip; s += half) {
    __m256i some[vectors];
    for (std::size_t v = 0; v < vectors; ++v) some[v] = zero;
    for (std::size_t p = 0; p < count; ++p) {
      const auto at = static_cast<std::size_t>(groups[p]) * kLevelsTogether;
      std::int32_t four;
      std::memcpy(&four, z + at, sizeof(four));
      const __m256i own = _mm256_unpacklo_epi8(_mm256_set1_epi32(four), zero);
      const std::uint8_t* x = strip + at * kStrip + s * kLevelsTogether;
      for (std::size_t v = 0; v < vectors; ++v) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * v));
        const __m256i products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), own);
        some[v] = _mm256_add_epi32(some[v], products);
      }
    }
    for (std::size_t v = 0; v < vectors; v += 2) {
      const __m256i pairs = _mm256_hadd_epi32(some[v], some[v + 1]);
      const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xD8);
      std::memcpy(sums + s + 4 * v, &ordered, sizeof(ordered));
    }
  }
#else
  for (std::size_t s = 0; s < kStrip; ++s) sums[s] = 0;
  for (std::size_t p = 0; p < count; ++p) {
    const auto at = static_cast<std::size_t>(groups[p]) * kLevelsTogether;
    for (std::size_t s = 0; s < kStrip; ++s)
      for (std::size_t k = 0; k < kLevelsTogether; ++k)
        sums[s] += std::int32_t{strip[at * kStrip + s * kLevelsTogether + k]} * z[at + k];
  }
#endif
}

// Whether the next kGroup rows of a batch, from `row` on, are made by tiles: where any are, those
// from 0 on are.
template <typename Real>
inline bool makes_tiles(const Strips<Real>& X, const Batch<Real>& batch, std::size_t row) {
  return X.levels != nullptr && batch.begin == nullptr && batch.count - row >= kGroup &&
         has_tiles();
}

// Minus half of the squared distances, as products stand where norms are zero, of a strip from
// some rows of a batch. Sums that wrap end right: no distance is above what 32 bits hold.
template <std::size_t rows, typename Real>
inline void level_tile(const Strips<Real>& X, std::size_t strip, const Batch<Real>& batch,
                       std::size_t row, Real* tile) {
  std::int32_t sums[rows][kStrip];
  const std::uint8_t* own_levels = X.levels + strip * X.n * kStrip;
  if (batch.begin != nullptr) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = batch.begin[row + r], last = batch.end[row + r];
      const auto* z = reinterpret_cast<const std::uint8_t*>(batch.levels + (row + r) * X.n);
      group_sums(own_levels, z, batch.indices + first, static_cast<std::size_t>(last - first),
                 sums[r]);
    }
  } else {
    level_sums<rows>(own_levels, batch.levels + row * X.n, X.n, sums);
  }
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

// The same of up to kGroup rows: returns how many. With tiles or without them as many, which are
// then added up together, so that sums have the same bits. 6 rows fill the registers, as in
// kernel_tiles.hpp; 4 are what two of these leave.
template <typename Real>
inline std::size_t level_rows(const Strips<Real>& X, std::size_t strip, const Batch<Real>& batch,
                              std::size_t row, Real* tile) {
  if (makes_tiles(X, batch, row)) {
    level_tile<kGroup>(X, strip, batch, row, tile);
    return kGroup;
  }
  const std::size_t left = batch.count - row, rows = left < kGroup ? left : kGroup;
  std::size_t r = 0;
  for (; r + 6 <= rows; r += 6) level_tile<6>(X, strip, batch, row + r, tile + r * kStrip);
  for (; r + 4 <= rows; r += 4) level_tile<4>(X, strip, batch, row + r, tile + r * kStrip);
  for (; r < rows; ++r) level_tile<1>(X, strip, batch, row + r, tile + r * kStrip);
  return rows;
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
