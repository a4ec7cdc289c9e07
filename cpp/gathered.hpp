// Some rows of a batch, brought together: as a batch, and as samples in strips.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel_rows.hpp"

namespace widemargin {

// Rows of a batch, as a batch; row r is row_of(r) of them.
template <typename Real>
struct Gathered {
  std::vector<Real> data, norms;
  std::vector<std::int64_t> ends;

  template <class Row>
  Batch<Real> fill(const Batch<Real>& all, std::size_t count, const Row& row_of) {
    norms.resize(count);
    for (std::size_t r = 0; r < count; ++r) norms[r] = all.norms[row_of(r)];
    if (all.begin != nullptr) {
      ends.resize(2 * count);
      for (std::size_t r = 0; r < count; ++r)
        ends[r] = all.begin[row_of(r)], ends[count + r] = all.end[row_of(r)];
      return {all.data,    norms.data(), ends.data(), ends.data() + count,
              all.indices, count,        all.n,       false};
    }
    data.resize(count * all.n);
    for (std::size_t r = 0; r < count; ++r)
      std::copy_n(all.data + row_of(r) * all.n, all.n, data.data() + r * all.n);
    return {data.data(), norms.data(), nullptr, nullptr, nullptr, count, all.n, false};
  }
};

// Rows of all, as samples in strips: those of ones in bytes.
struct Packed {
  std::vector<double> data, norms;
  std::vector<std::uint8_t> ones;

  void fill(const Batch<double>& batch, std::span<const double> all_norms,
            std::span<const std::int64_t> index) {
    const std::size_t width = in_strips(index.size()), n = batch.n;
    if (batch.is_ones)
      ones.assign(width * n, 0);
    else
      data.assign(width * n, 0.0);
    norms.assign(width, 0.0);
    for (std::size_t s = 0; s < index.size(); ++s) {
      const auto row = static_cast<std::size_t>(index[s]);
      const std::size_t begin = s / kStrip * kStrip * n + s % kStrip;
      norms[s] = all_norms[row];
      if (batch.begin == nullptr) {
        for (std::size_t j = 0; j < n; ++j) data[begin + j * kStrip] = batch.data[row * n + j];
        continue;
      }
      for (auto p = batch.begin[row]; p < batch.end[row]; ++p) {
        const auto at = begin + static_cast<std::size_t>(batch.indices[p]) * kStrip;
        if (batch.is_ones)
          ones[at] = 1;
        else
          data[at] += batch.data[p];
      }
    }
  }
  Strips<double> strips(std::size_t samples, std::size_t n) const {
    Strips<double> packed{data.data(), norms.data(), nullptr, nullptr, samples, n};
    if (!ones.empty()) packed.ones = ones.data();
    return packed;
  }
};

// Sparse rows of ones of all, as samples in strips.
struct PackedOnes {
  std::vector<std::uint8_t> ones;
  std::vector<float> norms;

  // So many rows; row k is row_of(k) of them.
  template <class Row>
  Strips<float> fill(const Batch<float>& all, std::size_t count, const Row& row_of) {
    const std::size_t width = in_strips(count);
    ones.assign(width * all.n, 0), norms.assign(width, 0.0f);
    for (std::size_t s = 0; s < count; ++s) {
      const std::size_t row = row_of(s);
      std::uint8_t* const strip = ones.data() + s / kStrip * kStrip * all.n + s % kStrip;
      norms[s] = all.norms[row];
      for (auto p = all.begin[row]; p < all.end[row]; ++p)
        strip[static_cast<std::size_t>(all.indices[p]) * kStrip] = 1;
    }
    Strips<float> packed{nullptr, norms.data(), nullptr, nullptr, width, all.n};
    packed.ones = ones.data();
    return packed;
  }
};

}  // namespace widemargin
