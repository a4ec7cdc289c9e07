#include "given_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace widemargin {
namespace {

constexpr std::size_t kTile = 64, kLanes = 8;  // rows and columns that caches hold; numbers at once

// A tile of given values and the one beyond the diagonal, both as the first one lies; zero where
// there are none.
struct Tile {
  std::array<double, kTile * kTile> one, other;

  void fill(std::span<const double> values, std::size_t m, std::size_t i0, std::size_t j0) {
    const std::size_t rows = std::min(kTile, m - i0), columns = std::min(kTile, m - j0);
    if (rows < kTile || columns < kTile) one.fill(0.0), other.fill(0.0);
    for (std::size_t i = 0; i < rows; ++i)
      std::copy_n(&values[(i0 + i) * m + j0], columns, &one[i * kTile]);
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t i = 0; i < rows; ++i) other[i * kTile + j] = values[(j0 + j) * m + i0 + i];
  }
};

// The largest of lanes; what is NaN is passed over.
void take_largest(std::array<double, kLanes>& most, std::size_t lane, double value) {
  most[lane] = most[lane] < value ? value : most[lane];
}

double largest_of(const std::array<double, kLanes>& most) {
  return *std::max_element(most.begin(), most.end());
}

}  // namespace

GivenFacts facts_of(std::span<const double> values, std::span<const double> s) {
  const std::size_t m = s.size();
  GivenFacts found{0, 0, 0, 0, 0};
  // A row without length has no other values than zero: 0 times infinity is passed over.
  std::vector<double> inverse((m + kTile - 1) / kTile * kTile, 0.0);
  std::transform(s.begin(), s.end(), inverse.begin(),
                 [](double v) { return v > 0 ? 1 / v : 1e300; });
  Tile tile;
  for (std::size_t i0 = 0; i0 < m; i0 += kTile)
    for (std::size_t j0 = 0; j0 <= i0; j0 += kTile) {
      tile.fill(values, m, i0, j0);
      std::array<double, kLanes> size{}, share{}, apart{};
      for (std::size_t i = 0; i < kTile; ++i)
        for (std::size_t j = 0; j < kTile; j += kLanes)
          for (std::size_t k = 0; k < kLanes; ++k) {
            const double one = tile.one[i * kTile + j + k], other = tile.other[i * kTile + j + k];
            const double root = inverse[i0 + i] * inverse[j0 + j + k];
            take_largest(size, k, std::abs(one));
            take_largest(size, k, std::abs(other));
            take_largest(share, k, std::abs(one) * root);
            take_largest(share, k, std::abs(other) * root);
            take_largest(apart, k, std::abs(one - other));
          }
      found.largest = std::max(found.largest, largest_of(size));
      found.share = std::max(found.share, largest_of(share));
      const double most = largest_of(apart);
      if (!(most > found.apart)) continue;
      found.apart = most;
      for (std::size_t i = 0; i < kTile; ++i)
        for (std::size_t j = 0; j < kTile; ++j)
          if (std::abs(tile.one[i * kTile + j] - tile.other[i * kTile + j]) == most)
            found.i = i0 + i, found.j = j0 + j;
    }
  return found;
}

}  // namespace widemargin
