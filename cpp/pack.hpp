// Samples in strips of 64, as kernel_rows.hpp reads them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "csr.hpp"
#include "dense.hpp"
#include "kernel_rows.hpp"

namespace widemargin {

// Fill a strip of zeros with rows of X less a center. The difference is rounded once, as that of
// the rows that meet these: then a row has no distance from itself.
template <typename T, typename Real>
void fill_strip(const DenseView<T>& X, std::span<const std::int64_t> rows, std::size_t n,
                const double* center, Real* strip) {
  const T* x[kStrip];
  for (std::size_t s = 0; s < rows.size(); ++s) x[s] = X.data + rows[s] * n;
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t s = 0; s < rows.size(); ++s)
      strip[j * kStrip + s] = static_cast<Real>(static_cast<double>(x[s][j]) - center[j]);
}

template <typename T, typename Index, typename Real>
void add_entries(const CsrView<T, Index>& X, std::span<const std::int64_t> rows, Real* strip) {
  for (std::size_t s = 0; s < rows.size(); ++s)
    for (auto p = X.indptr[rows[s]]; p < X.indptr[rows[s] + 1]; ++p)
      strip[static_cast<std::size_t>(X.indices[p]) * kStrip + s] += static_cast<Real>(X.data[p]);
}

template <typename T, typename Index, typename Real>
void fill_strip(const CsrView<T, Index>& X, std::span<const std::int64_t> rows, std::size_t n,
                const double* center, Real* strip) {
  if (std::all_of(center, center + n, [](double c) { return c == 0.0; }))
    return add_entries(X, rows, strip);
  std::vector<double> exact(n * kStrip);
  add_entries(X, rows, exact.data());
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t s = 0; s < rows.size(); ++s)
      strip[j * kStrip + s] = static_cast<Real>(exact[j * kStrip + s] - center[j]);
}

// Rows of X less a center in strips, and what `squares` makes of a strip: |x|^2; without it |x|_1.
template <typename View, typename Real>
void pack(const View& X, std::span<const std::int64_t> rows, std::size_t n, const double* center,
          Real* out, Real* norms, StripSquares<Real> squares) {
  for (std::size_t first = 0; first < rows.size();
       first += kStrip, out += n * kStrip, norms += kStrip) {
    const std::size_t count = std::min(rows.size() - first, kStrip);
    std::fill(out, out + n * kStrip, Real(0));
    fill_strip(X, rows.subspan(first, count), n, center, out);
    if (squares != nullptr) {
      squares(out, n, norms);
      continue;
    }
    double sums[kStrip] = {};
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t s = 0; s < kStrip; ++s) sums[s] += std::abs(out[j * kStrip + s]);
    for (std::size_t s = 0; s < kStrip; ++s) norms[s] = static_cast<Real>(sums[s]);
  }
}

// Rows of X less a center, one after the other, rounded as those of strips are.
template <typename T, typename Real>
void dense_rows(const DenseView<T>& X, std::span<const std::int64_t> rows, std::size_t n,
                const double* center, Real* out) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < n; ++j)
      out[i * n + j] = static_cast<Real>(static_cast<double>(X.data[rows[i] * n + j]) - center[j]);
}

template <typename T, typename Index, typename Real>
void dense_rows(const CsrView<T, Index>& X, std::span<const std::int64_t> rows, std::size_t n,
                const double* center, Real* out) {
  std::vector<double> exact(n);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::fill(exact.begin(), exact.end(), 0.0);
    for (auto p = X.indptr[rows[i]]; p < X.indptr[rows[i] + 1]; ++p)
      exact[static_cast<std::size_t>(X.indices[p])] += static_cast<double>(X.data[p]);
    for (std::size_t j = 0; j < n; ++j) out[i * n + j] = static_cast<Real>(exact[j] - center[j]);
  }
}

// Rows of ones, a byte for each entry, and how many ones each row has.
template <typename T, typename Index, typename Real>
void pack_ones(const CsrView<T, Index>& X, std::span<const std::int64_t> rows, std::size_t n,
               std::uint8_t* out, Real* norms) {
  std::fill(norms, norms + in_strips(rows.size()), Real(0));
  for (std::size_t first = 0; first < rows.size();
       first += kStrip, out += n * kStrip, norms += kStrip) {
    std::fill(out, out + n * kStrip, std::uint8_t{0});
    const std::size_t count = std::min(rows.size() - first, kStrip);
    for (std::size_t s = 0; s < count; ++s) {
      const auto begin = X.indptr[rows[first + s]], end = X.indptr[rows[first + s] + 1];
      for (auto p = begin; p < end; ++p)
        out[static_cast<std::size_t>(X.indices[p]) * kStrip + s] = 1;
      norms[s] = static_cast<Real>(end - begin);
    }
  }
}

// Rows whose entries are `unit` times integers up to 255, each up to this share of it: these, four
// of a row after the other, for features padded to n; |x|^2 and |x|_1 of them. Whether they all
// are.
template <typename T>
bool level_of(T entry, double unit, double off, std::uint8_t& out) {
  const double x = static_cast<double>(entry), level = x / unit;
  if (!(level >= 0.0 && level < 255.5)) return false;
  out = static_cast<std::uint8_t>(level + 0.5);
  return std::abs(static_cast<double>(out) * unit - x) <= off * x;
}

template <typename T, typename Put>
bool each_level(const DenseView<T>& X, std::size_t row, double unit, double off, const Put& put) {
  const T* x = X.data + row * X.n;
  std::uint8_t level;
  for (std::size_t j = 0; j < X.n; ++j) {
    if (x[j] == T(0)) continue;
    if (!level_of(x[j], unit, off, level) || !put(j, level)) return false;
  }
  return true;
}

template <typename T, typename Index, typename Put>
bool each_level(const CsrView<T, Index>& X, std::size_t row, double unit, double off,
                const Put& put) {
  std::uint8_t level;
  for (auto p = X.indptr[row]; p < X.indptr[row + 1]; ++p) {
    if (!level_of(X.data[p], unit, off, level)) return false;
    if (level != 0 && !put(static_cast<std::size_t>(X.indices[p]), level)) return false;
  }
  return true;
}

// A row of levels at its place in a strip.
inline void into_strip(const std::uint8_t* row, std::size_t n, std::size_t place,
                       std::uint8_t* strips) {
  std::uint8_t* to = strips + place / kStrip * n * kStrip + place % kStrip * kLevelsTogether;
  for (std::size_t j = 0; j < n; j += kLevelsTogether, to += kLevelsTogether * kStrip)
    std::memcpy(to, row + j, kLevelsTogether);
}

// `rows` are zero at first, and then the levels one row after the other.
template <typename View>
bool pack_levels(const View& X, std::size_t begin, std::size_t end, std::size_t n, double unit,
                 double off, std::uint8_t* rows, std::uint8_t* strips, std::int32_t* squares,
                 std::int32_t* sums) {
  for (std::size_t i = begin; i < end; ++i) {
    std::uint8_t* const own = rows + i * n;
    const bool all = each_level(X, i, unit, off, [&](std::size_t j, std::uint8_t level) {
      if (own[j] != 0) return false;  // entries of a sparse row add up
      own[j] = level;
      squares[i] += level * level;
      sums[i] += level;
      return true;
    });
    if (!all) return false;
    into_strip(own, n, i, strips);
  }
  return true;
}

// Some rows of levels: one after the other, or in strips.
inline void take_levels(const std::uint8_t* rows, std::size_t n,
                        std::span<const std::int64_t> index, bool in_strips, std::uint8_t* out) {
  for (std::size_t k = 0; k < index.size(); ++k) {
    const std::uint8_t* row = rows + static_cast<std::size_t>(index[k]) * n;
    if (in_strips)
      into_strip(row, n, k, out);
    else
      std::memcpy(out + k * n, row, n);
  }
}

}  // namespace widemargin
