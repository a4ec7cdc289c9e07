// Memory in large pages, where there are: touching new ones takes longer than to fill them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace widemargin {

constexpr std::size_t kHugePage = 1 << 21;

// Bytes that begin a large page and end with one. None is there before it is touched.
class LargePages {
 public:
  LargePages() = default;
  explicit LargePages(std::size_t bytes) : bytes_((bytes + kHugePage - 1) / kHugePage * kHugePage) {
    begin_.reset(std::aligned_alloc(kHugePage, bytes_));
    if (!begin_) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    madvise(begin_.get(), bytes_, MADV_HUGEPAGE);
#endif
  }

  std::size_t bytes() const { return bytes_; }
  void* get() const { return begin_.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::size_t bytes_ = 0;
  std::unique_ptr<void, Free> begin_;
};

}  // namespace widemargin
