#include "table_sums.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "crew.hpp"
#include "gathered.hpp"

namespace widemargin {
namespace {

// Rows with weights that meet a strip together: their values stay in the first-level cache.
constexpr std::size_t kTogether = 64;

// The sums over one group at a strip of rows. Most weights are zero where C is large: each column
// has a list of those that are not.
class StripSums {
 public:
  StripSums(const KernelTable& kernels, const TableSums& sums, std::size_t first)
      : kernels_(kernels),
        sums_(sums),
        first_(first),
        count_(std::min(sums.row.size() - first, kStrip)),
        steps_(static_cast<std::size_t>(std::ranges::max(sums.wanted.subspan(first, count_)))),
        place_(sums.columns * kTogether),
        weight_(sums.columns * kTogether),
        length_(sums.columns),
        total_(sums.columns * kStrip) {
    const auto& all = sums.rows;
    if (all.given.empty()) packed_.fill(all.batch, all.norms, sums.row.subspan(first, count_));
  }

  void run(std::size_t group, Crew& crew, bool is_caller) {
    const auto end = static_cast<std::size_t>(sums_.group_end[group]);
    for (auto j = static_cast<std::size_t>(group > 0 ? sums_.group_end[group - 1] : 0); j < end;
         ++j) {
      list(static_cast<std::size_t>(sums_.order[j]));
      if (vectors_ < kTogether) continue;
      if (crew.stopped(is_caller)) return;
      add();
    }
    if (vectors_ > 0) add();
    for (std::size_t c = 0; c < sums_.columns; ++c)
      std::copy_n(total_.data() + c * kStrip, count_,
                  sums_.out.data() + (group * sums_.columns + c) * sums_.row.size() + first_);
  }

 private:
  // Put the weights of row j on the lists.
  void list(std::size_t j) {
    const double* w = sums_.weight.data() + j * sums_.columns;
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < sums_.columns; begin += sums_.steps)
      for (std::size_t c = begin; c < begin + steps_; ++c) {
        const std::size_t last = c * kTogether + length_[c];
        place_[last] = static_cast<std::int64_t>(vectors_), weight_[last] = w[c];
        length_[c] += w[c] != 0.0, found += w[c] != 0.0;
      }
    if (found > 0) vector_[vectors_++] = j;
  }

  // Add what is on the lists.
  void add() {
    const auto& all = sums_.rows;
    alignas(64) double tile[kTogether * kStrip];
    if (all.given.empty()) {
      const auto batch = gathered_.fill(all.batch, vectors_, [&](auto v) { return vector_[v]; });
      Target<double> target{tile, nullptr, kStrip, nullptr, nullptr, 0, 0};
      target.past_caches = false;
      kernels_.rows64(all.form, packed_.strips(count_, all.batch.n), batch, target, 0, 1);
    } else {
      for (std::size_t v = 0; v < vectors_; ++v)
        for (std::size_t s = 0; s < kStrip; ++s) tile[v * kStrip + s] = given(s, vector_[v]);
    }
    for (std::size_t c = 0; c < sums_.columns; ++c)
      if (length_[c] > 0) {
        kernels_.add64(tile, place_.data() + c * kTogether, length_[c], kStrip,
                       weight_.data() + c * kTogether, 0, kStrip, total_.data() + c * kStrip);
        length_[c] = 0;
      }
    vectors_ = 0;
  }

  double given(std::size_t s, std::size_t j) const {
    if (s >= count_) return 0.0;
    const auto row = static_cast<std::size_t>(sums_.row[first_ + s]);
    return sums_.rows.given[row * sums_.rows.norms.size() + j];
  }

  const KernelTable& kernels_;
  const TableSums& sums_;
  std::size_t first_, count_, steps_, vectors_ = 0;
  std::vector<std::int64_t> place_;  // in the tile; columns of kTogether
  std::vector<double> weight_;
  std::vector<std::size_t> length_;
  std::vector<double> total_;  // columns of a strip
  std::array<std::size_t, kTogether> vector_{};
  Packed packed_;
  Gathered<double> gathered_;
};

}  // namespace

void sum_batch(const KernelTable& kernels, const TableSums& sums, std::size_t threads,
               const std::function<bool()>& stop) {
  Crew crew(threads, stop);
  const std::size_t groups = sums.group_end.size();
  const std::size_t strips = (sums.row.size() + kStrip - 1) / kStrip;
  crew.run(groups * strips, [&](std::size_t task, bool is_caller) {
    StripSums(kernels, sums, task / groups * kStrip).run(task % groups, crew, is_caller);
  });
}

}  // namespace widemargin
