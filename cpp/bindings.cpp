// Every C++ function that Python calls is bound here, but for those of svmlight text.
#include "bindings.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "coordinate_descent.hpp"
#include "crew.hpp"
#include "csr.hpp"
#include "equal_rows.hpp"
#include "row_steps.hpp"
#include "simd.hpp"
#include "sweeps.hpp"

namespace {

// ---------------------------------------------------------------------------- products of CSR

// Rows that lie inside of `indices` and `data`. That no column index is out of range is checked
// once for the whole matrix, where rows are made (data/matrix.py).
template <class Real, class Index>
widemargin::Csr csr(const Array<const Index>& indptr, const Array<const Index>& indices,
                    const Array<const Real>& data, std::size_t n) {
  const auto ends = span(indptr);
  require(!ends.empty() && ends.front() >= 0 && indices.size() == data.size() &&
          static_cast<std::size_t>(ends.back()) <= data.size() && std::ranges::is_sorted(ends));
  return {widemargin::CsrView<Real, Index>{ends, span(indices), span(data)}, n};
}

void csr_matvec(const widemargin::Csr& X, const Array<const double>& w, const Array<double>& out) {
  require(w.size() == X.n && out.size() == X.rows());
  const nb::gil_scoped_release release;
  X.visit([&](const auto& rows) { rows.matvec(0, rows.rows(), w.data(), out.data()); });
}

void csr_rmatvec(const widemargin::Csr& X, const Array<const double>& u, const Array<double>& out) {
  require(u.size() == X.rows() && out.size() == X.n);
  const nb::gil_scoped_release release;
  X.visit([&](const auto& rows) { rows.rmatvec(0, rows.rows(), u.data(), out.data()); });
}

void csr_gram(const widemargin::Csr& X, const Array<const double>& d, const Matrix<double>& out) {
  const std::size_t order = out.shape(0);
  require(d.size() == X.rows() && out.shape(1) == order && (order == X.n || order == X.n + 1));
  const nb::gil_scoped_release release;
  X.visit([&](const auto& rows) { widemargin::csr_gram(rows, span(d), span(out), X.n, order); });
}

void csr_weighted_product(const widemargin::Csr& X, const Array<const double>& d,
                          const Array<const double>& w, const Array<double>& out) {
  require(d.size() == X.rows() && w.size() == out.size() &&
          (w.size() == X.n || w.size() == X.n + 1));
  const nb::gil_scoped_release release;
  X.visit([&](const auto& rows) {
    widemargin::csr_weighted_product(rows, span(d), span(w), span(out), X.n);
  });
}

void csr_column_sums(const widemargin::Csr& X, const Array<const double>& d,
                     const Array<double>& sums, const Array<double>& squares) {
  require(d.size() == X.rows() && sums.size() == X.n && squares.size() == X.n);
  const nb::gil_scoped_release release;
  std::vector<double> row(X.n), pairs(2 * X.n);
  X.visit([&](const auto& rows) {
    widemargin::csr_column_sums(rows, span(d), std::span<double>(pairs), std::span<double>(row));
  });
  for (std::size_t j = 0; j < X.n; ++j) {
    sums.data()[j] += pairs[2 * j];
    squares.data()[j] += pairs[2 * j + 1];
  }
}

bool csr_is_canonical(const widemargin::Csr& X) {
  const nb::gil_scoped_release release;
  return X.visit([&](const auto& rows) { return rows.is_canonical(X.n); });
}

void csr_row_squares(const widemargin::Csr& X, const Array<double>& out) {
  require(out.size() == X.rows());
  const nb::gil_scoped_release release;
  std::vector<double> sums(X.n);
  X.visit([&](const auto& rows) {
    widemargin::csr_row_squares(rows, std::span<double>(sums), span(out));
  });
}

void csr_row_products(const widemargin::Csr& X, const Array<const double>& scale,
                      const Matrix<double>& out) {
  require(scale.size() == X.n && out.shape(0) == X.rows() && out.shape(1) == X.rows());
  const nb::gil_scoped_release release;
  X.visit([&](const auto& rows) { widemargin::csr_row_products(rows, span(scale), span(out)); });
}

// No conversions: an array of another type would be copied, and what is written into the copy
// would be lost; float64 entries would pass as float32 where the index types differ.
template <class Real, class Index>
void bind_csr(nb::module_& m) {
  m.def("csr", &csr<Real, Index>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert(), "n"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
        nb::keep_alive<0, 3>());
}

void bind_csr_products(nb::module_& m) {
  nb::class_<widemargin::Csr>(m, "Csr", "Rows of a CSR matrix, by reference.");
  const auto bind = [&m](const char* name, auto function) {
    m.def(name, function, "X"_a, "in"_a.noconvert(), "out"_a.noconvert());
  };
  m.def("csr_is_canonical", &csr_is_canonical, "X"_a);
  bind("csr_matvec", &csr_matvec);
  bind("csr_rmatvec", &csr_rmatvec);
  bind("csr_gram", &csr_gram);
  bind("csr_row_products", &csr_row_products);
  m.def("csr_weighted_product", &csr_weighted_product, "X"_a, "d"_a.noconvert(), "w"_a.noconvert(),
        "out"_a.noconvert());
  m.def("csr_column_sums", &csr_column_sums, "X"_a, "d"_a.noconvert(), "sums"_a.noconvert(),
        "squares"_a.noconvert());
  m.def("csr_row_squares", &csr_row_squares, "X"_a, "out"_a.noconvert());
}

// ------------------------------------------------------------- row steps of interior point

// Vectors of one block: alpha, u, s, xi, d, dalpha, ds, dxi, of the length of C.
using Vectors = std::vector<Array<double>>;

widemargin::RowVectors row_vectors(const Array<const double>& C, const Vectors& vectors) {
  require(vectors.size() == 8);
  for (const auto& v : vectors) require(v.size() == C.size());
  const auto at = [&](std::size_t j) { return vectors[j].data(); };
  return {C.data(), at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), C.size()};
}

widemargin::Compiled compiled(int simd) {
  return widemargin::compiled(widemargin::simd_level(simd));
}

std::vector<int> simd_levels() {
  std::vector<int> levels;
  for (auto level : widemargin::simd_levels()) levels.push_back(static_cast<int>(level));
  return levels;
}

std::tuple<double, double, double> advance(const Array<const double>& C, const Vectors& vectors,
                                           double t, bool hinge, int simd) {
  const auto rows = row_vectors(C, vectors);
  const nb::gil_scoped_release release;
  const auto sums = compiled(simd).steps.advance(rows, t, hinge);
  return {sums.products, sums.losses, sums.linear};
}

template <class Real>
widemargin::PenaltyRows penalty_rows(const Array<const double>& C,
                                     const std::optional<Array<const double>>& multiplier, double s,
                                     const Array<Real>& f) {
  const std::size_t k = C.size();
  require(f.size() == k && (!multiplier || multiplier->size() == k));
  return {C.data(), data(multiplier), f.data(), s, k};
}

std::tuple<double, double> penalty_slope(const Array<const double>& C,
                                         const std::optional<Array<const double>>& multiplier,
                                         double s, const Array<const double>& f,
                                         const Array<const double>& f_new, double t, int simd) {
  const auto rows = penalty_rows(C, multiplier, s, f);
  require(f_new.size() == rows.k);
  const nb::gil_scoped_release release;
  const auto sums = compiled(simd).steps.slope(rows, f_new.data(), t);
  return {sums.first, sums.second};
}

void bind_row_steps(nb::module_& m) {
  const auto& names = widemargin::kSimdNames;
  m.attr("SIMD_NAMES") = nb::make_tuple(names[0], names[1], names[2]);
  m.def("simd_levels", &simd_levels);
  m.def("simd_default", [] { return static_cast<int>(widemargin::simd_level(-1)); });
  m.def("advance", &advance, "C"_a, "vectors"_a.noconvert(), "t"_a, "hinge"_a, "simd"_a = -1);
  m.def("penalty_slope", &penalty_slope, "C"_a, "multiplier"_a.none(), "s"_a, "f"_a, "f_new"_a,
        "t"_a, "simd"_a = -1);
}

// ------------------------------------------------------------------- sweeps that read rows once

// Rows that are looked at together; and into how many such parts so many rows fall.
constexpr std::size_t kRowsOfPart = 1024;
constexpr std::size_t parts_of(std::size_t m) { return (m + kRowsOfPart - 1) / kRowsOfPart; }

template <class Real>
widemargin::FusedDense<Real> dense_rows(const Matrix<const Real>& X, int simd) {
  return {{X.data(), X.shape(0), X.shape(1)}, compiled(simd).dense.template of<Real>()};
}

template <class Real>
void dense_matvec(const Matrix<const Real>& X, const Array<const double>& w,
                  const Array<double>& out, int simd) {
  const auto rows = dense_rows(X, simd);
  require(w.size() == X.shape(1) && out.size() == X.shape(0));
  const nb::gil_scoped_release release;
  rows.matvec(0, rows.rows(), w.data(), out.data());
}

template <class Real>
void dense_rmatvec(const Matrix<const Real>& X, const Array<const double>& u,
                   const Array<double>& out, int simd) {
  const auto rows = dense_rows(X, simd);
  require(u.size() == X.shape(0) && out.size() == X.shape(1));
  const nb::gil_scoped_release release;
  rows.rmatvec(0, rows.rows(), u.data(), out.data());
}

// work(part, its rows) for all parts of X, whatever the number of threads that take them.
template <class Real, class Work>
void each_part(const widemargin::DenseView<Real>& X, std::size_t threads, const Work& work) {
  const std::function<bool()> never = [] { return false; };
  widemargin::Crew(threads, never).run(parts_of(X.k), [&](std::size_t part, bool) {
    const std::size_t begin = part * kRowsOfPart, count = std::min(X.k - begin, kRowsOfPart);
    work(part, widemargin::DenseView<Real>{X.data + begin * X.n, count, X.n});
  });
}

template <class Real>
void dense_column_sums(const Matrix<const Real>& X, const Array<double>& sums,
                       const Array<double>& squares, std::size_t threads, int simd) {
  const auto rows = dense_rows(X, simd);
  const std::size_t n = X.shape(1), parts = parts_of(X.shape(0));
  require(sums.size() == n && squares.size() == n);
  const nb::gil_scoped_release release;
  std::vector<double> of_parts(2 * n * parts);
  each_part(rows.X, threads, [&](std::size_t part, const auto& some) {
    double* const own = of_parts.data() + 2 * n * part;
    rows.products.column_sums(some, own, own + n);
  });
  for (std::size_t part = 0; part < parts; ++part)
    for (std::size_t j = 0; j < n; ++j) {
      sums.data()[j] += of_parts[2 * n * part + j];
      squares.data()[j] += of_parts[2 * n * part + n + j];
    }
}

template <class Real>
double dense_reach(const Matrix<const Real>& X, const Array<const double>& center, bool absolute,
                   std::size_t threads, int simd) {
  const auto rows = dense_rows(X, simd);
  require(center.size() == X.shape(1));
  const nb::gil_scoped_release release;
  std::vector<double> of_parts(parts_of(X.shape(0)));
  each_part(rows.X, threads, [&](std::size_t part, const auto& some) {
    of_parts[part] = rows.products.reach(some, center.data(), absolute);
  });
  double most = 0;
  for (const double one : of_parts) most = one > most || one != one ? one : most;  // NaN stays
  return most;
}

template <class Real>
void dense_counts(const Matrix<const Real>& X, const Array<std::int64_t>& counts,
                  std::size_t threads, int simd) {
  const auto rows = dense_rows(X, simd);
  require(counts.size() == X.shape(0));
  const nb::gil_scoped_release release;
  each_part(rows.X, threads, [&](std::size_t part, const auto& some) {
    rows.products.count(some, counts.data() + part * kRowsOfPart);
  });
}

// Where another thread writes to X meanwhile rows end early, or keep what was in the arrays.
template <class Real>
void dense_entries(const Matrix<const Real>& X, const Index& starts,
                   const Array<std::int32_t>& columns, const Array<Real>& values,
                   std::size_t threads, int simd) {
  const auto rows = dense_rows(X, simd);
  require(starts.size() == X.shape(0) + 1 && columns.size() == values.size() &&
          ends_at(starts, values.size()));
  const nb::gil_scoped_release release;
  each_part(rows.X, threads, [&](std::size_t part, const auto& some) {
    rows.products.copy(some, starts.data() + part * kRowsOfPart, columns.data(), values.data());
  });
}

// G = [X 1]' diag(d) [X 1], or X' diag(d) X, by the order of G; made in float32 where `rough`.
template <class Real>
void dense_gram(const Matrix<const Real>& X, const Array<const double>& d, const Matrix<double>& G,
                int simd, bool rough) {
  const auto rows = dense_rows(X, simd);
  const std::size_t n = X.shape(1), order = G.shape(0);
  require(d.size() == X.shape(0) && G.shape(1) == order && (order == n || order == n + 1));
  const nb::gil_scoped_release release;
  const auto make = [&]<typename Sum>(Sum) {
    widemargin::DenseGram<Sum, widemargin::FusedDense<Real>> matrix(rows);
    matrix.add(0, rows.rows(), d.data());
    matrix.write(G.data(), order);
  };
  rough ? make(0.0f) : make(0.0);
}

using Ahead = std::tuple<double, std::size_t, double, double>;

std::tuple<double, double, double, std::size_t, std::size_t> penalty_sweep(
    const widemargin::Block& A, const std::optional<Array<const double>>& v,
    const Array<const double>& C, const std::optional<Array<const double>>& multiplier, double s,
    const Array<double>& f, const std::optional<Array<double>>& alpha, const Array<double>& g,
    const std::optional<Array<std::uint8_t>>& counted, const std::optional<Array<double>>& d,
    const std::optional<Matrix<double>>& gram, bool rough) {
  const auto rows = penalty_rows(C, multiplier, s, f);
  const std::size_t k = rows.k, width = A.width();
  require(k == A.rows() && (!alpha || alpha->size() == k) && g.size() == width &&
          (!v || v->size() == width) && (!counted || counted->size() == k) &&
          (!d || d->size() == k) &&
          (!gram || (counted && gram->shape(0) == width && gram->shape(1) == width)));
  const nb::gil_scoped_release release;
  const auto [sums, found] = widemargin::penalty_sweep(
      A, span(v), rows,
      {f.data(), data(alpha), span(g), data(counted), data(d), data(gram), rough});
  return {sums.losses, sums.linear, sums.value, found.active, found.changed};
}

Ahead predict_sweep(const widemargin::Block& A, const Array<const double>& dv,
                    const Array<const double>& C, const Vectors& vectors, double clip,
                    const Matrix<double>& G, bool hinge) {
  const auto rows = row_vectors(C, vectors);
  require(rows.k == A.rows() && dv.size() == A.width() && G.shape(0) == 2 &&
          G.shape(1) == A.width());
  const nb::gil_scoped_release release;
  const auto sums = widemargin::predict_sweep(A, span(dv), rows, clip, span(G), hinge);
  return {sums.ratio, sums.row, sums.first, sums.second};
}

Ahead correct_sweep(const widemargin::Block& A, const Array<const double>& dv,
                    const Array<const double>& C, const Vectors& vectors, double target,
                    bool hinge) {
  const auto rows = row_vectors(C, vectors);
  require(rows.k == A.rows() && dv.size() == A.width());
  const nb::gil_scoped_release release;
  const auto sums = widemargin::correct_sweep(A, span(dv), rows, target, hinge);
  return {sums.ratio, sums.row, sums.first, sums.second};
}

void normal_sweep(const widemargin::Block& A, const Array<const double>& C, const Vectors& vectors,
                  const Matrix<double>& G, const std::optional<Matrix<double>>& gram, bool hinge) {
  const auto rows = row_vectors(C, vectors);
  const std::size_t width = A.width();
  require(rows.k == A.rows() && G.shape(0) == 3 && G.shape(1) == width &&
          (!gram || (gram->shape(0) == width && gram->shape(1) == width)));
  const nb::gil_scoped_release release;
  widemargin::normal_sweep(A, rows, span(G), data(gram), hinge);
}

template <class Rows, class Sign>
widemargin::Block block(const Rows& X, const Array<const Sign>& y, bool intercept, int simd) {
  require(y.size() == X.rows());
  return {X, span(y), intercept, compiled(simd).steps};
}

template <class Sign>
widemargin::Block csr_block(const widemargin::Csr& X, const Array<const Sign>& y, bool intercept,
                            int simd) {
  return X.visit([&]<class Real, class Index>(const widemargin::CsrView<Real, Index>& rows) {
    return block(widemargin::FusedCsr<Real, Index>{rows, X.n}, y, intercept, simd);
  });
}

void bind_sweeps(nb::module_& m) {
  nb::class_<widemargin::Block>(m, "Block", "Rows Y [X 1] or Y X as the sweeps read them.");
  m.def("block", &csr_block<double>, "X"_a, "y"_a.noconvert(), "intercept"_a, "simd"_a = -1,
        nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
  m.def("block", &csr_block<std::int8_t>, "X"_a, "y"_a.noconvert(), "intercept"_a, "simd"_a = -1,
        nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
  m.def("penalty_sweep", &penalty_sweep, "A"_a, "v"_a.none(), "C"_a, "multiplier"_a.none(), "s"_a,
        "f"_a.noconvert(), "alpha"_a.noconvert().none(), "g"_a.noconvert(),
        "counted"_a.noconvert().none() = nb::none(), "d"_a.noconvert().none() = nb::none(),
        "gram"_a.noconvert().none() = nb::none(), "rough"_a = false);
  m.def("predict_sweep", &predict_sweep, "A"_a, "dv"_a, "C"_a, "vectors"_a.noconvert(), "clip"_a,
        "G"_a.noconvert(), "hinge"_a);
  m.def("correct_sweep", &correct_sweep, "A"_a, "dv"_a, "C"_a, "vectors"_a.noconvert(), "target"_a,
        "hinge"_a);
  m.def("normal_sweep", &normal_sweep, "A"_a, "C"_a, "vectors"_a.noconvert(), "G"_a.noconvert(),
        "gram"_a.noconvert().none(), "hinge"_a);
}

template <class Real, class Sign>
void bind_dense_block(nb::module_& m) {
  m.def(
      "block",
      [](const Matrix<const Real>& X, const Array<const Sign>& y, bool intercept, int simd) {
        return block(dense_rows(X, simd), y, intercept, simd);
      },
      "X"_a.noconvert(), "y"_a.noconvert(), "intercept"_a, "simd"_a = -1, nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>());
}

template <class Real>
void bind_dense(nb::module_& m) {
  m.def("dense_matvec", &dense_matvec<Real>, "X"_a.noconvert(), "w"_a, "out"_a.noconvert(),
        "simd"_a = -1);
  m.def("dense_rmatvec", &dense_rmatvec<Real>, "X"_a.noconvert(), "u"_a, "out"_a.noconvert(),
        "simd"_a = -1);
  m.def("dense_column_sums", &dense_column_sums<Real>, "X"_a.noconvert(), "sums"_a.noconvert(),
        "squares"_a.noconvert(), "threads"_a = 1, "simd"_a = -1);
  m.def("dense_reach", &dense_reach<Real>, "X"_a.noconvert(), "center"_a, "absolute"_a,
        "threads"_a = 1, "simd"_a = -1);
  m.def("dense_counts", &dense_counts<Real>, "X"_a.noconvert(), "counts"_a.noconvert(),
        "threads"_a = 1, "simd"_a = -1);
  m.def("dense_entries", &dense_entries<Real>, "X"_a.noconvert(), "starts"_a.noconvert(),
        "columns"_a.noconvert(), "values"_a.noconvert(), "threads"_a = 1, "simd"_a = -1);
  m.def("dense_gram", &dense_gram<Real>, "X"_a.noconvert(), "d"_a, "G"_a.noconvert(), "simd"_a = -1,
        "rough"_a = false);
  bind_dense_block<Real, double>(m);
  bind_dense_block<Real, std::int8_t>(m);
}

// ------------------------------------------------------------------------------- equal rows

// f(rows as bytes, how many)
auto with_bytes(const Matrix<const std::uint8_t>& X, auto f) {
  return f(widemargin::RowBytes{X.data(), X.shape(1)}, X.shape(0));
}
auto with_bytes(const widemargin::Csr& X, auto f) {
  return X.visit([&]<class Real, class Index>(const widemargin::CsrView<Real, Index>& rows) {
    return f(widemargin::CsrBytes<Real, Index>{rows}, rows.rows());
  });
}

// Python made `first` and `table`: nothing in them may lead out of the arrays.
template <class Rows>
std::int64_t group_rows(const Rows& X, const Array<const double>& labels, std::size_t begin,
                        std::size_t end, std::int64_t found, const Array<std::int64_t>& group,
                        const Array<std::int64_t>& first, const Array<std::int64_t>& table) {
  return with_bytes(X, [&](const auto& rows, std::size_t m) {
    const std::size_t slots = table.size();
    require(labels.size() == m && group.size() == m && first.size() == m && begin <= end &&
            end <= m && found >= 0 && static_cast<std::size_t>(found) <= begin && slots > 2 * m &&
            (slots & (slots - 1)) == 0);
    const nb::gil_scoped_release release;
    return widemargin::group_rows(rows, span(labels), begin, end, found, span(group), span(first),
                                  span(table));
  });
}

void bind_groups(nb::module_& m) {
  const auto bind = [&m](auto function) {
    m.def("group_rows", function, "X"_a.noconvert(), "labels"_a, "begin"_a, "end"_a, "found"_a,
          "group"_a.noconvert(), "first"_a.noconvert(), "table"_a.noconvert());
  };
  bind(&group_rows<Matrix<const std::uint8_t>>);
  bind(&group_rows<widemargin::Csr>);
}

// ------------------------------------------------------------------------ coordinate descent

// f(rows as they are visited, how many)
template <class Real>
auto with_rows(const Matrix<const Real>& X, auto f) {
  return f(widemargin::DenseRows<Real>{X.data(), X.shape(1)}, X.shape(0));
}
auto with_rows(const widemargin::Csr& X, auto f) {
  return X.visit([&]<class Real, class Index>(const widemargin::CsrView<Real, Index>& rows) {
    return f(widemargin::CsrRows<Real, Index>{rows.indptr.data(), rows.indices.data(),
                                              rows.data.data(), X.n},
             rows.rows());
  });
}

// Nothing in `order` and `state` may lead out of the arrays: Python made them.
template <class Row, class X>
bool descend_over(const X& matrix, const Matrix<double>& coordinates,
                  const Array<std::int64_t>& order, const Array<double>& v,
                  const Array<std::uint8_t>& state, std::int64_t budget, std::int64_t mark,
                  bool shrinking, int simd) {
  return with_rows(matrix, [&]<class Rows>(const Rows& rows, std::size_t m) {
    require(coordinates.shape(0) == m && coordinates.shape(1) == sizeof(Row) / sizeof(double) &&
            order.size() == m && (v.size() == rows.n || v.size() == rows.n + 1));
    auto& at = fields<widemargin::DescentState>(state);
    require(0 <= at.kept && at.kept <= at.position && at.position <= at.shuffled &&
            at.shuffled <= at.size && at.size <= static_cast<std::int64_t>(m));
    const widemargin::Variables<Row> variables{reinterpret_cast<Row*>(coordinates.data()),
                                               order.data(), static_cast<std::int64_t>(m), v.data(),
                                               v.size() == rows.n + 1};
    const auto run = widemargin::descend<Rows, Row>(widemargin::simd_level(simd));
    const nb::gil_scoped_release release;
    return run(rows, variables, at, budget, mark, shrinking);
  });
}

// Rows with four numbers each, or samples of a regression with six.
template <class X>
bool descend(const X& matrix, const Matrix<double>& coordinates, const Array<std::int64_t>& order,
             const Array<double>& v, const Array<std::uint8_t>& state, std::int64_t budget,
             std::int64_t mark, bool shrinking, int simd) {
  const bool is_tube = coordinates.shape(1) == sizeof(widemargin::TubeCoordinate) / sizeof(double);
  const auto run = is_tube ? &descend_over<widemargin::TubeCoordinate, X>
                           : &descend_over<widemargin::Coordinate, X>;
  return run(matrix, coordinates, order, v, state, budget, mark, shrinking, simd);
}

void bind_descend(nb::module_& m) {
  const auto bind = [&m](auto function) {
    m.def("descend", function, "X"_a.noconvert(), "coordinates"_a.noconvert(),
          "order"_a.noconvert(), "v"_a.noconvert(), "state"_a.noconvert(), "budget"_a, "mark"_a,
          "shrinking"_a, "simd"_a = -1);
  };
  bind(&descend<Matrix<const double>>);
  bind(&descend<Matrix<const float>>);
  bind(&descend<Matrix<const std::int16_t>>);
  bind(&descend<Matrix<const std::uint8_t>>);
  bind(&descend<widemargin::Csr>);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "C++ core of widemargin: free functions on arrays that Python owns.";
  bind_csr_products(m);
  bind_row_steps(m);
  bind_sweeps(m);
  bind_dense<double>(m);
  bind_dense<float>(m);
  bind_dense<std::int16_t>(m);
  bind_dense<std::uint8_t>(m);
  bind_groups(m);
  bind_descend(m);
  bind_csr<double, std::int32_t>(m);
  bind_csr<double, std::int64_t>(m);
  bind_csr<float, std::int32_t>(m);
  bind_csr<float, std::int64_t>(m);
  bind_svmlight(m);
  bind_batch(m);
  bind_certificates(m);
  bind_kernels(m);
  bind_linear(m);
  bind_steps(m);
  bind_twofold(m);
}
