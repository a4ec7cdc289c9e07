// The rows of K that problems of a batch have made, kept for all of them, part by part.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "all_values.hpp"
#include "batch.hpp"
#include "crew.hpp"
#include "gathered.hpp"
#include "kernel_rows.hpp"
#include "large_pages.hpp"
#include "pair_steps.hpp"

namespace widemargin {

// Rows of K that are made together.
constexpr std::size_t kTogether = 6;
// Blocks of memory that are used again: touching new pages takes longer than to fill them. All but
// small ones are taken some at once, and none is there before it is touched. The first of medium
// ones are the C library's: few rows need no more. Others are in large pages where there are, and
// `Spare` keeps them for the next fit; the library gives many megabytes back each time.
constexpr std::size_t kSmall = 1 << 17, kLarge = 1 << 20, kBlocksAtOnce = 16;

template <typename Stored>
class Pool {
 public:
  explicit Pool(std::size_t numbers) : size_((numbers + kLine - 1) / kLine * kLine) {}

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return bytes_; }
  Stored* take() {
    const std::lock_guard guard(lock_);
    bytes_ += size_ * sizeof(Stored);
    if (!free_.empty()) {
      Stored* block = free_.back();
      free_.pop_back();
      return block;
    }
    const std::size_t bytes = size_ * sizeof(Stored), some = bytes < kSmall ? 1 : kBlocksAtOnce;
    const bool are_few = some == 1 || (bytes < kLarge && small_.empty());
    auto* const first = static_cast<Stored*>(are_few ? small(some * bytes) : large(some * bytes));
    for (std::size_t k = some; k-- > 1;) free_.push_back(first + k * size_);
    return first;
  }
  void give_back(const std::vector<Stored*>& blocks) {
    const std::lock_guard guard(lock_);
    free_.insert(free_.end(), blocks.begin(), blocks.end());
    bytes_ -= blocks.size() * size_ * sizeof(Stored);
  }

 private:
  static constexpr std::size_t kLine = 64 / sizeof(Stored);
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  void* small(std::size_t bytes) {
    constexpr std::size_t line = 64;
    void* raw = std::malloc(bytes + line);
    if (raw == nullptr) throw std::bad_alloc();
    small_.emplace_back(raw);
    std::size_t room = bytes + line;
    return std::align(line, bytes, raw, room);
  }
  void* large(std::size_t bytes) { return large_.emplace_back(bytes).get(); }

  std::size_t size_;
  std::mutex lock_;
  std::vector<std::unique_ptr<void, Free>> small_;
  std::vector<LargePages> large_;
  std::vector<Stored*> free_;
  std::atomic<std::size_t> bytes_{0};  // in use
};

// Memory for parts of rows, given back all at once.
template <typename Stored>
class Arena {
 public:
  // At most as many as a block of the pool has.
  Stored* take(std::size_t numbers, Pool<Stored>& pool) {
    const std::lock_guard guard(lock_);
    if (numbers > left_) {
      blocks_.push_back(pool.take());
      next_ = blocks_.back(), left_ = pool.size();
    }
    Stored* out = next_;
    next_ += numbers, left_ -= numbers;
    return out;
  }
  void clear(Pool<Stored>& pool) {
    if (blocks_.empty()) return;
    pool.give_back(blocks_);
    blocks_.clear();
    next_ = nullptr, left_ = 0;
  }

 private:
  std::mutex lock_;
  std::vector<Stored*> blocks_;
  Stored* next_ = nullptr;
  std::size_t left_ = 0;
};

// Parts of rows by sample and group, of which threads take and keep some.
template <typename Stored>
class Parts {
 public:
  // Of so many samples. `together` parts of the largest group have room in a block; a megabyte
  // where there are many.
  Parts(const Groups& groups, std::size_t samples, std::size_t together)
      : groups_(groups.size()),
        parts_(samples * groups_),
        arenas_(groups_ * (groups_ + 1) / 2),
        pool_(block_of(groups, together)) {}

  const Stored** of_sample(std::size_t s) { return &parts_[s * groups_]; }
  bool has(std::size_t s, std::size_t group) const {
    return __atomic_load_n(&parts_[s * groups_ + group], __ATOMIC_RELAXED) != nullptr;
  }
  std::size_t bytes() const { return pool_.bytes(); }
  // How many parts of so many numbers may be taken at once.
  std::size_t at_once(std::size_t width) const { return pool_.size() / width; }
  Stored* take(std::size_t pair, std::size_t numbers) { return arenas_[pair].take(numbers, pool_); }
  void keep(const std::size_t* samples, std::size_t count, std::size_t group, const Stored* first,
            std::size_t width) {
    for (std::size_t r = 0; r < count; ++r)
      __atomic_store_n(of_sample(samples[r]) + group, first + r * width, __ATOMIC_RELEASE);
  }
  void clear(std::size_t pair) { arenas_[pair].clear(pool_); }

 private:
  static std::size_t block_of(const Groups& groups, std::size_t together) {
    constexpr std::size_t megabyte = (std::size_t{1} << 20) / sizeof(Stored);
    std::size_t width = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
      width = std::max(width, static_cast<std::size_t>(groups.strip[g + 1] - groups.strip[g]));
    width *= kStrip;
    return std::max(together * width, std::min(width * width / 4, megabyte));
  }

  std::size_t groups_;
  std::vector<const Stored*> parts_;
  std::vector<Arena<Stored>> arenas_;
  Pool<Stored> pool_;
};

// The parts of rows of K that problems have made.
class KeptParts {
 public:
  KeptParts(const KernelTable& kernels, const BatchSamples& samples, const BatchProblems& problems)
      : run_(kernels.rows32),
        samples_(samples),
        make_codes_(kernels.ones_apart),
        groups_(samples.groups.size()),
        step_(make_codes_ != nullptr ? step_of_codes(samples) : 0),
        rows_(samples.groups, samples.groups.rows.size(), kTogether),
        codes_(samples.groups, are_coded() ? samples.groups.rows.size() : 0, 1),
        first_(groups_ + 1),
        users_(groups_ * (groups_ + 1) / 2) {
    if (are_coded()) {
      kernels.values_apart(samples.form.gamma, static_cast<float>(step_), values_.data(), kCodes);
      ones_.resize(kStrip * static_cast<std::size_t>(samples.groups.strip[groups_]));
      for (std::size_t s = 0; s < ones_.size(); ++s)
        ones_[s] = static_cast<std::uint8_t>(samples.strips.norms[s]);
    }
    for (std::size_t g = 0; g < groups_; ++g)
      first_[g + 1] = first_[g] + static_cast<std::size_t>(samples.groups.count[g]);
    for (std::size_t t = 0; t < problems.size(); ++t)
      each_pair(problems, t, [&](std::size_t a, std::size_t b) { ++users_[pair(a, b)]; });
  }

  const float** of_sample(std::size_t s) { return rows_.of_sample(s); }
  const std::uint8_t** codes_of_sample(std::size_t s) { return codes_.of_sample(s); }
  // Whether rows may be coded, with these values.
  bool are_coded() const { return step_ > 0; }
  const float* values() const { return values_.data(); }
  std::size_t first(std::size_t group) const { return first_[group]; }
  std::size_t bytes() const { return rows_.bytes() + codes_.bytes(); }
  std::int64_t evaluations() const { return evaluations_; }
  void count(std::int64_t others) { evaluations_ += others; }

  // Make the values of all rows with each other in float64.
  void make_all(const KernelTable& kernels, Crew& crew) {
    const auto& exact = samples_.exact;
    all_.make(kernels, exact.form, exact.batch, exact.norms, crew);
    evaluations_ += static_cast<std::int64_t>(exact.batch.count * all_.rows().width);
  }
  // These, or given ones; null where there are none.
  StoredRows<double> all_values() const {
    if (samples_.is_given()) return {samples_.exact.given.data(), samples_.diagonal.size()};
    return all_.rows();
  }

  // How many parts of a group may be made at once.
  std::size_t at_once(std::size_t group) const { return rows_.at_once(width_of(group)); }

  // The parts `group` of so many samples, all of one group.
  void make(const std::size_t* samples, std::size_t count, std::size_t own, std::size_t group,
            Gathered<float>& rows) {
    const auto begin = static_cast<std::size_t>(samples_.groups.strip[group]);
    const std::size_t width = width_of(group);
    float* out = rows_.take(pair(own, group), count * width);
    if (samples_.is_given())
      take_given(samples, count, group, width, out);
    else
      compute(samples, count, begin, width, out, rows);
    rows_.keep(samples, count, group, out, width);
    evaluations_ += static_cast<std::int64_t>(count * width);
  }

  // The coded part `group` of a sample of a group. (Parts of 8 or 32 samples at once are made
  // sooner, each of them, but twice as many: a fit of 5,000 rows of a9a takes up to 1.3 times as
  // long.)
  void make_coded(std::size_t sample, std::size_t own, std::size_t group) {
    const auto begin = static_cast<std::size_t>(samples_.groups.strip[group]);
    const std::size_t width = width_of(group);
    std::uint8_t* out = codes_.take(pair(own, group), width);
    const auto& batch = samples_.batch;
    const auto row = static_cast<std::size_t>(samples_.groups.rows[sample]);
    const auto X = samples_.strips.part(begin, width);
    make_codes_(X.ones, &ones_[begin * kStrip], width, X.n, batch.indices + batch.begin[row],
                static_cast<std::size_t>(batch.end[row] - batch.begin[row]), step_ == 2, out);
    evaluations_ += static_cast<std::int64_t>(width);
    codes_.keep(&sample, 1, group, out, width);
  }

  // A problem has ended: what no other one will need is given back.
  void end(const BatchProblems& problems, std::size_t t) {
    each_pair(problems, t, [&](std::size_t a, std::size_t b) {
      const std::size_t k = pair(a, b);
      if (--users_[k] == 0) rows_.clear(k), codes_.clear(k);
    });
  }
  // A problem that has ended goes on, while no other one is at work.
  void begin_again(const BatchProblems& problems, std::size_t t) {
    const auto forget = [&](std::size_t own, std::size_t group) {
      for (std::size_t s = first_[own]; s < first_[own + 1]; ++s) {
        of_sample(s)[group] = nullptr;
        if (are_coded()) codes_of_sample(s)[group] = nullptr;
      }
    };
    each_pair(problems, t, [&](std::size_t a, std::size_t b) {
      if (users_[pair(a, b)]++ == 0) forget(a, b), forget(b, a);
    });
  }

 private:
  // Of a part.
  std::size_t width_of(std::size_t group) const {
    const auto strips = samples_.groups.strip[group + 1] - samples_.groups.strip[group];
    return static_cast<std::size_t>(strips) * kStrip;
  }

  void compute(const std::size_t* samples, std::size_t count, std::size_t begin, std::size_t width,
               float* out, Gathered<float>& rows) {
    const auto strips = samples_.strips.part(begin, width);
    const auto batch = rows.fill(samples_.batch, count, [&](std::size_t r) {
      return static_cast<std::size_t>(samples_.groups.rows[samples[r]]);
    });
    Target<float> target{out, nullptr, width, nullptr, nullptr, 0, 0};
    target.past_caches = false;
    run_(samples_.form, strips, batch, target, 0, width / kStrip);
  }

  // Of given values; zero for what pads.
  void take_given(const std::size_t* samples, std::size_t count, std::size_t group,
                  std::size_t width, float* out) const {
    const auto all = samples_.groups.rows;
    const auto columns = all.subspan(first_[group], first_[group + 1] - first_[group]);
    const std::size_t m = samples_.diagonal.size();
    for (std::size_t r = 0; r < count; ++r, out += width) {
      const double* row =
          samples_.exact.given.data() + static_cast<std::size_t>(all[samples[r]]) * m;
      for (std::size_t k = 0; k < columns.size(); ++k) out[k] = static_cast<float>(row[columns[k]]);
      std::fill(out + columns.size(), out + width, 0.0f);
    }
  }

  // What squared distances are multiples of, where all are so near that rows can be coded: of
  // samples of ones. Or 0.
  static std::size_t step_of_codes(const BatchSamples& samples) {
    if (samples.strips.ones == nullptr || samples.form.kind != KernelKind::rbf) return 0;
    std::size_t most = 0, odd = 0;
    for (std::size_t r = 0; r < samples.batch.count; ++r) {
      const auto ones = static_cast<std::size_t>(samples.batch.norms[r]);
      most = std::max(most, ones), odd += ones % 2;
    }
    const std::size_t step = odd == 0 || odd == samples.batch.count ? 2 : 1;
    return 2 * most < step * kCodes ? step : 0;
  }
  static std::size_t pair(std::size_t a, std::size_t b) {
    return a < b ? b * (b + 1) / 2 + a : a * (a + 1) / 2 + b;
  }
  template <class F>
  static void each_pair(const BatchProblems& problems, std::size_t t, const F& f) {
    const auto own = problems.groups_of(t);
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j)
        f(static_cast<std::size_t>(own[i]), static_cast<std::size_t>(own[j]));
  }

  KernelRows<float> run_;
  const BatchSamples& samples_;
  OnesDistances make_codes_;
  std::size_t groups_;
  std::size_t step_;                // of codes; 0: there are none
  std::vector<std::uint8_t> ones_;  // where there are, of each sample: how many
  Parts<float> rows_;
  Parts<std::uint8_t> codes_;
  std::vector<std::size_t> first_;
  std::vector<std::atomic<std::size_t>> users_;
  std::array<float, kCodes> values_{};
  AllValues all_;
  std::atomic<std::int64_t> evaluations_{0};
};

}  // namespace widemargin
