// Vectors of the width of the instruction set that a file is compiled for, and exp of them. For
// files that are compiled once for each; everything is in their namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

template <typename Real>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(kVectorBytes)));
  typedef std::int32_t Int __attribute__((vector_size(kVectorBytes)));
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(kVectorBytes)));
  typedef std::int64_t Int __attribute__((vector_size(kVectorBytes)));
};
template <typename Real>
using Vector = typename VectorOf<Real>::Type;
template <typename Real>
using IntVector = typename VectorOf<Real>::Int;
template <typename Real>
constexpr std::size_t kLanes = kVectorBytes / sizeof(Real);

template <typename Real>
inline Vector<Real> load(const Real* p) {
  Vector<Real> v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

template <typename Real>
inline void store(Real* p, Vector<Real> v) {
  std::memcpy(p, &v, sizeof(v));
}

template <typename Real>
inline Vector<Real> all(Real x) {
  return x - Vector<Real>{};
}

// About 1 / x, to some 11 bits: to compare by.
template <typename Real>
inline Vector<Real> about_inverse(Vector<Real> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Real) == 4) {
    __m512 v;
    std::memcpy(&v, &x, sizeof(v));
    v = _mm512_rcp14_ps(v);
    std::memcpy(&x, &v, sizeof(v));
    return x;
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(Real) == 4) {
    __m256 v;
    std::memcpy(&v, &x, sizeof(v));
    v = _mm256_rcp_ps(v);
    std::memcpy(&x, &v, sizeof(v));
    return x;
  }
#endif
  return Real(1) / x;
}

// Store past the caches, to an address that is a multiple of the vector's size.
template <typename Real>
inline void stream(Real* p, Vector<Real> v) {
#if defined(__AVX512F__)
  __m512i bits;
  std::memcpy(&bits, &v, sizeof(v));
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), bits);
#elif defined(__AVX2__)
  __m256i bits;
  std::memcpy(&bits, &v, sizeof(v));
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits);
#elif defined(__SSE2__)
  __m128i bits;
  std::memcpy(&bits, &v, sizeof(v));
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), bits);
#else
  store(p, v);
#endif
}

// After the last `stream`, before another thread reads.
inline void end_of_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <typename Real>
inline Vector<Real> least(Vector<Real> a, Vector<Real> b) {
  return a < b ? a : b;
}

template <typename Real>
inline Vector<Real> absolute(Vector<Real> a) {
  return a < all<Real>(0) ? -a : a;
}

// exp(x): x = n log 2 + r with |r| <= log(2) / 2, the series of e^r, times 2^n by its bits. Within
// 2 units in the last place; 0 where the result would not be a normal number; x up to 88 (709).
inline Vector<float> exponential(Vector<float> x) {
  const auto tiny = x < all(-87.0f);
  x = tiny ? all(-87.0f) : x;
  const auto magic = all(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Vector<float> shifted = x * 1.44269504088896341f + magic;
  const Vector<float> n = shifted - magic;
  const Vector<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vector<float> p = all(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  IntVector<float> exponent, bits;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  std::memcpy(&bits, &p, sizeof(bits));
  bits += exponent << 23;
  std::memcpy(&p, &bits, sizeof(p));
  return tiny ? all(0.0f) : p;
}

inline Vector<double> exponential(Vector<double> x) {
  const auto tiny = x < all(-708.0);
  x = tiny ? all(-708.0) : x;
  const auto magic = all(6755399441055744.0);  // 1.5 * 2^52
  const Vector<double> shifted = x * 1.4426950408889634074 + magic;
  const Vector<double> n = shifted - magic;
  const Vector<double> r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  Vector<double> p = all(1.0 / 6227020800.0);
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  IntVector<double> exponent, bits;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  std::memcpy(&bits, &p, sizeof(bits));
  bits += exponent << 52;
  std::memcpy(&p, &bits, sizeof(p));
  return tiny ? all(0.0) : p;
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
