// Products of dense rows with vectors, in float64 whatever the type of the entries: one
// pass over the rows, nothing converted in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// k rows of n entries, one after the other.
template <typename Real>
struct DenseView {
  const Real* data;
  std::size_t k;
  std::size_t n;
};

// Columns padded to whole tiles of a Gram matrix, and the rows that are packed for one pass over
// its tiles: both copies of them stay in the first-level cache, beside the rows.
constexpr std::size_t kTile = 8, kPackBytes = 16384, kPackRows = 64;
static constexpr std::size_t padded(std::size_t n) { return (n + kTile - 1) / kTile * kTile; }
static constexpr std::size_t packed_rows(std::size_t n) {
  const std::size_t rows = kPackBytes / (16 * padded(n) + 1);
  return rows < 8 ? 8 : (rows > kPackRows ? kPackRows : rows);
}
// Numbers that `gram` needs to work with: the packed rows twice.
static constexpr std::size_t gram_work(std::size_t n) { return 2 * packed_rows(n) * padded(n); }

// The functions of one instruction set for one type of entries.
template <typename Real>
struct DenseProducts {
  void (*matvec)(const DenseView<Real>& X, const double* w, double* out);        // out = X w
  void (*rmatvec)(const DenseView<Real>& X, const double* u, double* out);       // out += X' u
  void (*column_sums)(const DenseView<Real>& X, double* sums, double* squares);  // +=
  // The largest |x - center|^2 of the rows, or |x - center|_1.
  double (*reach)(const DenseView<Real>& X, const double* center, bool absolute);
  // G += X' diag(d) X, and c += X' d: G of padded(n) x padded(n), c of padded(n). Only the tiles on
  // and above the diagonal. Rows with d = 0 cost nothing. The last rows stay packed in `work`,
  // which begins as gram_work(n) zeros, until `flush`; returns how many of them, and is given it
  // again.
  std::size_t (*gram)(const DenseView<Real>& X, const double* d, double* work, std::size_t packed,
                      double* G, double* c);
  void (*flush)(std::size_t n, const double* work, std::size_t packed, double* G);
};

struct DenseTable {
  DenseProducts<double> f64;
  DenseProducts<float> f32;
  DenseProducts<std::int16_t> i16;
  DenseProducts<std::uint8_t> u8;

  template <typename Real>
  const DenseProducts<Real>& of() const;
};

template <>
inline const DenseProducts<double>& DenseTable::of() const {
  return f64;
}
template <>
inline const DenseProducts<float>& DenseTable::of() const {
  return f32;
}
template <>
inline const DenseProducts<std::int16_t>& DenseTable::of() const {
  return i16;
}
template <>
inline const DenseProducts<std::uint8_t>& DenseTable::of() const {
  return u8;
}

namespace baseline {
DenseTable dense_table();
}
namespace avx2 {
DenseTable dense_table();
}
namespace avx512 {
DenseTable dense_table();
}

}  // namespace widemargin
