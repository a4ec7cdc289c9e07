// Groups of equal rows, by hashing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "csr.hpp"

namespace widemargin {

// A 64-bit hash of bytes; eight at a time, as most rows are long.
inline std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t hash) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    mix(word);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  mix(word ^ (std::uint64_t{size} << 56));
  return hash;
}

// Dense rows of `bytes` bytes each.
struct RowBytes {
  const unsigned char* data;
  std::size_t bytes;

  std::uint64_t hash(std::size_t i) const { return hash_bytes(data + i * bytes, bytes, 0); }
  bool equal(std::size_t i, std::size_t j) const {
    return std::memcmp(data + i * bytes, data + j * bytes, bytes) == 0;
  }
};

// CSR rows are equal where they hold the same entries in the same order.
template <typename Real, typename Index>
struct CsrBytes {
  CsrView<Real, Index> X;

  std::uint64_t hash(std::size_t i) const {
    const auto begin = X.indptr[i], size = X.indptr[i + 1] - begin;
    return hash_bytes(X.data.data() + begin, size * sizeof(Real),
                      hash_bytes(X.indices.data() + begin, size * sizeof(Index), 0));
  }
  bool equal(std::size_t i, std::size_t j) const {
    const auto a = X.indptr[i], b = X.indptr[j], size = X.indptr[i + 1] - a;
    return size == X.indptr[j + 1] - b &&
           std::memcmp(X.indices.data() + a, X.indices.data() + b, size * sizeof(Index)) == 0 &&
           std::memcmp(X.data.data() + a, X.data.data() + b, size * sizeof(Real)) == 0;
  }
};

// Numbers the groups of rows begin .. end - 1 that agree in the row and its label, in the order of
// their first rows: group[i], and first[group]. `table` holds a power of two of slots, more than
// twice the rows of all calls, -1 at first: a group, and bits of its hash in front of that, so that
// rows are hardly ever read again to find that they differ. `found` is the number of groups so far,
// and returned.
template <typename Rows>
std::int64_t group_rows(const Rows& rows, std::span<const double> labels, std::size_t begin,
                        std::size_t end, std::int64_t found, std::span<std::int64_t> group,
                        std::span<std::int64_t> first, std::span<std::int64_t> table) {
  const std::size_t mask = table.size() - 1;
  const auto low = static_cast<std::int64_t>(mask);
  // Hashes of some rows at once: a row's own is a chain of products, and each waits for the last.
  std::array<std::uint64_t, 64> hashes;
  for (; begin < end; begin += hashes.size()) {
    const std::size_t count = std::min(hashes.size(), end - begin);
    for (std::size_t k = 0; k < count; ++k) {
      hashes[k] = hash_bytes(&labels[begin + k], sizeof(double), rows.hash(begin + k));
      __builtin_prefetch(&table[hashes[k] & mask]);
    }
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = begin + k;
      const auto bits = static_cast<std::int64_t>(hashes[k] >> 1) & ~low;
      for (std::size_t slot = hashes[k] & mask;; slot = (slot + 1) & mask) {
        std::int64_t& entry = table[slot];
        if (entry < 0) {
          first[found] = static_cast<std::int64_t>(i);
          entry = bits | found;
          group[i] = found++;
          break;
        }
        if ((entry & ~low) != bits) continue;
        const auto j = static_cast<std::size_t>(first[entry & low]);
        if (labels[i] == labels[j] && rows.equal(i, j)) {
          group[i] = entry & low;
          break;
        }
      }
    }
  }
  return found;
}

}  // namespace widemargin
