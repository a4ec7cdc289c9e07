// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "dense.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Sums are kept in this many lanes whatever the vector width, so that instruction sets agree up to
// fused multiply-add.
constexpr std::size_t kLanes = 8;
// Rows that share the loads of w, or of the sums.
constexpr std::size_t kTogether = 4;

template <std::size_t together, typename Real>
inline void dots(const Real* const* x, std::size_t n, const double* w, double* out) {
  double lanes[together][kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (std::size_t r = 0; r < together; ++r) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kLanes; ++lane)
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

template <typename Real>
void matvec(const DenseView<Real>& X, const double* w, double* out) {
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    const Real* x = X.data + i * X.n;
    const Real* rows[kTogether] = {x, x + X.n, x + 2 * X.n, x + 3 * X.n};
    dots<kTogether>(rows, X.n, w, out + i);
  }
  for (; i < X.k; ++i) {
    const Real* rows[1] = {X.data + i * X.n};
    dots<1>(rows, X.n, w, out + i);
  }
}

// Load what lies behind these rows into the cache: sweeps go on there, and the memory would
// rest while a chunk is computed with.
template <typename Real>
inline void prefetch_behind(const DenseView<Real>& X, std::size_t i) {
  // As a number: it may lie behind the array, where nothing is read.
  const auto next = reinterpret_cast<std::uintptr_t>(X.data) + (X.k + i) * X.n * sizeof(Real);
  for (std::size_t j = 0; j < kTogether * X.n * sizeof(Real); j += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(next + j));
}

template <typename Real>
void rmatvec(const DenseView<Real>& X, const double* u, double* out) {
  std::size_t i = 0;
  for (; i + kTogether <= X.k; i += kTogether) {
    prefetch_behind(X, i);
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

// Rows of a tile: as many sums as the registers hold, and enough to hide their latency.
#ifdef __AVX512F__
constexpr std::size_t kTileRows = 8;
#else
constexpr std::size_t kTileRows = 4;
#endif

// G += L' R of `rows` packed rows: a tile of sums at a time, on and above the diagonal.
inline void add_tiles(const double* L, const double* R, std::size_t rows, std::size_t width,
                      double* G) {
  for (std::size_t i = 0; i < width; i += kTileRows) {
    for (std::size_t j = i / kTile * kTile; j < width; j += kTile) {
      double sums[kTileRows][kTile] = {};
      for (std::size_t r = 0; r < rows; ++r) {
        const double *l = L + r * width + i, *x = R + r * width + j;
        for (std::size_t a = 0; a < kTileRows; ++a) {
          const double la = l[a];
#pragma omp simd
          for (std::size_t lane = 0; lane < kTile; ++lane) sums[a][lane] += la * x[lane];
        }
      }
      for (std::size_t a = 0; a < kTileRows; ++a) {
        double* g = G + (i + a) * width + j;
#pragma omp simd
        for (std::size_t lane = 0; lane < kTile; ++lane) g[lane] += sums[a][lane];
      }
    }
  }
}

inline void flush(std::size_t n, const double* work, std::size_t packed, double* G) {
  const std::size_t width = padded(n);
  add_tiles(work, work + packed_rows(n) * width, packed, width, G);
}

template <typename Real>
std::size_t gram(const DenseView<Real>& X, const double* d, double* work, std::size_t packed,
                 double* G, double* c) {
  const std::size_t width = padded(X.n), most = packed_rows(X.n);
  double *L = work, *R = work + most * width;
  for (std::size_t i = 0; i < X.k; ++i) {
    const double di = d[i];
    if (di == 0.0) continue;
    const Real* x = X.data + i * X.n;
    double *l = L + packed * width, *r = R + packed * width;
#pragma omp simd
    for (std::size_t j = 0; j < X.n; ++j) {
      const double xj = static_cast<double>(x[j]), lj = di * xj;
      r[j] = xj;
      l[j] = lj;
      c[j] += lj;
    }
    if (++packed == most) {
      flush(X.n, work, packed, G);
      packed = 0;
    }
  }
  return packed;
}

template <typename Real>
DenseProducts<Real> products() {
  return {&matvec<Real>, &rmatvec<Real>, &column_sums<Real>, &reach<Real>, &gram<Real>, &flush};
}

}  // namespace

DenseTable dense_table() {
  return {products<double>(), products<float>(), products<std::int16_t>(),
          products<std::uint8_t>()};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
