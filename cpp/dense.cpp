// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "dense.hpp"

#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Sums are kept in this many lanes whatever the vector width, so that instruction sets agree up to
// fused multiply-add.
constexpr std::size_t kSums = 8;
// Rows that share the loads of w, or of the sums.
constexpr std::size_t kTogether = 4;

// A vector of entries as float64: left to the compiler, it would be put together of parts.
#if defined(__AVX512F__)
inline Vector<double> load_doubles(const double* x) { return load(x); }
inline Vector<double> load_doubles(const float* x) {
  return (Vector<double>)_mm512_cvtps_pd(_mm256_loadu_ps(x));
}
inline Vector<double> load_doubles(const std::int16_t* x) {
  const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return (Vector<double>)_mm512_cvtepi32_pd(_mm256_cvtepi16_epi32(some));
}
inline Vector<double> load_doubles(const std::uint8_t* x) {
  const __m128i some = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  return (Vector<double>)_mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(some));
}
#elif defined(__AVX2__)
inline Vector<double> load_doubles(const double* x) { return load(x); }
inline Vector<double> load_doubles(const float* x) {
  return (Vector<double>)_mm256_cvtps_pd(_mm_loadu_ps(x));
}
inline Vector<double> load_doubles(const std::int16_t* x) {
  const __m128i some = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  return (Vector<double>)_mm256_cvtepi32_pd(_mm_cvtepi16_epi32(some));
}
inline Vector<double> load_doubles(const std::uint8_t* x) {
  int some;
  __builtin_memcpy(&some, x, sizeof(some));
  return (Vector<double>)_mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(some)));
}
#endif

// As many entries as a vector has lanes, as numbers.
template <typename Sum, typename Real>
inline Vector<Sum> load_as(const Real* x) {
#if defined(__AVX2__)
  if constexpr (sizeof(Sum) == sizeof(double)) return load_doubles(x);
#endif
  typedef Real Reals __attribute__((vector_size(kLanes<Sum> * sizeof(Real))));
  Reals some;
  __builtin_memcpy(&some, x, sizeof(some));
  return __builtin_convertvector(some, Vector<Sum>);
}

template <std::size_t together, typename Real>
inline void dots(const Real* const* x, std::size_t n, const double* w, double* out) {
  double lanes[together][kSums] = {};
  std::size_t j = 0;
  for (; j + kSums <= n; j += kSums) {
    for (std::size_t r = 0; r < together; ++r) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kSums; ++lane)
        lanes[r][lane] += static_cast<double>(x[r][j + lane]) * w[j + lane];
    }
  }
  for (std::size_t r = 0; r < together; ++r) {
    double tail = 0.0;
    for (std::size_t i = j; i < n; ++i) tail += static_cast<double>(x[r][i]) * w[i];
    const double* l = lanes[r];
    out[r] = ((l[0] + l[1]) + (l[2] + l[3])) + ((l[4] + l[5]) + (l[6] + l[7])) + tail;
  }
}

// Load what lies behind the rows of a chunk: a sweep goes on there, and the memory would rest while
// the chunk is computed with. Into the second-level cache at first (0.88 to 0.97 of a sweep).
template <int level, typename Real>
inline void prefetch_behind(const DenseView<Real>& X, std::size_t i) {
  if (X.k > kChunkRows) return;
  // As a number: it may lie behind the array, where nothing is read.
  const auto next = reinterpret_cast<std::uintptr_t>(X.data) + (X.k + i) * X.n * sizeof(Real);
  for (std::size_t j = 0; j < kTogether * X.n * sizeof(Real); j += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(next + j), 0, 4 - level);
}

#if defined(__AVX2__)
// The same of eight columns at least. (A sweep in cache of 8, 32 and 784 columns takes 0.4 to 0.55,
// 0.55 to 0.85 and 0.6 to 1.0 of what the compiler makes of the loops; bytes 0.25 to 0.36.)
constexpr std::size_t kParts = kSums / kLanes<double>;

// Lanes of four rows, added up in the order of `dots`.
inline void add_lanes(const Vector<double> (&sums)[kTogether][kParts], double* out) {
#if defined(__AVX512F__)
  const auto pairs = [](Vector<double> a, Vector<double> b) {
    return _mm512_unpacklo_pd((__m512d)a, (__m512d)b) + _mm512_unpackhi_pd((__m512d)a, (__m512d)b);
  };
  const __m512d ab = pairs(sums[0][0], sums[1][0]), cd = pairs(sums[2][0], sums[3][0]);
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  const __m512d fours = _mm512_permutex2var_pd(ab, low, cd) + _mm512_permutex2var_pd(ab, high, cd);
  _mm256_storeu_pd(out, _mm512_castpd512_pd256(fours) + _mm512_extractf64x4_pd(fours, 1));
#else
  const auto fours = [&](std::size_t p) {
    const __m256d ab = _mm256_hadd_pd((__m256d)sums[0][p], (__m256d)sums[1][p]);
    const __m256d cd = _mm256_hadd_pd((__m256d)sums[2][p], (__m256d)sums[3][p]);
    return _mm256_permute2f128_pd(ab, cd, 0x20) + _mm256_permute2f128_pd(ab, cd, 0x31);
  };
  _mm256_storeu_pd(out, fours(0) + fours(1));
#endif
}

// Four rows times w; columns that are left over come with the ones before them, and `rest`, w with
// zeros for these.
template <typename Real>
inline void four_dots(const Real* const* x, std::size_t n, const double* w, const double* rest,
                      double* out) {
  Vector<double> sums[kTogether][kParts];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kTogether; ++r)
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kParts; ++p) sums[r][p] = Vector<double>{};
  const auto add = [&](std::size_t j, const double* by) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kParts; ++p) {
      const std::size_t at = p * kLanes<double>;
      const Vector<double> wj = load(by + at);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kTogether; ++r) sums[r][p] += load_as<double>(x[r] + j + at) * wj;
    }
  };
  std::size_t j = 0;
  for (; j + kSums <= n; j += kSums) add(j, w + j);
  if (j < n) add(n - kSums, rest);
  add_lanes(sums, out);
}

template <typename Real>
void wide_matvec(const DenseView<Real>& X, const double* w, double* out) {
  double rest[kSums] = {};
  for (std::size_t j = X.n / kSums * kSums; j < X.n; ++j) rest[kSums - X.n + j] = w[j];
  for (std::size_t i = 0; i < X.k; i += kTogether) {
    const Real* rows[kTogether];
    const std::size_t left = X.k - i;
    for (std::size_t r = 0; r < kTogether; ++r) rows[r] = X.data + (i + (r < left ? r : 0)) * X.n;
    if (left >= kTogether) {
      prefetch_behind<2>(X, i);
      four_dots(rows, X.n, w, rest, out + i);
    } else {  // in the same way, lest what a row makes depends on where it lies
      double last[kTogether];
      four_dots(rows, X.n, w, rest, last);
      for (std::size_t r = 0; r < left; ++r) out[i + r] = last[r];
    }
  }
}

// out += X' u of so many vectors of columns, at row(i): even and odd rows by themselves.
template <std::size_t vectors, typename Row>
inline void add_columns(Row row, std::size_t k, const double* u, double* out) {
  constexpr std::size_t lanes = kLanes<double>;
  Vector<double> sums[2][vectors];
#pragma GCC unroll 8
  for (std::size_t b = 0; b < vectors; ++b) {
    sums[0][b] = load(out + b * lanes);
    sums[1][b] = Vector<double>{};
  }
  std::size_t i = 0;
  for (; i + 2 <= k; i += 2) {
#pragma GCC unroll 8
    for (std::size_t b = 0; b < vectors; ++b) {
      sums[0][b] += load_as<double>(row(i) + b * lanes) * u[i];
      sums[1][b] += load_as<double>(row(i + 1) + b * lanes) * u[i + 1];
    }
  }
#pragma GCC unroll 8
  for (std::size_t b = 0; b < vectors; ++b) {
    if (i < k) sums[0][b] += load_as<double>(row(i) + b * lanes) * u[i];
    store(out + b * lanes, sums[0][b] + sums[1][b]);
  }
}

// The same of all columns.
template <typename Row>
inline void add_all_columns(Row row, std::size_t k, std::size_t n, const double* u, double* out) {
  constexpr std::size_t many = 4 * kLanes<double>;
  const auto from = [&](std::size_t j) { return [=](std::size_t i) { return row(i) + j; }; };
  std::size_t j = 0;
  for (; j + many <= n; j += many) add_columns<4>(from(j), k, u, out + j);
  for (; j + kSums <= n; j += kSums) add_columns<kParts>(from(j), k, u, out + j);
  if (j == n) return;
  double rest[kSums] = {};
  add_columns<kParts>(from(n - kSums), k, u, rest);
  for (; j < n; ++j) out[j] += rest[kSums - n + j];
}

// Of a chunk; rows with u = 0 are left out where they are many.
template <typename Real>
inline void chunk_rmatvec(const DenseView<Real>& X, const double* u, double* out) {
  for (std::size_t i = 0; i < X.k; i += kTogether) prefetch_behind<1>(X, i);
  std::size_t some = 0;
  for (std::size_t i = 0; i < X.k; ++i) some += u[i] != 0.0;
  if (2 * some >= X.k)
    return add_all_columns([&](std::size_t i) { return X.data + i * X.n; }, X.k, X.n, u, out);
  const Real* rows[kChunkRows];
  double own[kChunkRows];
  std::size_t k = 0;
  for (std::size_t i = 0; i < X.k; ++i) {
    rows[k] = X.data + i * X.n;
    own[k] = u[i];
    k += u[i] != 0.0;
  }
  add_all_columns([&](std::size_t i) { return rows[i]; }, k, X.n, own, out);
}

template <typename Real>
void wide_rmatvec(const DenseView<Real>& X, const double* u, double* out) {
  if (X.k <= kChunkRows) return chunk_rmatvec(X, u, out);
  for (std::size_t i = 0; i < X.k; i += kChunkRows) {
    const std::size_t k = X.k - i < kChunkRows ? X.k - i : kChunkRows;
    chunk_rmatvec(DenseView<Real>{X.data + i * X.n, k, X.n}, u + i, out);
  }
}
#endif

template <typename Real>
void matvec(const DenseView<Real>& X, const double* w, double* out) {
#if defined(__AVX2__)
  if (X.n >= kSums) return wide_matvec(X, w, out);
#endif
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    prefetch_behind<2>(X, i);
    const Real* x = X.data + i * X.n;
    const Real* rows[kTogether] = {x, x + X.n, x + 2 * X.n, x + 3 * X.n};
    dots<kTogether>(rows, X.n, w, out + i);
  }
  for (; i < X.k; ++i) {
    const Real* rows[1] = {X.data + i * X.n};
    dots<1>(rows, X.n, w, out + i);
  }
}

template <typename Real>
void rmatvec(const DenseView<Real>& X, const double* u, double* out) {
#if defined(__AVX2__)
  if (X.n >= kSums) return wide_rmatvec(X, u, out);
#endif
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    prefetch_behind<1>(X, i);
    const double u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3];
    if (u0 == 0.0 && u1 == 0.0 && u2 == 0.0 && u3 == 0.0) continue;
    const Real *x0 = X.data + i * X.n, *x1 = x0 + X.n, *x2 = x1 + X.n, *x3 = x2 + X.n;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j)
      out[j] += (static_cast<double>(x0[j]) * u0 + static_cast<double>(x1[j]) * u1) +
                (static_cast<double>(x2[j]) * u2 + static_cast<double>(x3[j]) * u3);
  }
  for (; i < X.k; ++i) {
    const double ui = u[i];
    const Real* x = X.data + i * X.n;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j) out[j] += static_cast<double>(x[j]) * ui;
  }
}

template <typename Real>
void column_sums(const DenseView<Real>& X, double* sums, double* squares) {
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    const Real *x0 = X.data + i * X.n, *x1 = x0 + X.n, *x2 = x1 + X.n, *x3 = x2 + X.n;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j) {
      const double a = static_cast<double>(x0[j]), b = static_cast<double>(x1[j]),
                   c = static_cast<double>(x2[j]), d = static_cast<double>(x3[j]);
      sums[j] += (a + b) + (c + d);
      squares[j] += (a * a + b * b) + (c * c + d * d);
    }
  }
  for (; i < X.k; ++i) {
    const Real* x = X.data + i * X.n;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j) {
      const double a = static_cast<double>(x[j]);
      sums[j] += a;
      squares[j] += a * a;
    }
  }
}

template <typename Real>
double reach(const DenseView<Real>& X, const double* center, bool absolute) {
  double most = 0.0;
  for (std::size_t i = 0; i < X.k; ++i) {
    const Real* x = X.data + i * X.n;
    double size = 0.0;
#pragma omp simd reduction(+ : size)
    for (std::size_t j = 0; j < X.n; ++j) {
      const double d = static_cast<double>(x[j]) - center[j];
      size += absolute ? (d < 0.0 ? -d : d) : d * d;
    }
    most = size > most || size != size ? size : most;  // NaN stays
  }
  return most;
}

template <typename Real>
void count(const DenseView<Real>& X, std::int64_t* counts) {
  for (std::size_t i = 0; i < X.k; ++i) {
    const Real* x = X.data + i * X.n;
    std::int64_t found = 0;
#pragma omp simd reduction(+ : found)
    for (std::size_t j = 0; j < X.n; ++j) found += x[j] != Real(0) ? 1 : 0;
    counts[i] = found;
  }
}

// Entries are looked at in groups, most of which are all zero.
template <typename Real>
void copy(const DenseView<Real>& X, const std::int64_t* starts, std::int32_t* columns,
          Real* values) {
  constexpr std::size_t group = 16;
  for (std::size_t i = 0; i < X.k; ++i) {
    const Real* x = X.data + i * X.n;
    std::int64_t at = starts[i];
    const std::int64_t end = starts[i + 1];
    const auto take = [&](std::size_t from, std::size_t to) {
      for (std::size_t j = from; j < to && at < end; ++j)
        if (x[j] != Real(0)) {
          columns[at] = static_cast<std::int32_t>(j);
          values[at++] = x[j];
        }
    };
    std::size_t from = 0;
    for (; from + group <= X.n && at < end; from += group) {
      int some = 0;
#pragma omp simd reduction(+ : some)
      for (std::size_t j = 0; j < group; ++j) some += x[from + j] != Real(0) ? 1 : 0;
      if (some > 0) take(from, from + group);
    }
    take(from, X.n);
  }
}

// Rows of a tile of sums: with up to three vectors of columns, as many as the registers hold, which
// hide the latency and share the loads. Loops over them are unrolled lest they lie in memory.
constexpr std::size_t kTileRows = kVectorBytes == 64 ? 8 : 4;

// Add to numbers in float64.
inline void add(double* total, Vector<double> sums) { store(total, load(total) + sums); }
inline void add(double* total, Vector<float> sums) {
  typedef double Wide __attribute__((vector_size(2 * kVectorBytes)));
  const Wide wide = __builtin_convertvector(sums, Wide);
  Vector<double> half[2];
  __builtin_memcpy(half, &wide, sizeof(wide));
  add(total, half[0]);
  add(total + kLanes<double>, half[1]);
}

// G += L' R of `rows` packed rows: the tile at (i, j).
template <std::size_t vectors, typename Sum>
inline void add_tile(const Sum* L, const Sum* R, std::size_t rows, std::size_t width, double* G) {
  constexpr std::size_t lanes = kLanes<Sum>;
  Vector<Sum> sums[kTileRows][vectors];
#pragma GCC unroll 8
  for (std::size_t a = 0; a < kTileRows; ++a)
#pragma GCC unroll 8
    for (std::size_t b = 0; b < vectors; ++b) sums[a][b] = Vector<Sum>{};
  for (std::size_t r = 0; r < rows; ++r) {
    Vector<Sum> x[vectors];
#pragma GCC unroll 8
    for (std::size_t b = 0; b < vectors; ++b) x[b] = load(R + r * width + b * lanes);
#pragma GCC unroll 8
    for (std::size_t a = 0; a < kTileRows; ++a)
#pragma GCC unroll 8
      for (std::size_t b = 0; b < vectors; ++b) sums[a][b] += L[r * width + a] * x[b];
  }
#pragma GCC unroll 8
  for (std::size_t a = 0; a < kTileRows; ++a)
#pragma GCC unroll 8
    for (std::size_t b = 0; b < vectors; ++b) add(G + a * width + b * lanes, sums[a][b]);
}

// All tiles on and above the diagonal, and c += L' 1.
template <typename Sum>
void flush(std::size_t n, GramParts<Sum>& parts) {
  constexpr std::size_t lanes = kLanes<Sum>;
  const std::size_t width = padded<Sum>(n), rows = parts.packed;
  const Sum *L = parts.work, *R = L + packed_rows<Sum>(n) * width;
  for (std::size_t i = 0; i < n; i += kTileRows) {
    for (std::size_t j = i / lanes * lanes; j < width;) {
      const std::size_t left = (width - j) / lanes;
      double* G = parts.G + i * width + j;
      if (left == 3 || left > 4) {
        add_tile<3>(L + i, R + j, rows, width, G);
        j += 3 * lanes;
      } else if (left > 1) {
        add_tile<2>(L + i, R + j, rows, width, G);
        j += 2 * lanes;
      } else {
        add_tile<1>(L + i, R + j, rows, width, G);
        j += lanes;
      }
    }
  }
  for (std::size_t j = 0; j < width; j += lanes) {
    Vector<Sum> sums[kTogether] = {};
    std::size_t r = 0;
    for (; r + kTogether <= rows; r += kTogether)
#pragma GCC unroll 4
      for (std::size_t a = 0; a < kTogether; ++a) sums[a] += load(L + (r + a) * width + j);
    for (; r < rows; ++r) sums[0] += load(L + r * width + j);
    add(parts.c + j, (sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  parts.packed = 0;
}

// A weight as a Sum. One that float32 cannot hold makes a matrix that is not finite.
template <typename Sum>
inline Sum weight(double d) {
  const double size = __builtin_fabs(d);
  if (sizeof(Sum) == sizeof(double) || (size >= __FLT_MIN__ && size <= __FLT_MAX__))
    return static_cast<Sum>(d);
  return static_cast<Sum>(__builtin_inf());
}

// Pack a row.
template <typename Real, typename Sum>
inline void pack(const Real* x, std::size_t n, double d, Sum* l, Sum* r) {
  constexpr std::size_t lanes = kLanes<Sum>;
  const Sum di = weight<Sum>(d);
  std::size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const Vector<Sum> xj = load_as<Sum>(x + j);
    store(r + j, xj);
    store(l + j, di * xj);
  }
  for (; j < n; ++j) {
    r[j] = static_cast<Sum>(x[j]);
    l[j] = di * r[j];
  }
}

template <typename Real, typename Sum>
void add_to_gram(const DenseView<Real>& X, const double* d, GramParts<Sum>& parts) {
  const std::size_t width = padded<Sum>(X.n), most = packed_rows<Sum>(X.n);
  std::size_t own[kChunkRows];
  for (std::size_t begin = 0; begin < X.k; begin += kChunkRows) {
    const std::size_t rows = X.k - begin < kChunkRows ? X.k - begin : kChunkRows;
    // Which rows these are cannot be guessed: none is asked for before it is known.
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      own[count] = begin + i;
      count += d[begin + i] != 0.0;
    }
    for (std::size_t c = 0; c < count; ++c) {
      Sum* const l = parts.work + parts.packed * width;
      pack(X.data + own[c] * X.n, X.n, d[own[c]], l, l + most * width);
      if (++parts.packed == most) flush<Sum>(X.n, parts);
    }
  }
}

template <typename Real>
DenseProducts<Real> products() {
  return {&matvec<Real>,
          &rmatvec<Real>,
          &column_sums<Real>,
          &reach<Real>,
          &count<Real>,
          &copy<Real>,
          {&add_to_gram<Real, double>, &flush<double>},
          {&add_to_gram<Real, float>, &flush<float>}};
}

}  // namespace

DenseTable dense_table() {
  return {products<double>(), products<float>(), products<std::int16_t>(),
          products<std::uint8_t>()};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
