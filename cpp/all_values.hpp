// The kernel values in float64 of all rows with each other: where problems are small and many, each
// value is needed by several of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "crew.hpp"
#include "gathered.hpp"
#include "kernel_rows.hpp"
#include "pair_steps.hpp"

namespace widemargin {

class AllValues {
  // How many may be kept, 16 megabytes; and the rows of a task.
  static constexpr std::size_t kMost = 2 << 20, kRows = 64;

 public:
  // Whether m rows have fewer values than problems need, and not too many: with what pads them, as
  // whole strips are made.
  static bool suit(std::size_t m, std::size_t needed) {
    const std::size_t all = m * padded(m);
    return all <= needed && all <= kMost;
  }
  static std::size_t padded(std::size_t m) { return (m + kStrip - 1) / kStrip * kStrip; }
  static std::size_t bytes(std::size_t m) { return m * padded(m) * sizeof(double); }

  // Not all are there if the crew is stopped.
  void make(const KernelTable& kernels, const KernelForm& form, const Batch<double>& batch,
            std::span<const double> norms, Crew& crew) {
    const std::size_t m = batch.count;
    std::vector<std::int64_t> rows(m);
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    Packed packed;
    packed.fill(batch, norms, rows);
    width_ = packed.norms.size();
    values_.resize(m * width_);
    crew.run((m + kRows - 1) / kRows, [&](std::size_t task, bool) {
      const std::size_t first = task * kRows, count = std::min(m - first, kRows);
      Gathered<double> gathered;
      const auto some = gathered.fill(batch, count, [&](std::size_t r) { return first + r; });
      Target<double> target{
          values_.data() + first * width_, nullptr, width_, nullptr, nullptr, 0, 0};
      target.past_caches = false;
      kernels.rows64(form, packed.strips(m, batch.n), some, target, 0, width_ / kStrip);
    });
  }

  // Null where they were not made.
  StoredRows<double> rows() const { return {values_.empty() ? nullptr : values_.data(), width_}; }

 private:
  std::vector<double> values_;
  std::size_t width_ = 0;
};

}  // namespace widemargin
