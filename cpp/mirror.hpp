// Entries of a symmetric matrix that are known: on the other side, or in whole rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace widemargin {

// K[i, j] = K[j, i] for begin <= j < end and all other i < q, where rows have `width` entries. By
// squares that stay in the first-level cache: one pass over rows or columns misses at every entry.
template <typename Real>
void mirror(Real* K, std::size_t begin, std::size_t end, std::size_t q, std::size_t width) {
  constexpr std::size_t side = 16;
  for (std::size_t top = 0; top < q; top += side)
    for (std::size_t left = begin; left < end; left += side)
      for (std::size_t i = top; i < std::min(top + side, q); ++i)
        for (std::size_t j = left; j < std::min(left + side, end); ++j)
          if (i < begin || i >= end) K[i * width + j] = K[j * width + i];
}

// out[at[i], j] = rows[place[i], J[j]], where rows have `stride` entries and those of out `width`.
template <typename Real>
void take(const Real* rows, std::size_t stride, std::span<const std::int64_t> place,
          std::span<const std::int64_t> J, Real* out, std::size_t width,
          std::span<const std::int64_t> at) {
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Real* from = rows + static_cast<std::size_t>(place[i]) * stride;
    Real* to = out + static_cast<std::size_t>(at[i]) * width;
    for (std::size_t j = 0; j < J.size(); ++j) to[j] = from[J[j]];
  }
}

}  // namespace widemargin
