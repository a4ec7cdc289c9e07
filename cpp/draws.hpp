// Random rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// What rows are drawn from. `split` rows of one class lie in front of those of the other one: then
// the classes take turns, and what is drawn has no weight. 0: all rows are drawn alike.
struct Draws {
  const std::int64_t* order;
  std::size_t m, split;
  std::uint64_t* state;
};

// Times that a row with weight is drawn again, before its place is left empty.
inline constexpr int kDrawnAgain = 16;

// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. These
// functions have copies of their own for each instruction set.
static inline std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// One of n numbers, by 53 random bits.
static inline std::size_t random_below(std::uint64_t& state, std::size_t n) {
  const double share = static_cast<double>(next_random(state) >> 11) * 0x1p-53;
  return static_cast<std::size_t>(share * static_cast<double>(n));
}

// Up to `size` rows into `out`, some perhaps twice; how many.
static inline std::size_t draw_rows(const Draws& from, const double* weight, std::size_t size,
                                    std::int64_t* out) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < size; ++k) {
    const bool front = k % 2 == 1;
    const std::size_t first = front ? 0 : from.split;
    const std::size_t rows = front && from.split > 0 ? from.split : from.m - first;
    for (int again = 0; again < kDrawnAgain; ++again) {
      const auto i = from.order[first + random_below(*from.state, rows)];
      if (from.split > 0 && weight[i] > 0) continue;
      out[count++] = i;
      break;
    }
  }
  return count;
}

}  // namespace widemargin
