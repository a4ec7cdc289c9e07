// Rows of a kernel matrix: products of packed samples with batch rows, the kernel function of them,
// and what becomes of the values, in one pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel_formulas.hpp"

namespace widemargin {

// Samples are packed in strips of 64: entry j of sample s of a strip lies at j * 64 + s.
constexpr std::size_t kStrip = 64;
// So many samples, with those that fill the last strip.
constexpr std::size_t in_strips(std::size_t samples) {
  return (samples + kStrip - 1) / kStrip * kStrip;
}
// Where samples stay sparse, batch rows are packed instead, 16 together: entry j of row r of a
// group lies at j * 16 + r.
constexpr std::size_t kGroup = 16;
// Dense products are sums of sums of so many terms: rounding grows with these, and with the number
// of such sums, not with all terms.
constexpr std::size_t kChunk = 64;

// The most ones of a row whose values are products of factors: a byte counts them.
constexpr std::int64_t kMostByFactors = 255;

// Features of levels are padded to so many, which are multiplied and added up together.
constexpr std::size_t kLevelsTogether = 4;

// The samples: packed, or sparse rows with `indptr`. `norms` has 64 entries a strip: |x|^2 for rbf;
// for laplacian and chi2 |x|_1 where sparse rows meet packed samples, else 0. Distances of sparse
// samples from sparse rows are sums of differences, for which the columns of each are sorted.
template <typename Real>
struct Strips {
  const Real* data;
  const Real* norms;
  const std::int64_t* indptr;  // null where packed
  const std::int32_t* indices;
  std::size_t samples;
  std::size_t n;  // features
  // In place of `data` where all entries are 0 or 1, as those of the sparse rows that meet them:
  // a byte each. Their products are counts, which have the bits of sums of floating point numbers.
  const std::uint8_t* ones = nullptr;
  // Of ones: whether sums of rbf over float32 values are made of factors, which have to be in its
  // range. Of rows that have at most kMostByFactors ones.
  bool by_factors = false;
  // In place of `data` where all entries are `unit` times integers from 0 to 255: these, four of a
  // sample after the other, for distances that are exact up to their last product.
  const std::uint8_t* levels = nullptr;
  const std::int32_t* level_norms = nullptr;  // |x|^2 - 256 |x|_1 of the integers, which may wrap
  Real square = 0;                            // of the unit
  // Of rows that list their groups of levels that are not all zero: norms are |x|^2 then.
  bool by_groups = false;

  // So many packed samples from a strip on, not of levels. Without `by_factors`, as sums would
  // differ from those of values that are stored.
  Strips part(std::size_t strip, std::size_t count) const {
    Strips some{data, norms + strip * kStrip, nullptr, nullptr, count, n};
    if (ones != nullptr)
      some.ones = ones + strip * kStrip * n;
    else
      some.data += strip * kStrip * n;
    return some;
  }
};

// The rows that are computed: dense (count x n); sparse, row b from entry begin[b] to end[b] - 1;
// or packed in groups where the samples are sparse. `norms` as above, with |z|_1 where samples are
// sparse.
template <typename Real>
struct Batch {
  const Real* data;
  const Real* norms;
  const std::int64_t *begin, *end;  // null where dense
  const std::int32_t* indices;
  std::size_t count;
  std::size_t n;
  bool whole_groups;  // dense, with rows enough to fill the last group
  // Rows of integers from 0 to 255, less 128, in place of `data`; and their squared norms. Where
  // `begin` and `indices` say which groups of kLevelsTogether are not all zero, not less 128.
  const std::int8_t* levels = nullptr;
  const std::int32_t* level_norms = nullptr;
  bool is_ones = false;  // sparse, and all entries are 1: `Packed` samples of them are in bytes
};

// Rows that are kept may have values of 16 bits: whole numbers of steps of 1 / kSteps, which are
// off by half a step at most. 0 and 1 are exact.
constexpr float kSteps = 65535.0f;

// What becomes of the values K(b, s): row b is written to out + place[b] * stride where place[b]
// is not negative; and sums[c * width + s] += sum over b of weights[b * columns + c] K(b, s). Where
// the samples are rows of the batch's own set, each value serves twice: back[b] += sum over s of
// back_weights[s] K(b, s).
template <typename Real>
struct Target {
  Real* out;
  const std::int64_t* place;  // null: row b goes to place b
  std::size_t stride;
  const double* weights;  // null: no sums
  double* sums;
  std::size_t columns, width;
  const Real* back_weights = nullptr;  // null: no such sums; one for each sample of whole strips
  double* back = nullptr;
  bool past_caches = true;  // store the values there: rows that are read at once stay in cache
  // In place of `out`, for values from 0 to 1: the nearest of so many steps.
  std::uint16_t* rounded = nullptr;
  float steps = kSteps;

  bool stores() const { return out != nullptr || rounded != nullptr; }
};

// For the strips begin .. end - 1.
template <typename Real>
using KernelRows = void (*)(const KernelForm&, const Strips<Real>&, const Batch<Real>&,
                            const Target<Real>&, std::size_t begin, std::size_t end);

// sums[s] += sum over r of weights[r] rows[place[r] * stride + s] for s in begin .. end - 1.
// Of rounded values, which are floats.
template <typename Stored>
using AddRows = void (*)(const Stored* rows, const std::int64_t* place, std::size_t count,
                         std::size_t stride, const double* weights, std::size_t begin,
                         std::size_t end, double* sums);

// |x|^2 of each sample of a strip, by the operations that make products with it: so the distance of
// a sample to itself, and to its duplicates, is exactly 0.
template <typename Real>
using StripSquares = void (*)(const Real* strip, std::size_t n, Real* squares);

// The squared distances of samples of ones, n bytes each, from a sparse row of ones, up to 255
// each, or half of them. Of the samples there are whole strips, with their numbers of ones. And the
// values of rbf at the distances 0, step, 2 step, ..., as `KernelRows` has them.
using OnesDistances = void (*)(const std::uint8_t* ones, const std::uint8_t* norms,
                               std::size_t samples, std::size_t n, const std::int32_t* indices,
                               std::size_t count, bool halved, std::uint8_t* out);
using ValuesApart = void (*)(double gamma, float step, float* values, std::size_t count);
// The sums of `AddRows` over values that bytes choose, row r at codes + place[r].
using AddCodes = void (*)(const float* values, const std::uint8_t* codes, const std::int64_t* place,
                          std::size_t count, const double* weights, std::size_t begin,
                          std::size_t end, double* sums);
// How many values there are to choose from.
constexpr std::size_t kCodes = 32;
// Some bytes of each 16, one after the other: those of block s go to out + to[s], zeros behind
// them, 16 bytes in all; the k-th is number places[16 s + k] of the block, and 128 says that there
// is none.
constexpr std::size_t kCutBlock = 16;
constexpr std::uint8_t kNothing = 128;
using CutBytes = void (*)(const std::uint8_t* bytes, const std::uint8_t* places,
                          const std::uint32_t* to, std::size_t blocks, std::uint8_t* out);

struct KernelTable {
  KernelRows<float> rows32;
  KernelRows<double> rows64;
  AddRows<float> add32;
  AddRows<double> add64;
  AddRows<std::uint16_t> add16;
  StripSquares<float> squares32;
  StripSquares<double> squares64;
  OnesDistances ones_apart;  // null: the instruction set is slow to choose values
  ValuesApart values_apart;
  AddCodes add_codes;
  CutBytes cut_bytes;

  template <typename Real>
  KernelRows<Real> rows() const {
    if constexpr (sizeof(Real) == 4)
      return rows32;
    else
      return rows64;
  }
  template <typename Stored>
  AddRows<Stored> add() const {
    if constexpr (sizeof(Stored) == 2)
      return add16;
    else if constexpr (sizeof(Stored) == 4)
      return add32;
    else
      return add64;
  }
  template <typename Real>
  StripSquares<Real> squares() const {
    if constexpr (sizeof(Real) == 4)
      return squares32;
    else
      return squares64;
  }
};

namespace baseline {
KernelTable kernel_table();
}
namespace avx2 {
KernelTable kernel_table();
}
namespace avx512 {
KernelTable kernel_table();
}

}  // namespace widemargin
