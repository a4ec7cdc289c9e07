// The upper right part of a symmetric matrix, of the lower left one.
#pragma once

#include <algorithm>
#include <cstddef>

namespace widemargin {

// K[i, j] = K[j, i] for i < h <= j < q, where rows have `width` entries. By squares that stay in
// the first-level cache: one pass over rows or columns misses at every entry.
template <typename Real>
void mirror(Real* K, std::size_t h, std::size_t q, std::size_t width) {
  constexpr std::size_t side = 16;
  for (std::size_t top = 0; top < h; top += side)
    for (std::size_t left = h; left < q; left += side)
      for (std::size_t i = top; i < std::min(top + side, h); ++i)
        for (std::size_t j = left; j < std::min(left + side, q); ++j)
          K[i * width + j] = K[j * width + i];
}

}  // namespace widemargin
