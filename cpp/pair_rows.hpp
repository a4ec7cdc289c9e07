// Rows of K as pair steps have them: stored, rounded, or made when they are asked for. For files
// that are compiled once for each instruction set; everything is in their namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernel_rows.hpp"
#include "pair_steps.hpp"
#include "picks.hpp"
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
// A place in a row of coded values.
struct Coded {
  const std::uint8_t* p;
  const float* table;
  Picks<kCodes> values;
  Coded& operator+=(std::size_t step) {
    p += step;
    return *this;
  }
};
inline Vector<float> in_units(const Coded& from) { return from.values(from.p); }
inline Vector<float> apart(const Coded& a, const Coded& b) { return a.values(a.p) - b.values(b.p); }
inline void ahead(const Coded&) {}
// The value so many places further.
inline float one(const Coded& from, std::size_t k) { return from.table[from.p[k]]; }
inline float one(const float* from, std::size_t k) { return from[k]; }

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
template <typename Stored>
inline const Stored* part(const RowParts<Stored>& K, std::size_t i, std::size_t g) {
  const Stored* known = __atomic_load_n(K.parts[i] + K.id[g], __ATOMIC_ACQUIRE);
  return known != nullptr ? known : K.make(K.maker, i, g);
}
// With places in the parts, as place_at says.
template <typename Stored, class Place, class F>
inline void with_parts_at(const RowParts<Stored>& K, std::size_t i, std::size_t j,
                          const Place& place_at, const F& f) {
  for (std::size_t g = 0; g < K.count; ++g) {
    const Stored *const a = part(K, i, g), *const b = part(K, j, g);
    const std::size_t begin = K.begin[g], *const still = K.still + 3 * g;
    if (begin < still[0]) f(place_at(a), place_at(b), begin, still[0], g);
    if (still[1] < still[2])
      f(place_at(a + (still[1] - begin)), place_at(b + (still[1] - begin)), still[1], still[2], g);
  }
}
template <typename Real, class F>
inline void with_parts(const MadeRows<Real>& K, std::size_t i, std::size_t j, const F& f) {
  with_parts_at(K, i, j, [](const Real* at) { return at; }, f);
}
template <class F>
inline void with_parts(const CodedRows<float>& K, std::size_t i, std::size_t j, const F& f) {
  const Picks<kCodes> values(K.values);
  const auto place_at = [&](const std::uint8_t* at) { return Coded{at, K.values, values}; };
  with_parts_at(K, i, j, place_at, f);
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
template <typename Real>
inline bool is_over(const CodedRows<Real>& K) {
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
template <typename Stored>
inline Stored stored(const RowParts<Stored>& K, std::size_t i, std::size_t j) {
  std::size_t g = 0;
  while (j >= K.begin[g + 1]) ++g;
  return part(K, i, g)[j - K.begin[g]];
}
template <typename Real>
inline Real value(const MadeRows<Real>& K, std::size_t i, std::size_t j) {
  return stored(K, i, j);
}
inline float value(const CodedRows<float>& K, std::size_t i, std::size_t j) {
  return K.values[stored(K, i, j)];
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
