// Memory in large pages, where there are: touching new ones takes longer than to fill them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace widemargin {

constexpr std::size_t kHugePage = 1 << 21;

// Large blocks that the process is not using now, kept for the next fit: where a fit frees 40 MB,
// the system has to clear as many for the next one. Fits of 4,000 rows of a9a, one after the other,
// take 0.85 of the time. Where memory is short the system may take most of them meanwhile.
class Spare {
 public:
  struct Block {
    void* begin;
    std::size_t bytes;
  };

  static Spare& of_process() {
    static Spare* const all = new Spare;  // not freed: blocks come back until the very end
    return *all;
  }
  // A block of at least so many bytes, and at most twice as many; or none, of 0 bytes.
  Block take(std::size_t bytes) {
    const std::lock_guard guard(lock_);
    auto best = blocks_.end();
    for (auto one = blocks_.begin(); one != blocks_.end(); ++one)
      if (one->bytes >= bytes && one->bytes <= 2 * bytes &&
          (best == blocks_.end() || one->bytes < best->bytes))
        best = one;
    if (best == blocks_.end()) return {nullptr, 0};
    const Block found = *best;
    blocks_.erase(best), bytes_ -= found.bytes;
    return found;
  }
  // Keep a block, in the place of the oldest ones.
  void give_back(const Block& block) {
    const std::lock_guard guard(lock_);
    while (!blocks_.empty() && bytes_ + block.bytes > kMost) {
      std::free(blocks_.front().begin);
      bytes_ -= blocks_.front().bytes;
      blocks_.erase(blocks_.begin());
    }
    if (block.bytes > kMost) {
      std::free(block.begin);
      return;
    }
    blocks_.push_back(block), bytes_ += block.bytes;
#if defined(MADV_FREE)
    if (bytes_ > kOwn) madvise(block.begin, block.bytes, MADV_FREE);
#endif
  }
  // How many of them the system may take.
  std::size_t lent() {
    const std::lock_guard guard(lock_);
    return bytes_ - std::min(bytes_, kOwn);
  }

 private:
  // What is kept for the process alone, as much as the C library keeps, too; and in all. SVCCV on
  // 5,000 rows of a9a, whose rows of K take 150 MB, takes 0.87 of the time with more than 64 MB.
  static constexpr std::size_t kOwn = 64 << 20, kMost = 256 << 20;
  Spare() { blocks_.reserve(kMost / kHugePage); }

  std::mutex lock_;
  std::vector<Block> blocks_;
  std::size_t bytes_ = 0;
};

// Bytes that begin a large page and end with one. None is there before it is touched, but in a
// block that was in use before.
class LargePages {
 public:
  LargePages() = default;
  // Of at least one page.
  explicit LargePages(std::size_t bytes)
      : bytes_(std::max(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage)),
        block_(Spare::of_process().take(bytes_)) {
    if (block_.begin != nullptr) return;
    block_ = {std::aligned_alloc(kHugePage, bytes_), bytes_};
    if (block_.begin == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    madvise(block_.begin, bytes_, MADV_HUGEPAGE);
#endif
  }
  LargePages(LargePages&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), block_(std::exchange(other.block_, {nullptr, 0})) {}
  LargePages& operator=(LargePages&& other) noexcept {
    std::swap(bytes_, other.bytes_), std::swap(block_, other.block_);
    return *this;
  }
  ~LargePages() {
    if (block_.begin != nullptr) Spare::of_process().give_back(block_);
  }

  // As many as were asked for, in whole pages, wherever they are from.
  std::size_t bytes() const { return bytes_; }
  void* get() const { return block_.begin; }

 private:
  std::size_t bytes_ = 0;
  Spare::Block block_{nullptr, 0};
};

}  // namespace widemargin
