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

template <typename Real>
void matvec(const DenseView<Real>& X, const double* w, double* out) {
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

template <typename Real, typename Sum>
void add_to_gram(const DenseView<Real>& X, const double* d, GramParts<Sum>& parts) {
  constexpr std::size_t lanes = kLanes<Sum>;
  typedef Real Reals __attribute__((vector_size(lanes * sizeof(Real))));
  const std::size_t width = padded<Sum>(X.n), most = packed_rows<Sum>(X.n);
  for (std::size_t i = 0; i < X.k; ++i) {
    if (d[i] == 0.0) continue;
    const Sum di = weight<Sum>(d[i]);
    const Real* x = X.data + i * X.n;
    Sum *l = parts.work + parts.packed * width, *r = l + most * width;
    std::size_t j = 0;
    for (; j + lanes <= X.n; j += lanes) {
      Reals some;
      __builtin_memcpy(&some, x + j, sizeof(some));
      const Vector<Sum> xj = __builtin_convertvector(some, Vector<Sum>);
      store(r + j, xj);
      store(l + j, di * xj);
    }
    for (; j < X.n; ++j) {
      r[j] = static_cast<Sum>(x[j]);
      l[j] = di * r[j];
    }
    if (++parts.packed == most) flush<Sum>(X.n, parts);
  }
}

template <typename Real>
DenseProducts<Real> products() {
  return {&matvec<Real>,
          &rmatvec<Real>,
          &column_sums<Real>,
          &reach<Real>,
          {&add_to_gram<Real, double>, &flush<double>},
          {&add_to_gram<Real, float>, &flush<float>}};
}

}  // namespace

DenseTable dense_table() {
  return {products<double>(), products<float>(), products<std::int16_t>(),
          products<std::uint8_t>()};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
