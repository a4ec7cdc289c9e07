// Rows that problems over the same samples share, made at once: packed samples in float32, and all
// rows as a batch in both precisions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "pack.hpp"

namespace widemargin {

// An array at a multiple of 64 bytes, without numbers in it.
template <class T>
class AlignedRoom {
 public:
  explicit AlignedRoom(std::size_t size)
      : data_(static_cast<T*>(::operator new(size * sizeof(T), kAlign))) {}
  T* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlign); }
  };
  std::unique_ptr<T, Free> data_;
};

// What the rows are moved by, and whether they have norms |x|^2: else these are 0.
struct Moved {
  std::span<const double> center;
  bool has_squares;
};

class GroupRows {
 public:
  // Of m rows of n columns, which `places` padded samples are.
  GroupRows(std::size_t m, std::size_t n, std::size_t places)
      : m_(m),
        n_(n),
        places_(places),
        packed_(places * n),
        norms_(places),
        rows_(m * n),
        row_norms_(m),
        exact_(m * n),
        exact_norms_(m) {}

  Strips<float> strips() const {
    return {packed_.data(), norms_.data(), nullptr, nullptr, places_, n_};
  }
  Batch<float> batch() const { return batch_of(rows_, row_norms_); }
  Batch<double> exact() const { return batch_of(exact_, exact_norms_); }
  std::span<double> norms() const { return {exact_norms_.data(), m_}; }

  // Fill all from X, whose rows the samples are by `place`; `look` is called between some of them.
  template <class View, class Look>
  void fill(const KernelTable& kernels, const View& X, std::span<const std::int64_t> place,
            const Moved& moved, const Moved& exactly, const Look& look) const {
    const std::size_t some = std::max(kEntries / n_, std::size_t{1}) * kStrip;
    for (std::size_t first = 0; first < places_; first += some) {
      look();
      const auto part = place.subspan(first, std::min(places_ - first, some));
      float* const norms = norms_.data() + first;
      pack(X, part, n_, moved.center.data(), packed_.data() + first * n_, norms,
           kernels.squares<float>());
      if (!moved.has_squares) std::fill(norms, norms + part.size(), 0.0f);
      for (std::size_t s = 0; s < part.size(); ++s) row_norms_.data()[part[s]] = norms[s];
    }
    const AlignedRoom<double> strip(n_ * kStrip);
    std::int64_t index[kStrip];
    for (std::size_t first = 0, next = 0; first < m_; first += kStrip) {
      if (first >= next) look(), next = first + some;
      const std::size_t count = std::min(m_ - first, kStrip);
      for (std::size_t s = 0; s < count; ++s) index[s] = static_cast<std::int64_t>(first + s);
      const std::span<const std::int64_t> own(index, count);
      dense_rows(X, own, n_, moved.center.data(), rows_.data() + first * n_);
      dense_rows(X, own, n_, exactly.center.data(), exact_.data() + first * n_);
      double norms[kStrip] = {};
      if (exactly.has_squares)
        pack(X, own, n_, exactly.center.data(), strip.data(), norms, kernels.squares<double>());
      std::copy_n(norms, count, exact_norms_.data() + first);
    }
  }

 private:
  // Entries of 64 rows between two looks: some milliseconds.
  static constexpr std::size_t kEntries = 1 << 16;

  template <class Real>
  Batch<Real> batch_of(const AlignedRoom<Real>& rows, const AlignedRoom<Real>& norms) const {
    return {rows.data(), norms.data(), nullptr, nullptr, nullptr, m_, n_, m_ % kGroup == 0};
  }

  std::size_t m_, n_, places_;
  AlignedRoom<float> packed_, norms_, rows_, row_norms_;
  AlignedRoom<double> exact_, exact_norms_;
};

}  // namespace widemargin
