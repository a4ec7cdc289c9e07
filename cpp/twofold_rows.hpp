// Products and kernel sums of rows of any storage in doubled precision: see twofold.hpp. What is
// there is compiled for each instruction set; here rows are laid out for it.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "csr.hpp"
#include "dense.hpp"
#include "twofold.hpp"

namespace widemargin {

// Reads rows as float64, one at a time: a row is valid until the next.
class TwofoldReader {
 public:
  template <typename Real>
  TwofoldRow operator()(const DenseView<Real>& X, std::size_t i) {
    const Real* x = X.data + i * X.n;
    if constexpr (std::is_same_v<Real, double>) return {x, nullptr, X.n};
    values_.assign(x, x + X.n);
    return {values_.data(), nullptr, X.n};
  }
  template <typename Real, typename Index>
  TwofoldRow operator()(const CsrView<Real, Index>& X, std::size_t i) {
    const auto begin = static_cast<std::size_t>(X.indptr[i]);
    const auto count = static_cast<std::size_t>(X.indptr[i + 1]) - begin;
    const Real* x = X.data.data() + begin;
    const Index* j = X.indices.data() + begin;
    values_.assign(x, x + count);
    columns_.assign(j, j + count);
    columns_.push_back(0);  // its place says that the row is sparse, also where it is empty
    return {values_.data(), columns_.data(), count};
  }

 private:
  std::vector<double> values_;
  std::vector<std::size_t> columns_;
};

// size = infinity where hi + lo is no number.
inline void mark_overflow(const TwofoldSums& sums, std::size_t count) {
  for (std::size_t j = 0; j < count; ++j)
    if (!std::isfinite(sums.hi[j]) || !std::isfinite(sums.lo[j]))
      sums.size[j] = std::numeric_limits<double>::infinity();
}

// sums_i += x_i'w, and its size by at least sum_j |x_ij| |w_j|.
template <typename View>
void twofold_matvec(const TwofoldTable& table, const View& X, std::size_t k, const double* w,
                    const TwofoldSums& sums) {
  TwofoldReader read;
  for (std::size_t i = 0; i < k; ++i) {
    const TwofoldRow x = read(X, i);
    double size = 0.0;
    table.dot(x, w, {sums.hi + i, sums.lo + i, &size});
    sums.size[i] = rounded_up(sums.size[i] + rounded_up(size, x.count), 1);
  }
  mark_overflow(sums, k);
}

// sums += X'a, and their sizes by at least |X|'|a|. Rows with a_i = 0 are not read.
template <typename View>
void twofold_rmatvec(const TwofoldTable& table, const View& X, std::span<const double> a,
                     std::size_t n, const TwofoldSums& sums) {
  TwofoldReader read;
  std::vector<double> sizes(n);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != 0.0) table.add_row(read(X, i), a[i], {sums.hi, sums.lo, sizes.data()});
  for (std::size_t j = 0; j < n; ++j)
    sums.size[j] = rounded_up(sums.size[j] + rounded_up(sizes[j], a.size()), 1);
  mark_overflow(sums, n);
}

// A group of rows over the columns that one of them uses, and one more that is zero: for what other
// rows have elsewhere.
class TwofoldGroup {
 public:
  explicit TwofoldGroup(std::size_t n) : place_(n, kNowhere) {}

  // Rows begin .. end - 1, at most kTwofoldRows; zeros after them.
  template <typename View>
  void pack(const View& X, std::size_t begin, std::size_t end) {
    for (const auto j : columns_) place_[j] = kNowhere;
    columns_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const TwofoldRow x = read_(X, i);
      for (std::size_t t = 0; t < x.count; ++t) add_column(x.columns ? x.columns[t] : t);
    }
    entries_.assign((columns_.size() + 1) * kTwofoldRows, 0.0);
    for (std::size_t i = begin; i < end; ++i) {
      const TwofoldRow x = read_(X, i);
      for (std::size_t t = 0; t < x.count; ++t)
        entries_[place_[x.columns ? x.columns[t] : t] * kTwofoldRows + i - begin] = x.values[t];
    }
  }

  // The group and a row of another matrix: as it is where dense. Of a sparse one, for products what
  // both have; for distances what one of them has.
  TwofoldPair with(const TwofoldRow& z, bool distance) {
    if (!z.columns) return {entries_.data(), z};
    met_.assign(distance ? columns_.size() : 0, 0.0);
    places_.resize(met_.size());
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p] = p;
    for (std::size_t t = 0; t < z.count; ++t) {
      const std::size_t p = place_[z.columns[t]];
      if (distance && p != kNowhere) {
        met_[p] = z.values[t];
      } else if (distance || p != kNowhere) {
        met_.push_back(z.values[t]);
        places_.push_back(p == kNowhere ? columns_.size() : p);
      }
    }
    return {entries_.data(), {met_.data(), places_.data(), met_.size()}};
  }

  const double* entries() const { return entries_.data(); }
  std::size_t width() const { return columns_.size(); }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  void add_column(std::size_t j) {
    if (place_[j] != kNowhere) return;
    place_[j] = columns_.size();
    columns_.push_back(j);
  }

  TwofoldReader read_;
  std::vector<std::size_t> place_, columns_, places_;  // of each column; of each place; met
  std::vector<double> entries_, met_;
};

// Twofold numbers with bounds of their errors and sizes.
struct TwofoldBounded {
  double *hi, *lo, *error, *size;  // no sizes: null

  // Sums of `terms` terms, of which each has its error in `sums`.
  void write(const TwofoldKernelSums& sums, std::size_t begin, std::size_t end,
             std::size_t terms) const {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t r = i - begin;
      const double size = rounded_up(sums.size[r] + sums.error[r], terms);
      const double bound = rounded_up(sums.error[r] + twofold_error(terms, size), terms);
      const bool is_number = std::isfinite(sums.hi[r]) && std::isfinite(sums.lo[r]);
      hi[i] = sums.hi[r];
      lo[i] = sums.lo[r];
      error[i] = is_number && bound >= 0.0 ? bound : std::numeric_limits<double>::infinity();
      if (size_of(i)) *size_of(i) = is_number ? size : std::numeric_limits<double>::infinity();
    }
  }

 private:
  double* size_of(std::size_t i) const { return size ? size + i : nullptr; }
};

// out_i = sum_j c_j k(x_i, z_j) for the k rows of X. Sparse rows have no column twice.
template <typename View, typename Other>
void twofold_kernel_sums(const TwofoldTable& table, const KernelForm& form, const View& X,
                         std::size_t k, std::size_t n, const Other& Z, std::span<const double> c,
                         const TwofoldBounded& out) {
  const bool distance = term_of(form.kind) != Term::product;
  TwofoldGroup group(n);
  TwofoldReader read;
  for (std::size_t begin = 0; begin < k; begin += kTwofoldRows) {
    const std::size_t end = std::min(k, begin + kTwofoldRows);
    group.pack(X, begin, end);
    TwofoldKernelSums sums;
    for (std::size_t j = 0; j < c.size(); ++j)
      table.add_kernel(form, group.with(read(Z, j), distance), c[j], sums);
    out.write(sums, begin, end, c.size());
  }
}

// out_i = k(x_i, x_i)
template <typename View>
void twofold_kernel_diag(const TwofoldTable& table, const KernelForm& form, const View& X,
                         std::size_t k, std::size_t n, const TwofoldBounded& out) {
  TwofoldGroup group(n);
  for (std::size_t begin = 0; begin < k; begin += kTwofoldRows) {
    const std::size_t end = std::min(k, begin + kTwofoldRows);
    group.pack(X, begin, end);
    TwofoldKernelSums sums;
    table.add_diagonal(form, group.entries(), group.width(), sums);
    out.write(sums, begin, end, 1);
  }
}

// sum of a_i (hi_i + lo_i), whatever the size of lo, and its error.
inline void twofold_dot(const TwofoldTable& table, std::span<const double> a, const double* hi,
                        const double* lo, const TwofoldBounded& out) {
  const TwofoldRow row{a.data(), nullptr, a.size()};
  TwofoldKernelSums sums;
  for (const double* part : {hi, lo}) table.dot(row, part, {sums.hi, sums.lo, sums.size});
  out.write(sums, 0, 1, 2 * a.size());
}

}  // namespace widemargin
