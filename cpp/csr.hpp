// Products of CSR rows with float64 sums, whatever the dtype of the entries and without copies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace widemargin {

// Rows of a sparse matrix: row i holds entries indptr[i] .. indptr[i + 1] - 1. Columns may be
// unsorted and may repeat (repeated entries add up).
template <typename Real, typename Index>
struct CsrView {
  std::span<const Index> indptr;
  std::span<const Index> indices;
  std::span<const Real> data;

  std::size_t rows() const { return indptr.size() - 1; }

  // out = X_i w for the rows i in begin .. end - 1. In four lanes, which hide the latency of sums:
  // up to twice as fast as one.
  void matvec(std::size_t begin, std::size_t end, const double* w, double* out) const {
    const auto product = [&](Index p) { return static_cast<double>(data[p]) * w[indices[p]]; };
    for (std::size_t i = begin; i < end; ++i) {
      const Index last = indptr[i + 1];
      Index p = indptr[i];
      double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
      for (; p + 4 <= last; p += 4) {
        a += product(p);
        b += product(p + 1);
        c += product(p + 2);
        d += product(p + 3);
      }
      for (; p < last; ++p) a += product(p);
      out[i - begin] = (a + b) + (c + d);
    }
  }

  // out += sum of u_i X_i over the rows i in begin .. end - 1
  void rmatvec(std::size_t begin, std::size_t end, const double* u, double* out) const {
    for (std::size_t i = begin; i < end; ++i) {
      const double ui = u[i - begin];
      if (ui == 0.0) continue;
      for (auto p = indptr[i]; p < indptr[i + 1]; ++p)
        out[indices[p]] += static_cast<double>(data[p]) * ui;
    }
  }

  // Whether no column of row i repeats because all of them rise. Without a way out in between,
  // which compilers could not do several columns at a time with.
  bool rises(std::size_t i) const {
    bool all = true;
    for (auto p = indptr[i] + 1; p < indptr[i + 1]; ++p) all &= indices[p - 1] < indices[p];
    return all;
  }

  // Whether the columns of all rows rise, within 0 .. n - 1.
  bool is_canonical(std::size_t n) const {
    for (std::size_t i = 0; i < rows(); ++i) {
      const Index first = indptr[i], last = indptr[i + 1];
      if (first == last) continue;
      if (!rises(i) || indices[first] < 0 || static_cast<std::size_t>(indices[last - 1]) >= n)
        return false;
    }
    return true;
  }
};

// Rows of n columns, of any type that the core reads.
struct Csr {
  std::variant<CsrView<double, std::int32_t>, CsrView<double, std::int64_t>,
               CsrView<float, std::int32_t>, CsrView<float, std::int64_t>>
      X;
  std::size_t n;

  template <typename F>
  auto visit(F f) const {
    return std::visit(f, X);
  }
  std::size_t rows() const {
    return visit([](const auto& rows) { return rows.rows(); });
  }
};

// out += X' diag(d) X of n columns, or [X 1]' diag(d) [X 1] where its order is n + 1: row-major,
// symmetric. Both triangles are filled at the end, so `out` must be symmetric before. Cost: sum of
// nnz_i^2 / 2 over the rows with d_i != 0.
template <typename Real, typename Index>
void csr_gram(const CsrView<Real, Index>& X, std::span<const double> d, std::span<double> out,
              std::size_t n, std::size_t order) {
  for (std::size_t i = 0; i < X.rows(); ++i) {
    const double di = d[i];
    if (di == 0.0) continue;
    const auto begin = static_cast<std::size_t>(X.indptr[i]);
    const auto end = static_cast<std::size_t>(X.indptr[i + 1]);
    bool rising = true;
    for (std::size_t p = begin + 1; p < end; ++p)
      rising = rising && X.indices[p - 1] < X.indices[p];
    for (std::size_t p = begin; p < end; ++p) {
      const auto a = static_cast<std::size_t>(X.indices[p]);
      const double x = static_cast<double>(X.data[p]), weighted = di * x;
      out[a * order + a] += weighted * x;
      // Lower triangle; a repeated column meets itself in both orders.
      if (rising) {
        double* line = &out[a * order];
        for (std::size_t q = begin; q < p; ++q)
          line[X.indices[q]] += weighted * static_cast<double>(X.data[q]);
        continue;
      }
      for (std::size_t q = begin; q < p; ++q) {
        const auto b = static_cast<std::size_t>(X.indices[q]);
        const double product = weighted * static_cast<double>(X.data[q]);
        out[a > b ? a * order + b : b * order + a] += a == b ? 2.0 * product : product;
      }
    }
    if (order > n) {
      double* border = &out[n * order];
      for (std::size_t p = begin; p < end; ++p)
        border[X.indices[p]] += di * static_cast<double>(X.data[p]);
      border[n] += di;
    }
  }
  for (std::size_t a = 0; a < order; ++a)
    for (std::size_t b = 0; b < a; ++b) out[b * order + a] = out[a * order + b];
}

// out += X' diag(d) X w of n columns, or [X 1]' diag(d) [X 1] w where w is one longer. Each row
// with d_i != 0 is read once.
template <typename Real, typename Index>
void csr_weighted_product(const CsrView<Real, Index>& X, std::span<const double> d,
                          std::span<const double> w, std::span<double> out, std::size_t n) {
  const bool intercept = w.size() > n;
  for (std::size_t i = 0; i < X.rows(); ++i) {
    if (d[i] == 0.0) continue;
    double product;
    X.matvec(i, i + 1, w.data(), &product);
    if (intercept) product += w[n];
    product *= d[i];
    X.rmatvec(i, i + 1, &product, out.data());
    if (intercept) out[n] += product;
  }
}

// sums += X'd, and squares += the diagonal of X' diag(d) X, as pairs (sum, square) of the columns:
// a line of the cache for both. `row` (n) is zero, and is zero again at the end.
template <typename Real, typename Index>
void csr_column_sums(const CsrView<Real, Index>& X, std::span<const double> d,
                     std::span<double> pairs, std::span<double> row) {
  for (std::size_t i = 0; i < X.rows(); ++i) {
    const double di = d[i];
    if (di == 0.0) continue;
    const auto first = X.indptr[i], last = X.indptr[i + 1];
    if (X.rises(i)) {
      for (auto p = first; p < last; ++p) {
        const auto x = static_cast<double>(X.data[p]);
        double* pair = &pairs[2 * static_cast<std::size_t>(X.indices[p])];
        pair[0] += di * x;
        pair[1] += di * x * x;
      }
      continue;
    }
    for (auto p = first; p < last; ++p) row[X.indices[p]] += static_cast<double>(X.data[p]);
    for (auto p = first; p < last; ++p) {
      double& x = row[X.indices[p]];
      double* pair = &pairs[2 * static_cast<std::size_t>(X.indices[p])];
      pair[0] += di * x;
      pair[1] += di * x * x;
      x = 0.0;
    }
  }
}

// out_i = |x_i|^2. `sums` (n) is zero, and is zero again at the end.
template <typename Real, typename Index>
void csr_row_squares(const CsrView<Real, Index>& X, std::span<double> sums, std::span<double> out) {
  for (std::size_t i = 0; i < X.rows(); ++i) {
    const auto first = X.indptr[i], last = X.indptr[i + 1];
    double parts[4] = {};  // hide the latency of sums
    const auto add = [&](double x, std::size_t lane) { parts[lane] += x * x; };
    if (X.rises(i)) {
      auto p = first;
      for (; p + 4 <= last; p += 4)
        for (std::size_t lane = 0; lane < 4; ++lane)
          add(static_cast<double>(X.data[static_cast<std::size_t>(p) + lane]), lane);
      for (; p < last; ++p) add(static_cast<double>(X.data[p]), 0);
    } else {
      for (auto p = first; p < last; ++p) sums[X.indices[p]] += static_cast<double>(X.data[p]);
      for (auto p = first; p < last; ++p) {
        add(sums[X.indices[p]], 0);
        sums[X.indices[p]] = 0.0;
      }
    }
    out[i] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
}

// out = X diag(scale) X', out (k, k) row-major, by the columns of X. Cost: sum over the columns of
// half the square of their entries.
template <typename Real, typename Index>
void csr_row_products(const CsrView<Real, Index>& X, std::span<const double> scale,
                      std::span<double> out) {
  struct Entry {
    std::size_t row;
    double value;
  };
  const std::size_t k = X.rows(), n = scale.size();
  const auto first = static_cast<std::size_t>(X.indptr.front());
  const auto last = static_cast<std::size_t>(X.indptr.back());
  std::vector<std::size_t> start(n + 1, 0);
  for (std::size_t p = first; p < last; ++p) ++start[static_cast<std::size_t>(X.indices[p]) + 1];
  for (std::size_t c = 0; c < n; ++c) start[c + 1] += start[c];
  std::vector<Entry> columns(last - first);
  std::vector<std::size_t> end(start.begin(), start.end() - 1);
  std::fill(out.begin(), out.end(), 0.0);
  // Row i meets, in each of its columns, the rows up to itself.
  for (std::size_t i = 0; i < k; ++i) {
    double* products = &out[i * k];
    for (auto p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
      const auto c = static_cast<std::size_t>(X.indices[p]);
      const double value = static_cast<double>(X.data[p]), scaled = scale[c] * value;
      columns[end[c]++] = {i, value};
      for (std::size_t q = start[c]; q < end[c]; ++q)
        products[columns[q].row] += scaled * columns[q].value;
      // A repeated column meets its earlier entries in both orders.
      for (std::size_t q = end[c] - 1; q > start[c] && columns[q - 1].row == i; --q)
        products[i] += scaled * columns[q - 1].value;
    }
  }
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < i; ++j) out[j * k + i] = out[i * k + j];
}

}  // namespace widemargin
