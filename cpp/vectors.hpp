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

#if defined(__AVX512F__)
// exp(x) = 2^(n + r), n a multiple of 1 or 1/16 near x / log 2: of e^x as of 2^r within 2 units in
// the last place, by polynomials that are nearly the best ones and 1 at 0. Instructions of AVX-512
// round and scale. 0 where the result would not be a normal number; x up to 88 (709).
inline Vector<float> exponential(Vector<float> x) {
  const auto v = (__m512)x, log2 = _mm512_set1_ps(1.44269502f);
  const __mmask16 is_normal = _mm512_cmp_ps_mask(v, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
  const __m512 n = _mm512_roundscale_ps(v * log2, _MM_FROUND_TO_NEAREST_INT);
  const auto r = (Vector<float>)_mm512_fmadd_ps(v, _mm512_set1_ps(1.92596299e-8f),
                                                _mm512_fmsub_ps(v, log2, n));
  Vector<float> p = all(1.55946967e-4f);
  p = p * r + 1.34066457e-3f;
  p = p * r + 9.61769279e-3f;
  p = p * r + 5.55031039e-2f;
  p = p * r + 2.40226522e-1f;
  p = p * r + 6.93147242e-1f;
  p = p * r + 1.0f;
  return (Vector<float>)_mm512_maskz_scalef_ps(is_normal, (__m512)p, n);
}

// n in sixteenths, whose powers stand in a table.
inline Vector<double> exponential(Vector<double> x) {
  const auto v = (__m512d)x, log2 = _mm512_set1_pd(1.4426950408889634);
  const __mmask8 is_normal = _mm512_cmp_pd_mask(v, _mm512_set1_pd(-708.0), _CMP_NLT_UQ);
  const auto magic = _mm512_set1_pd(0x1.8p48);  // adding it rounds to sixteenths
  const __m512d shifted = _mm512_fmadd_pd(v, log2, magic), n = shifted - magic;
  const auto r = (Vector<double>)_mm512_fmadd_pd(v, _mm512_set1_pd(2.0355273740931033e-17),
                                                 _mm512_fmsub_pd(v, log2, n));
  Vector<double> p = all(1.5404207334857473e-4);
  p = p * r + 1.3333820160845201e-3;
  p = p * r + 9.6181291020826908e-3;
  p = p * r + 5.5504108651963507e-2;
  p = p * r + 2.4022650695910167e-1;
  p = p * r + 6.9314718055994684e-1;
  const auto low =
      _mm512_setr_pd(1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
                     1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927);
  const auto high =
      _mm512_setr_pd(1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
                     1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474);
  const auto share = (Vector<double>)_mm512_permutex2var_pd(low, (__m512i)shifted, high);
  return (Vector<double>)_mm512_maskz_scalef_pd(is_normal, (__m512d)(share * (p * r) + share), n);
}
#else
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

#if defined(__FMA__)
// exp(-rate t) of t >= 0 = 2^(n + r), as AVX-512 has it: the rate is scaled in place of each t. Of
// some vectors at once, as of float64 below: each step waits for the one before.
template <std::size_t count>
inline void decays(Vector<float> (&t)[count], float rate) {
  const double scaled = static_cast<double>(rate) * -1.4426950408889634;
  const auto high = static_cast<float>(scaled), low = static_cast<float>(scaled - high);
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  Vector<float> shifted[count], p[count];
  for (std::size_t v = 0; v < count; ++v) shifted[v] = t[v] * high + magic;
  for (std::size_t v = 0; v < count; ++v) t[v] = (t[v] * high - (shifted[v] - magic)) + t[v] * low;
  for (std::size_t v = 0; v < count; ++v) p[v] = t[v] * 1.55946967e-4f + 1.34066457e-3f;
  constexpr float terms[] = {9.61769279e-3f, 5.55031039e-2f, 2.40226522e-1f, 6.93147242e-1f, 1.0f};
  for (const float term : terms)
    for (std::size_t v = 0; v < count; ++v) p[v] = p[v] * t[v] + term;
  for (std::size_t v = 0; v < count; ++v) {
    IntVector<float> exponent, bits;
    std::memcpy(&exponent, &shifted[v], sizeof(exponent));
    std::memcpy(&bits, &p[v], sizeof(bits));
    bits += exponent << 23;
    std::memcpy(&p[v], &bits, sizeof(bits));
    t[v] = shifted[v] < all(magic - 125.0f) ? all(0.0f) : p[v];
  }
}
#endif

template <std::size_t count>
inline void exponentials(Vector<double> (&x)[count]) {
  const auto magic = all(6755399441055744.0);  // 1.5 * 2^52
  Vector<double> shifted[count], r[count], p[count];
  for (std::size_t v = 0; v < count; ++v) {
    x[v] = x[v] < all(-709.0) ? all(-709.0) : x[v];
    shifted[v] = x[v] * 1.4426950408889634074 + magic;
  }
  for (std::size_t v = 0; v < count; ++v) {
    const Vector<double> n = shifted[v] - magic;
    r[v] = (x[v] - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  }
  for (std::size_t v = 0; v < count; ++v) p[v] = r[v] * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  constexpr double terms[] = {
      1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
      1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      0.5,           1.0,          1.0};
  for (const double term : terms)
    for (std::size_t v = 0; v < count; ++v) p[v] = p[v] * r[v] + term;
  for (std::size_t v = 0; v < count; ++v) {
    IntVector<double> exponent, bits;
    std::memcpy(&exponent, &shifted[v], sizeof(exponent));
    std::memcpy(&bits, &p[v], sizeof(bits));
    bits += exponent << 52;
    std::memcpy(&p[v], &bits, sizeof(bits));
    x[v] = x[v] < all(-708.0) ? all(0.0) : p[v];
  }
}

inline Vector<double> exponential(Vector<double> x) {
  Vector<double> some[1] = {x};
  exponentials(some);
  return some[0];
}

template <std::size_t count>
inline void decays(Vector<double> (&t)[count], double rate) {
  for (std::size_t v = 0; v < count; ++v) t[v] = t[v] * -rate;
  exponentials(t);
}
#endif

// exp(-rate t) of t >= 0, of vectors in their place.
template <std::size_t count, typename V, typename Real>
inline void decays(V (&t)[count], Real rate) {
  for (std::size_t v = 0; v < count; ++v) t[v] = exponential(t[v] * -rate);
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
