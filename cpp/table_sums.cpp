#include "table_sums.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "crew.hpp"
#include "gathered.hpp"

namespace widemargin {
namespace {

// Rows with weights that meet a strip together: their values stay in the first-level cache. And
// the room for as many, so that columns do not have the same places in it.
constexpr std::size_t kTogether = 64, kRoom = kTogether + 8;
// Bytes of rows to score that are packed at a time.
constexpr std::size_t kPackedBytes = 4 << 20;

// Sums at the rows of some strips. Most weights are zero where C is large: each column has a list
// of those that are not.
class StripSums {
 public:
  StripSums(const KernelTable& kernels, const TableSums& sums, std::size_t begin, std::size_t end)
      : kernels_(kernels),
        sums_(sums),
        rows_(sums.row.subspan(begin * kStrip,
                               std::min(sums.row.size(), end * kStrip) - begin * kStrip)),
        begin_(begin),
        found_(sums.columns),
        place_(sums.columns * kRoom),
        weight_(sums.columns * kRoom),
        length_(sums.columns) {
    for (; begin < end; ++begin)
      steps_.push_back(static_cast<std::size_t>(std::ranges::max(sums.wanted.subspan(
          begin * kStrip, std::min(kStrip, sums.row.size() - begin * kStrip)))));
    if (is_given()) return;
    packed_.fill(sums.rows.batch, sums.rows.norms, rows_);
  }

  void run(std::size_t group, Crew& crew, bool is_caller) {
    const auto end = static_cast<std::size_t>(sums_.group_end[group]);
    for (auto j = static_cast<std::size_t>(group > 0 ? sums_.group_end[group - 1] : 0); j < end;
         ++j) {
      list(static_cast<std::size_t>(sums_.order[j]));
      if (vectors_ < kTogether) continue;
      if (crew.stopped(is_caller)) return;
      add(group);
    }
    if (vectors_ > 0) add(group);
  }

 private:
  bool is_given() const { return !sums_.rows.given.empty(); }

  // Put the weights of row j on the lists.
  void list(std::size_t j) {
    const double* w = sums_.weight.data() + j * sums_.columns;
    std::size_t found = 0;
    for (std::size_t c = 0; c < sums_.columns; ++c) {
      found_[found] = c;
      found += w[c] != 0.0;
    }
    if (found == 0) return;
    for (std::size_t k = 0; k < found; ++k) {
      const std::size_t c = found_[k], last = c * kRoom + length_[c]++;
      place_[last] = static_cast<std::int64_t>(vectors_), weight_[last] = w[c];
    }
    vector_[vectors_++] = j;
  }

  // Add what is on the lists.
  void add(std::size_t group) {
    alignas(64) double tile[kTogether * kStrip];
    Batch<double> batch{};
    if (!is_given())
      batch = gathered_.fill(sums_.rows.batch, vectors_, [&](auto v) { return vector_[v]; });
    const std::size_t width = in_strips(sums_.row.size());
    double* const out = sums_.out.data() + group * sums_.columns * width + begin_ * kStrip;
    for (std::size_t strip = 0; strip < steps_.size(); ++strip) {
      if (is_given())
        copy_given(strip, tile);
      else
        make(strip, batch, tile);
      for (std::size_t first = 0; first < sums_.columns; first += sums_.steps)
        for (std::size_t c = first; c < first + steps_[strip]; ++c)
          kernels_.add64(tile, place_.data() + c * kRoom, length_[c], kStrip,
                         weight_.data() + c * kRoom, 0, kStrip, out + c * width + strip * kStrip);
    }
    std::ranges::fill(length_, std::size_t{0});
    vectors_ = 0;
  }

  void make(std::size_t strip, const Batch<double>& batch, double* tile) {
    Target<double> target{tile - strip * kStrip, nullptr, kStrip, nullptr, nullptr, 0, 0};
    target.past_caches = false;
    const auto X = packed_.strips(rows_.size(), batch.n);
    kernels_.rows64(sums_.rows.form, X, batch, target, strip, strip + 1);
  }

  void copy_given(std::size_t strip, double* tile) const {
    const std::size_t first = strip * kStrip, m = sums_.rows.norms.size();
    for (std::size_t s = 0; s < kStrip; ++s)
      for (std::size_t v = 0; v < vectors_; ++v)
        tile[v * kStrip + s] =
            first + s < rows_.size()
                ? sums_.rows.given[static_cast<std::size_t>(rows_[first + s]) * m + vector_[v]]
                : 0.0;
  }

  const KernelTable& kernels_;
  const TableSums& sums_;
  std::span<const std::int64_t> rows_;
  std::size_t begin_, vectors_ = 0;
  std::vector<std::size_t> steps_, found_;  // steps of each strip; columns that are not zero
  std::vector<std::int64_t> place_;         // in the tile; columns of kRoom
  std::vector<double> weight_;
  std::vector<std::size_t> length_;
  std::array<std::size_t, kTogether> vector_{};
  Packed packed_;
  Gathered<double> gathered_;
};

}  // namespace

void sum_batch(const KernelTable& kernels, const TableSums& sums, std::size_t threads,
               const std::function<bool()>& stop) {
  Crew crew(threads, stop);
  const std::size_t groups = sums.group_end.size();
  const std::size_t strips = in_strips(sums.row.size()) / kStrip;
  // A list serves many strips, but all threads have work. What comes out does not depend on it.
  const std::size_t n_bytes = strips * kStrip * sums.rows.batch.n * sizeof(double);
  const std::size_t wanted = std::max((threads + groups - 1) / groups, 1 + n_bytes / kPackedBytes);
  const std::size_t cut = std::min(strips, wanted);
  crew.run(groups * cut, [&](std::size_t task, bool is_caller) {
    const std::size_t part = task / groups;
    StripSums(kernels, sums, strips * part / cut, strips * (part + 1) / cut)
        .run(task % groups, crew, is_caller);
  });
}

}  // namespace widemargin
