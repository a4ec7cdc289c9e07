// Values of a small table that bytes choose, a vector at a time. For files that are compiled once
// for each instruction set; everything is in their namespace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Values at 16, 32 or 64 places of a table, for the samples of a vector.
#if defined(__AVX512BW__)
constexpr bool kPicks = true;

template <std::size_t size>
struct Picks {
  static constexpr std::size_t vectors = size / 16;
  __m512 values[vectors];

  explicit Picks(const float* from) {
    for (std::size_t v = 0; v < vectors; ++v) values[v] = _mm512_loadu_ps(from + 16 * v);
  }
  Vector<float> operator()(const std::uint8_t* places) const {
    const __m512i at =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(places)));
    if constexpr (size == 16) {
      return (Vector<float>)_mm512_permutexvar_ps(at, values[0]);
    } else {
      const __m512 low = _mm512_permutex2var_ps(values[0], at, values[1]);
      if constexpr (size == 32) return (Vector<float>)low;
      const __m512 high = _mm512_permutex2var_ps(values[vectors - 2], at, values[vectors - 1]);
      const __mmask16 is_high = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
      return (Vector<float>)_mm512_mask_blend_ps(is_high, low, high);
    }
  }
};
#elif defined(__AVX2__)
constexpr bool kPicks = true;

template <std::size_t size>
struct Picks {
  static constexpr std::size_t vectors = size / 8;
  __m256 values[vectors];

  explicit Picks(const float* from) {
    for (std::size_t v = 0; v < vectors; ++v) values[v] = _mm256_loadu_ps(from + 8 * v);
  }
  Vector<float> operator()(const std::uint8_t* places) const {
    const __m256i at =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(places)));
    __m256 found[vectors];
    for (std::size_t v = 0; v < vectors; ++v) found[v] = _mm256_permutevar8x32_ps(values[v], at);
    // Bits 3, 4 and 5 of the places, where blends look: at the sign.
    for (std::size_t bit = 0, left = vectors / 2; left > 0; ++bit, left /= 2) {
      const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28 - static_cast<int>(bit)));
      for (std::size_t v = 0; v < left; ++v)
        found[v] = _mm256_blendv_ps(found[2 * v], found[2 * v + 1], is_high);
    }
    return (Vector<float>)found[0];
  }
};
#else
constexpr bool kPicks = false;

template <std::size_t size>
struct Picks {
  explicit Picks(const float*) {}
  Vector<float> operator()(const std::uint8_t*) const { return Vector<float>{}; }
};
#endif

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
