// Entries of a symmetric matrix that are known: on the other side, or in whole rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernel_rows.hpp"
#include "pair_steps.hpp"

namespace widemargin {

// K[i, j] = K[j, i] for the columns j from `first` to `last`, which lie between begin and end, and
// all i < q that do not, where rows have `width` entries. By squares that stay in the first-level
// cache: one pass over rows or columns misses at every entry.
template <typename Real>
void mirror(Real* K, std::size_t begin, std::size_t end, std::size_t q, std::size_t first,
            std::size_t last, std::size_t width) {
  constexpr std::size_t side = 16;
  const auto square = [=](std::size_t top, std::size_t left, auto rows, auto columns) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        K[(top + i) * width + left + j] = K[(left + j) * width + top + i];
  };
  const auto below = [&](std::size_t left, std::size_t columns, std::size_t from, std::size_t to) {
    const std::integral_constant<std::size_t, side> whole;
    std::size_t top = from;
    for (; top + side <= to && columns == side; top += side) square(top, left, whole, whole);
    square(top, left, to - top, columns);
  };
  for (std::size_t left = first; left < last; left += side) {
    const std::size_t columns = std::min(side, last - left);
    below(left, columns, 0, begin);
    below(left, columns, end, q);
  }
}

// out[at[i], j] = rows[place[i], J[j]] times the step that these are stored in, where rows have
// `stride` entries and those of out `width`.
template <typename Stored, typename Real>
void take(const Stored* rows, std::size_t stride, std::span<const std::int64_t> place,
          std::span<const std::int64_t> J, Real* out, std::size_t width,
          std::span<const std::int64_t> at) {
  constexpr bool is_short = std::is_same_v<Real, std::int16_t>;  // rounded again
  using Value = std::conditional_t<is_short, float, Real>;
  constexpr Value step =
      (is_short ? kRoundedSteps : Value(1)) / (sizeof(Stored) == 2 ? kSteps : Value(1));
  constexpr Value half = is_short ? Value(0.5) : Value(0);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Stored* from = rows + static_cast<std::size_t>(place[i]) * stride;
    Real* to = out + static_cast<std::size_t>(at[i]) * width;
    for (std::size_t j = 0; j < J.size(); ++j)
      to[j] = static_cast<Real>(static_cast<Value>(from[J[j]]) * step + half);
  }
}

}  // namespace widemargin
