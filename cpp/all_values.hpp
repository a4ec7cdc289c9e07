// The kernel values in float64 of all rows with each other: where problems are small and many, each
// value is needed by several of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "crew.hpp"
#include "gathered.hpp"
#include "kernel_rows.hpp"
#include "pair_steps.hpp"

namespace widemargin {

class AllValues {
  // How many there may be, 16 megabytes; how many times as many problems need, at least; and the
  // rows of a task. (With twice as many 40 to 70 classes of 18 to 24 rows take 1 to 1.5 times as
  // long. From four times on, 50 and 100 classes of 14 rows take 0.75 to 0.85 of the time. With 64
  // megabytes 150 to 300 classes of 8 to 14 rows take as long.)
  static constexpr std::size_t kMost = 2 << 20, kTimes = 4, kRows = 64;

 public:
  // Whether m rows have far fewer values than problems need, with what pads them, as whole strips
  // are made; and not too many.
  static bool suit(std::size_t m, std::size_t needed) {
    const std::size_t all = m * in_strips(m);
    return kTimes * all <= needed && all <= kMost;
  }
  static std::size_t bytes(std::size_t m) { return m * in_strips(m) * sizeof(double); }

  // Not all are there if the crew is stopped.
  void make(const KernelTable& kernels, const KernelForm& form, const Batch<double>& batch,
            std::span<const double> norms, Crew& crew) {
    const std::size_t m = batch.count;
    std::vector<std::int64_t> rows(m);
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    Packed packed;
    packed.fill(batch, norms, rows);
    width_ = packed.norms.size();
    values_ = std::make_unique_for_overwrite<double[]>(m * width_);
    crew.run((m + kRows - 1) / kRows, [&](std::size_t task, bool) {
      const std::size_t first = task * kRows, count = std::min(m - first, kRows);
      Gathered<double> gathered;
      const auto some = gathered.fill(batch, count, [&](std::size_t r) { return first + r; });
      Target<double> target{
          values_.get() + first * width_, nullptr, width_, nullptr, nullptr, 0, 0};
      target.past_caches = false;
      kernels.rows64(form, packed.strips(m, batch.n), some, target, 0, width_ / kStrip);
    });
  }

  // Null where they were not made.
  StoredRows<double> rows() const { return {values_.get(), width_}; }

 private:
  std::unique_ptr<double[]> values_;
  std::size_t width_ = 0;
};

}  // namespace widemargin
