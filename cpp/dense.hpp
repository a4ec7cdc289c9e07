// Products of dense rows with vectors, in float64 whatever the type of the entries: one
// pass over the rows, nothing converted in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// The most rows of a chunk of a sweep: see fused.hpp.
constexpr std::size_t kChunkRows = 128;

// k rows of n entries, one after the other.
template <typename Real>
struct DenseView {
  const Real* data;
  std::size_t k;
  std::size_t n;
};

// A weighted Gram matrix is made of packed rows, whose products are added up in blocks as Sum:
// float where rounding may be some 1e-7 of its trace, in half of the time. Then the blocks are, in
// float64. Columns are padded to whole vectors. Both copies of the rows of a block stay in the
// first-level cache, beside the rows; of many columns, which fewer rows would not pay for, in the
// second (benchmarks/core/sweeps.py).
constexpr std::size_t kLineBytes = 64, kPackBytes = 16384, kLeastRows = 32, kMostRows = 64;
template <typename Sum>
static constexpr std::size_t padded(std::size_t n) {
  constexpr std::size_t lanes = kLineBytes / sizeof(Sum);
  return (n + lanes - 1) / lanes * lanes;
}
template <typename Sum>
static constexpr std::size_t packed_rows(std::size_t n) {
  const std::size_t rows = kPackBytes / (2 * sizeof(Sum) * padded<Sum>(n) + 1);
  return rows < kLeastRows ? kLeastRows : (rows > kMostRows ? kMostRows : rows);
}

// What a Gram matrix is made in: the packed rows times d, the packed rows, of gram_work(n) zeros at
// first and aligned to kLineBytes; how many of them; X' diag(d) X, padded(n) x padded(n), of which
// only what is on and above the diagonal; X' d, padded(n).
template <typename Sum>
static constexpr std::size_t gram_work(std::size_t n) {
  return 2 * packed_rows<Sum>(n) * padded<Sum>(n);
}
template <typename Sum>
struct GramParts {
  Sum* work;
  std::size_t packed;
  double* G;
  double* c;
};
template <typename Real, typename Sum>
struct GramProducts {
  // Add rows: those with d = 0 cost nothing. The last ones stay packed until `flush`.
  void (*add)(const DenseView<Real>& X, const double* d, GramParts<Sum>& parts);
  void (*flush)(std::size_t n, GramParts<Sum>& parts);
};

// The functions of one instruction set for one type of entries.
template <typename Real>
struct DenseProducts {
  void (*matvec)(const DenseView<Real>& X, const double* w, double* out);        // out = X w
  void (*rmatvec)(const DenseView<Real>& X, const double* u, double* out);       // out += X' u
  void (*column_sums)(const DenseView<Real>& X, double* sums, double* squares);  // +=
  // The largest |x - center|^2 of the rows, or |x - center|_1.
  double (*reach)(const DenseView<Real>& X, const double* center, bool absolute);
  // How many entries of each row are not zero; and these as CSR rows, which begin at starts.
  void (*count)(const DenseView<Real>& X, std::int64_t* counts);
  void (*copy)(const DenseView<Real>& X, const std::int64_t* starts, std::int32_t* columns,
               Real* values);
  GramProducts<Real, double> fine_gram;
  GramProducts<Real, float> rough_gram;

  template <typename Sum>
  const auto& gram() const {
    if constexpr (sizeof(Sum) == sizeof(float))
      return rough_gram;
    else
      return fine_gram;
  }
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
