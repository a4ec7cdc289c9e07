// The rows of K that problems of a batch have made, kept for all of them, part by part.
#pragma once

#include <algorithm>
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

class Pool {
 public:
  explicit Pool(std::size_t floats) : size_((floats + 15) / 16 * 16) {}

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return bytes_; }
  float* take() {
    const std::lock_guard guard(lock_);
    bytes_ += size_ * sizeof(float);
    if (!free_.empty()) {
      float* block = free_.back();
      free_.pop_back();
      return block;
    }
    const std::size_t bytes = size_ * sizeof(float), some = bytes < kSmall ? 1 : kBlocksAtOnce;
    const bool are_few = some == 1 || (bytes < kLarge && small_.empty());
    auto* const first = static_cast<float*>(are_few ? small(some * bytes) : large(some * bytes));
    for (std::size_t k = some; k-- > 1;) free_.push_back(first + k * size_);
    return first;
  }
  void give_back(const std::vector<float*>& blocks) {
    const std::lock_guard guard(lock_);
    free_.insert(free_.end(), blocks.begin(), blocks.end());
    bytes_ -= blocks.size() * size_ * sizeof(float);
  }

 private:
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
  std::vector<float*> free_;
  std::atomic<std::size_t> bytes_{0};  // in use
};

// Memory for parts of rows, given back all at once.
class Arena {
 public:
  // At most as many as a block of the pool has.
  float* take(std::size_t floats, Pool& pool) {
    const std::lock_guard guard(lock_);
    if (floats > left_) {
      blocks_.push_back(pool.take());
      next_ = blocks_.back(), left_ = pool.size();
    }
    float* out = next_;
    next_ += floats, left_ -= floats;
    return out;
  }
  void clear(Pool& pool) {
    if (blocks_.empty()) return;
    pool.give_back(blocks_);
    blocks_.clear();
    next_ = nullptr, left_ = 0;
  }

 private:
  std::mutex lock_;
  std::vector<float*> blocks_;
  float* next_ = nullptr;
  std::size_t left_ = 0;
};

// The parts of rows of K that problems have made.
class KeptParts {
 public:
  KeptParts(const KernelTable& kernels, const BatchSamples& samples, const BatchProblems& problems)
      : run_(kernels.rows32),
        samples_(samples),
        groups_(samples.groups.size()),
        parts_(samples.groups.rows.size() * groups_),
        first_(groups_ + 1),
        arenas_(groups_ * (groups_ + 1) / 2),
        users_(arenas_.size()),
        pool_(block_of(samples.groups)) {
    for (std::size_t g = 0; g < groups_; ++g)
      first_[g + 1] = first_[g] + static_cast<std::size_t>(samples.groups.count[g]);
    for (std::size_t t = 0; t < problems.size(); ++t)
      each_pair(problems, t, [&](std::size_t a, std::size_t b) { ++users_[pair(a, b)]; });
  }

  const float** of_sample(std::size_t s) { return &parts_[s * groups_]; }
  std::size_t first(std::size_t group) const { return first_[group]; }
  std::size_t bytes() const { return pool_.bytes(); }
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
  std::size_t at_once(std::size_t group) const {
    const auto strips = samples_.groups.strip[group + 1] - samples_.groups.strip[group];
    return pool_.size() / (static_cast<std::size_t>(strips) * kStrip);
  }

  // The parts `group` of so many samples, all of one group.
  void make(const std::size_t* samples, std::size_t count, std::size_t own, std::size_t group,
            Gathered<float>& rows) {
    const std::size_t begin = static_cast<std::size_t>(samples_.groups.strip[group]);
    const std::size_t strips = static_cast<std::size_t>(samples_.groups.strip[group + 1]) - begin;
    const std::size_t width = strips * kStrip;
    float* out = arenas_[pair(own, group)].take(count * width, pool_);
    if (samples_.is_given())
      take_given(samples, count, group, width, out);
    else
      compute(samples, count, begin, width, out, rows);
    for (std::size_t r = 0; r < count; ++r)
      __atomic_store_n(of_sample(samples[r]) + group, out + r * width, __ATOMIC_RELEASE);
    evaluations_ += static_cast<std::int64_t>(count * width);
  }

  // A problem has ended: what no other one will need is given back.
  void end(const BatchProblems& problems, std::size_t t) {
    each_pair(problems, t, [&](std::size_t a, std::size_t b) {
      const std::size_t k = pair(a, b);
      if (--users_[k] == 0) arenas_[k].clear(pool_);
    });
  }
  // A problem that has ended goes on, while no other one is at work.
  void begin_again(const BatchProblems& problems, std::size_t t) {
    const auto forget = [&](std::size_t own, std::size_t group) {
      for (std::size_t s = first_[own]; s < first_[own + 1]; ++s) of_sample(s)[group] = nullptr;
    };
    each_pair(problems, t, [&](std::size_t a, std::size_t b) {
      if (users_[pair(a, b)]++ == 0) forget(a, b), forget(b, a);
    });
  }

 private:
  void compute(const std::size_t* samples, std::size_t count, std::size_t begin, std::size_t width,
               float* out, Gathered<float>& rows) {
    const std::size_t n = samples_.strips.n;
    const Strips<float> strip{samples_.strips.data + begin * kStrip * n,
                              samples_.strips.norms + begin * kStrip,
                              nullptr,
                              nullptr,
                              width,
                              n};
    const auto batch = rows.fill(samples_.batch, count, [&](std::size_t r) {
      return static_cast<std::size_t>(samples_.groups.rows[samples[r]]);
    });
    Target<float> target{out, nullptr, width, nullptr, nullptr, 0, 0};
    target.past_caches = false;
    run_(samples_.form, strip, batch, target, 0, width / kStrip);
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

  // Room for the parts of some rows of the largest group; a megabyte where there are many.
  static std::size_t block_of(const Groups& groups) {
    std::size_t width = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
      width = std::max(width, static_cast<std::size_t>(groups.strip[g + 1] - groups.strip[g]));
    width *= kStrip;
    return std::max(kTogether * width, std::min<std::size_t>(width * width / 4, 1 << 18));
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
  std::size_t groups_;
  std::vector<const float*> parts_;
  std::vector<std::size_t> first_;
  std::vector<Arena> arenas_;
  std::vector<std::atomic<std::size_t>> users_;
  AllValues all_;
  Pool pool_;
  std::atomic<std::int64_t> evaluations_{0};
};

}  // namespace widemargin
