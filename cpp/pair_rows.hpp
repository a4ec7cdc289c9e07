// Rows of K as pair steps have them: stored, rounded, or made when they are asked for. For files
// that are compiled once for each instruction set; everything is in their namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pair_steps.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// A place in a row of rounded values.
struct Rounded {
  const std::int16_t* p;
  Rounded& operator+=(std::size_t step) {
    p += step;
    return *this;
  }
};
typedef std::int16_t Shorts __attribute__((vector_size(kVectorBytes / 2)));
inline Shorts shorts(Rounded from) {
  Shorts v;
  std::memcpy(&v, from.p, sizeof(v));
  return v;
}
inline Vector<float> widened(Shorts v) {
#if defined(__AVX512F__)
  __m256i some;
  std::memcpy(&some, &v, sizeof(v));
  return (Vector<float>)_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(some));
#elif defined(__AVX2__)
  __m128i some;
  std::memcpy(&some, &v, sizeof(v));
  return (Vector<float>)_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(some));
#else
  return __builtin_convertvector(__builtin_convertvector(v, IntVector<float>), Vector<float>);
#endif
}
// Values, and differences of two, in the unit that they are stored in: a product with it is a
// product with what follows.
inline Vector<float> in_units(Rounded from) { return widened(shorts(from)); }
inline Vector<float> apart(Rounded a, Rounded b) { return widened(shorts(a) - shorts(b)); }
template <typename Real>
inline Vector<Real> in_units(const Real* from) {
  return load(from);
}
template <typename Real>
inline Vector<Real> apart(const Real* a, const Real* b) {
  return load(a) - load(b);
}
// Rounded rows come from beyond the second-level cache: how many values ahead they are asked for.
constexpr std::size_t kAhead = 512;
inline void ahead(Rounded from) { __builtin_prefetch(from.p + kAhead); }
template <typename Real>
inline void ahead(const Real*) {}
template <typename Real, template <typename> class Rows>
constexpr Real kUnit = 1;
template <>
constexpr float kUnit<float, RoundedRows> = kRoundedUnit;

// f(part of row i, of row j, position where they begin, where they end, which part it is).
template <typename Real, class F>
inline void with_parts(const StoredRows<Real>& K, std::size_t i, std::size_t j, const F& f) {
  f(K.K + i * K.width, K.K + j * K.width, std::size_t{0}, K.width, std::size_t{0});
}
template <typename Real, class F>
inline void with_parts(const RoundedRows<Real>& K, std::size_t i, std::size_t j, const F& f) {
  f(Rounded{K.K + i * K.width}, Rounded{K.K + j * K.width}, std::size_t{0}, K.width,
    std::size_t{0});
}
template <typename Real>
inline const Real* part(const MadeRows<Real>& K, std::size_t i, std::size_t g) {
  const Real* known = __atomic_load_n(K.parts[i] + K.id[g], __ATOMIC_ACQUIRE);
  return known != nullptr ? known : K.make(K.maker, i, g);
}
template <typename Real, class F>
inline void with_parts(const MadeRows<Real>& K, std::size_t i, std::size_t j, const F& f) {
  for (std::size_t g = 0; g < K.count; ++g) {
    const Real *const a = part(K, i, g), *const b = part(K, j, g);
    const std::size_t begin = K.begin[g], *const still = K.still + 3 * g;
    if (begin < still[0]) f(a, b, begin, still[0], g);
    if (still[1] < still[2])
      f(a + (still[1] - begin), b + (still[1] - begin), still[1], still[2], g);
  }
}

// Whether steps are to end before the next one.
template <template <typename> class Rows, typename Real>
inline bool is_over(const Rows<Real>&) {
  return false;
}
template <typename Real>
inline bool is_over(const MadeRows<Real>& K) {
  return *K.is_over;
}
// The value K(i, j).
template <typename Real>
inline Real value(const StoredRows<Real>& K, std::size_t i, std::size_t j) {
  return K.K[i * K.width + j];
}
template <typename Real>
inline Real value(const RoundedRows<Real>& K, std::size_t i, std::size_t j) {
  return static_cast<Real>(K.K[i * K.width + j]) * kRoundedUnit;
}
template <typename Real>
inline Real value(const MadeRows<Real>& K, std::size_t i, std::size_t j) {
  std::size_t g = 0;
  while (j >= K.begin[g + 1]) ++g;
  return part(K, i, g)[j - K.begin[g]];
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
