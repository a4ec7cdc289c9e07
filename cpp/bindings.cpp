// The only file that includes nanobind: every C++ function that Python calls is bound here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <vector>

#include "coordinate_descent.hpp"
#include "csr.hpp"
#include "equal_rows.hpp"
#include "row_steps.hpp"
#include "simd.hpp"
#include "svmlight.hpp"
#include "sweeps.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<T> span(const Array<T>& array) {
  return {array.data(), array.size()};
}

template <class T>
std::span<T> span(const Matrix<T>& matrix) {
  return {matrix.data(), matrix.size()};
}

template <class T>
std::span<T> span(const std::optional<Array<T>>& array) {
  return array ? span(*array) : std::span<T>();
}

void require(bool fits) {
  if (!fits) throw std::invalid_argument("the arrays do not fit each other");
}

// A struct kept in an array, so that Python can hold it between calls.
template <class Fields, class T>
Fields& fields(const Array<T>& array) {
  static_assert(std::is_standard_layout_v<Fields>);
  if (array.size() * sizeof(T) != sizeof(Fields)) {
    throw std::invalid_argument("the cursor has the wrong length");
  }
  return *reinterpret_cast<Fields*>(array.data());
}

// ---------------------------------------------------------------------------- products of CSR

// Rows that lie inside of `indices` and `data`. That no column index is out of range is checked
// once for the whole matrix, where rows are made (linalg.as_matrix).
template <class Real, class Index>
widemargin::CsrView<Real, Index> csr_view(const Array<const Index>& indptr,
                                          const Array<const Index>& indices,
                                          const Array<const Real>& data) {
  const auto ends = span(indptr);
  require(!ends.empty() && ends.front() >= 0 && indices.size() == data.size() &&
          static_cast<std::size_t>(ends.back()) <= data.size() && std::ranges::is_sorted(ends));
  return {ends, span(indices), span(data)};
}

template <class Real, class Index>
void csr_matvec(const Array<const Index>& indptr, const Array<const Index>& indices,
                const Array<const Real>& data, const Array<const double>& w,
                const Array<double>& out) {
  const auto X = csr_view(indptr, indices, data);
  require(out.size() == X.rows());
  const nb::gil_scoped_release release;
  X.matvec(0, X.rows(), w.data(), out.data());
}

template <class Real, class Index>
void csr_rmatvec(const Array<const Index>& indptr, const Array<const Index>& indices,
                 const Array<const Real>& data, const Matrix<const double>& U,
                 const Matrix<double>& out) {
  const auto X = csr_view(indptr, indices, data);
  require(U.shape(0) == X.rows() && U.shape(1) == out.shape(1));
  const nb::gil_scoped_release release;
  switch (U.shape(1)) {
    case 1:
      return X.rmatvec(0, X.rows(), U.data(), out.data());
    case 2:
      return widemargin::csr_rmatvec<2>(X, span(U), span(out));
    case 3:
      return widemargin::csr_rmatvec<3>(X, span(U), span(out));
    default:
      throw std::invalid_argument("U may have one to three columns");
  }
}

template <class Real, class Index>
void csr_gram(const Array<const Index>& indptr, const Array<const Index>& indices,
              const Array<const Real>& data, std::size_t n, const Array<const double>& d,
              const Matrix<double>& out) {
  const auto X = csr_view(indptr, indices, data);
  const std::size_t order = out.shape(0);
  require(d.size() == X.rows() && out.shape(1) == order && (order == n || order == n + 1));
  const nb::gil_scoped_release release;
  widemargin::csr_gram(X, span(d), span(out), n, order);
}

template <class Real, class Index>
void csr_row_squares(const Array<const Index>& indptr, const Array<const Index>& indices,
                     const Array<const Real>& data, const Array<double>& sums,
                     const Array<double>& out) {
  const auto X = csr_view(indptr, indices, data);
  require(out.size() == X.rows());
  const nb::gil_scoped_release release;
  widemargin::csr_row_squares(X, span(sums), span(out));
}

template <class Real, class Index>
void csr_row_products(const Array<const Index>& indptr, const Array<const Index>& indices,
                      const Array<const Real>& data, const Array<const double>& scale,
                      const Matrix<double>& out) {
  const auto X = csr_view(indptr, indices, data);
  require(out.shape(0) == X.rows() && out.shape(1) == X.rows());
  const nb::gil_scoped_release release;
  widemargin::csr_row_products(X, span(scale), span(out));
}

// No conversions: an array of another type would be copied, and what is written into the copy
// would be lost; float64 entries would pass as float32 where the index types differ.
template <class Real, class Index>
void bind_csr(nb::module_& m) {
  const auto bind = [&m](const char* name, auto function) {
    m.def(name, function, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
          "in"_a.noconvert(), "out"_a.noconvert());
  };
  bind("csr_matvec", &csr_matvec<Real, Index>);
  bind("csr_rmatvec", &csr_rmatvec<Real, Index>);
  m.def("csr_gram", &csr_gram<Real, Index>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert(), "n"_a, "d"_a, "out"_a.noconvert());
  bind("csr_row_products", &csr_row_products<Real, Index>);
  bind("csr_row_squares", &csr_row_squares<Real, Index>);
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

// An instruction set; -1: the best of this processor.
widemargin::Simd simd_level(int simd) {
  static const auto levels = widemargin::simd_levels();
  const auto level = simd < 0 ? levels.back() : static_cast<widemargin::Simd>(simd);
  if (std::ranges::find(levels, level) == levels.end())
    throw std::invalid_argument("this processor or build has no such instruction set");
  return level;
}

widemargin::Compiled compiled(int simd) { return widemargin::compiled(simd_level(simd)); }

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

std::tuple<double, double> penalty_slope(const Array<const double>& C,
                                         const Array<const double>& multiplier, double s,
                                         const Array<const double>& f,
                                         const Array<const double>& f_new, double t, int simd) {
  const std::size_t k = C.size();
  require(multiplier.size() == k && f.size() == k && f_new.size() == k);
  const nb::gil_scoped_release release;
  const auto sums =
      compiled(simd).steps.slope({C.data(), multiplier.data(), f.data(), s, k}, f_new.data(), t);
  return {sums.first, sums.second};
}

void bind_row_steps(nb::module_& m) {
  m.def("simd_levels", &simd_levels);
  m.def("advance", &advance, "C"_a, "vectors"_a.noconvert(), "t"_a, "hinge"_a, "simd"_a = -1);
  m.def("penalty_slope", &penalty_slope, "C"_a, "multiplier"_a, "s"_a, "f"_a, "f_new"_a, "t"_a,
        "simd"_a = -1);
}

// ------------------------------------------------------------------- sweeps that read rows once

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

// G = [X 1]' diag(d) [X 1], or X' diag(d) X, by the order of G.
template <class Real>
void dense_gram(const Matrix<const Real>& X, const Array<const double>& d, const Matrix<double>& G,
                int simd) {
  const auto rows = dense_rows(X, simd);
  const std::size_t n = X.shape(1), order = G.shape(0);
  require(d.size() == X.shape(0) && G.shape(1) == order && (order == n || order == n + 1));
  const nb::gil_scoped_release release;
  widemargin::DenseGram matrix(rows);
  matrix.add(0, rows.rows(), d.data());
  matrix.write(G.data(), order);
}

using Sums = std::tuple<double, double, double>;
using Ahead = std::tuple<double, std::size_t, double, double>;

Sums penalty_sweep(const widemargin::Block& A, const std::optional<Array<const double>>& v,
                   const Array<const double>& C, const Array<const double>& multiplier, double s,
                   const Array<double>& f, const Array<double>& alpha, const Array<double>& g) {
  const std::size_t k = A.rows();
  require(C.size() == k && multiplier.size() == k && f.size() == k && alpha.size() == k &&
          g.size() == A.width() && (!v || v->size() == g.size()));
  const nb::gil_scoped_release release;
  const auto sums = widemargin::penalty_sweep(
      A, span(v), {C.data(), multiplier.data(), f.data(), s, k}, f.data(), alpha.data(), span(g));
  return {sums.losses, sums.linear, sums.value};
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
  widemargin::normal_sweep(A, rows, span(G), gram ? gram->data() : nullptr, hinge);
}

template <class Rows>
widemargin::Block block(const Rows& X, const Array<const double>& y, bool intercept, int simd) {
  require(y.size() == X.rows());
  return {X, span(y), intercept, compiled(simd).steps};
}

void bind_sweeps(nb::module_& m) {
  nb::class_<widemargin::Block>(m, "Block", "Rows Y [X 1] or Y X as the sweeps read them.");
  m.def("penalty_sweep", &penalty_sweep, "A"_a, "v"_a.none(), "C"_a, "multiplier"_a, "s"_a,
        "f"_a.noconvert(), "alpha"_a.noconvert(), "g"_a.noconvert());
  m.def("predict_sweep", &predict_sweep, "A"_a, "dv"_a, "C"_a, "vectors"_a.noconvert(), "clip"_a,
        "G"_a.noconvert(), "hinge"_a);
  m.def("correct_sweep", &correct_sweep, "A"_a, "dv"_a, "C"_a, "vectors"_a.noconvert(), "target"_a,
        "hinge"_a);
  m.def("normal_sweep", &normal_sweep, "A"_a, "C"_a, "vectors"_a.noconvert(), "G"_a.noconvert(),
        "gram"_a.noconvert().none(), "hinge"_a);
}

template <class Real>
void bind_dense(nb::module_& m) {
  m.def("dense_matvec", &dense_matvec<Real>, "X"_a.noconvert(), "w"_a, "out"_a.noconvert(),
        "simd"_a = -1);
  m.def("dense_rmatvec", &dense_rmatvec<Real>, "X"_a.noconvert(), "u"_a, "out"_a.noconvert(),
        "simd"_a = -1);
  m.def("dense_gram", &dense_gram<Real>, "X"_a.noconvert(), "d"_a, "G"_a.noconvert(),
        "simd"_a = -1);
  m.def(
      "block",
      [](const Matrix<const Real>& X, const Array<const double>& y, bool intercept, int simd) {
        return block(dense_rows(X, simd), y, intercept, simd);
      },
      "X"_a.noconvert(), "y"_a.noconvert(), "intercept"_a, "simd"_a = -1, nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>());
}

template <class Real, class Index>
void bind_csr_block(nb::module_& m) {
  m.def(
      "block",
      [](const Array<const Index>& indptr, const Array<const Index>& indices,
         const Array<const Real>& data, std::size_t n, const Array<const double>& y, bool intercept,
         int simd) {
        const widemargin::FusedCsr<Real, Index> X{csr_view(indptr, indices, data), n};
        return block(X, y, intercept, simd);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "n"_a,
      "y"_a.noconvert(), "intercept"_a, "simd"_a = -1, nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 5>());
}

// ------------------------------------------------------------------------------- equal rows

struct GroupArrays {
  const Array<const double>& labels;
  const Array<std::int64_t>&group, &first, &table;
};

// Python made `first` and `table`: nothing in them may lead out of the arrays.
template <class Rows>
std::int64_t group_rows(const Rows& rows, std::size_t m, const GroupArrays& arrays,
                        std::size_t begin, std::size_t end, std::int64_t found) {
  const std::size_t slots = arrays.table.size();
  require(arrays.labels.size() == m && arrays.group.size() == m && arrays.first.size() == m &&
          begin <= end && end <= m && found >= 0 && static_cast<std::size_t>(found) <= begin &&
          slots > 2 * m && (slots & (slots - 1)) == 0);
  const nb::gil_scoped_release release;
  return widemargin::group_rows(rows, span(arrays.labels), begin, end, found, span(arrays.group),
                                span(arrays.first), span(arrays.table));
}

void bind_dense_groups(nb::module_& m) {
  m.def(
      "group_rows",
      [](const Matrix<const std::uint8_t>& bytes, const Array<const double>& labels,
         std::size_t begin, std::size_t end, std::int64_t found, const Array<std::int64_t>& group,
         const Array<std::int64_t>& first, const Array<std::int64_t>& table) {
        return group_rows(widemargin::RowBytes{bytes.data(), bytes.shape(1)}, bytes.shape(0),
                          {labels, group, first, table}, begin, end, found);
      },
      "bytes"_a.noconvert(), "labels"_a, "begin"_a, "end"_a, "found"_a, "group"_a.noconvert(),
      "first"_a.noconvert(), "table"_a.noconvert());
}

template <class Real, class Index>
void bind_csr_groups(nb::module_& m) {
  m.def(
      "group_rows",
      [](const Array<const Index>& indptr, const Array<const Index>& indices,
         const Array<const Real>& data, const Array<const double>& labels, std::size_t begin,
         std::size_t end, std::int64_t found, const Array<std::int64_t>& group,
         const Array<std::int64_t>& first, const Array<std::int64_t>& table) {
        const auto X = csr_view(indptr, indices, data);
        return group_rows(widemargin::CsrBytes<Real, Index>{X}, X.rows(),
                          {labels, group, first, table}, begin, end, found);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "labels"_a, "begin"_a,
      "end"_a, "found"_a, "group"_a.noconvert(), "first"_a.noconvert(), "table"_a.noconvert());
}

// ------------------------------------------------------------------------ coordinate descent

// How far to go, and with which instruction set.
struct Stretch {
  std::int64_t budget, mark;
  bool shrinking;
  int simd;
};

// Nothing in `order` and `state` may lead out of the arrays: Python made them.
template <class Rows>
bool descend(const Rows& X, std::size_t m, const Matrix<double>& coordinates,
             const Array<std::int64_t>& order, const Array<double>& v,
             const Array<std::uint8_t>& state, const Stretch& stretch) {
  require(coordinates.shape(0) == m && coordinates.shape(1) == 4 && order.size() == m &&
          (v.size() == X.n || v.size() == X.n + 1));
  auto& at = fields<widemargin::DescentState>(state);
  require(0 <= at.kept && at.kept <= at.position && at.position <= at.shuffled &&
          at.shuffled <= at.size && at.size <= static_cast<std::int64_t>(m));
  const widemargin::Variables variables{
      reinterpret_cast<widemargin::Coordinate*>(coordinates.data()), order.data(),
      static_cast<std::int64_t>(m), v.data(), v.size() == X.n + 1};
  const auto run = widemargin::descend<Rows>(simd_level(stretch.simd));
  const nb::gil_scoped_release release;
  return run(X, variables, at, stretch.budget, stretch.mark, stretch.shrinking);
}

template <class Real>
bool descend_dense(const Matrix<const Real>& data, const Matrix<double>& coordinates,
                   const Array<std::int64_t>& order, const Array<double>& v,
                   const Array<std::uint8_t>& state, std::int64_t budget, std::int64_t mark,
                   bool shrinking, int simd) {
  const widemargin::DenseRows<Real> X{data.data(), data.shape(1)};
  return descend(X, data.shape(0), coordinates, order, v, state, {budget, mark, shrinking, simd});
}

template <class Real, class Index>
bool descend_csr(const Array<const Index>& indptr, const Array<const Index>& indices,
                 const Array<const Real>& data, std::size_t n, const Matrix<double>& coordinates,
                 const Array<std::int64_t>& order, const Array<double>& v,
                 const Array<std::uint8_t>& state, std::int64_t budget, std::int64_t mark,
                 bool shrinking, int simd) {
  const auto view = csr_view(indptr, indices, data);
  const widemargin::CsrRows<Real, Index> X{indptr.data(), indices.data(), data.data(), n};
  return descend(X, view.rows(), coordinates, order, v, state, {budget, mark, shrinking, simd});
}

template <class Real>
void bind_descend_dense(nb::module_& m) {
  m.def("descend", &descend_dense<Real>, "X"_a.noconvert(), "coordinates"_a.noconvert(),
        "order"_a.noconvert(), "v"_a.noconvert(), "state"_a.noconvert(), "budget"_a, "mark"_a,
        "shrinking"_a, "simd"_a = -1);
}

template <class Real, class Index>
void bind_descend_csr(nb::module_& m) {
  m.def("descend", &descend_csr<Real, Index>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "data"_a.noconvert(), "n"_a, "coordinates"_a.noconvert(), "order"_a.noconvert(),
        "v"_a.noconvert(), "state"_a.noconvert(), "budget"_a, "mark"_a, "shrinking"_a,
        "simd"_a = -1);
}

// ----------------------------------------------------------------------------- svmlight text

using Bytes = Array<const std::uint8_t>;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

namespace sl = widemargin::svmlight;

std::tuple<std::int64_t, std::int64_t, std::int64_t> count_svmlight(const Bytes& lines) {
  const nb::gil_scoped_release release;
  const sl::Counts counts = sl::count(view(lines));
  return {counts.rows, counts.entries, counts.lines};
}

std::size_t svmlight_line_start(const Bytes& text, std::size_t position) {
  require(position <= text.size());
  const nb::gil_scoped_release release;
  return sl::line_start(view(text), position);
}

template <class Real, class Index>
std::string_view read_svmlight(const Bytes& text, std::int64_t budget, std::int64_t base,
                               std::int64_t first, std::int64_t last, bool need_qid,
                               const Array<Real>& data, const Array<Index>& indices,
                               const Array<Index>& indptr, const Array<double>& targets,
                               const std::optional<Array<std::int64_t>>& qid,
                               std::int64_t first_entry, const Array<std::int64_t>& cursor) {
  require(data.size() == indices.size() && indptr.size() == targets.size() + 1 &&
          (!qid || qid->size() == targets.size()));
  const sl::RowsOut<Real, Index> out{span(data),    span(indices), span(indptr),
                                     span(targets), span(qid),     first_entry};
  auto& at = fields<sl::ReadCursor>(cursor);
  const nb::gil_scoped_release release;
  return sl::read(view(text), budget, {base, first, last, need_qid}, out, at);
}

template <class Real, class Index>
std::string_view write_svmlight(const Array<const Real>& data, const Array<const Index>& indices,
                                const Array<const Index>& indptr,
                                const Array<const double>& targets,
                                const std::optional<Array<const std::int64_t>>& qid,
                                std::int64_t base, const Array<std::uint8_t>& out,
                                const Array<std::int64_t>& cursor) {
  require(data.size() == indices.size() && indptr.size() == targets.size() + 1 &&
          (!qid || qid->size() == targets.size()));
  const sl::RowsIn<Real, Index> rows{span(data), span(indices), span(indptr), span(targets),
                                     span(qid)};
  auto& at = fields<sl::WriteCursor>(cursor);
  const nb::gil_scoped_release release;
  return sl::write(rows, base, {reinterpret_cast<char*>(out.data()), out.size()}, at);
}

template <class Real, class Index>
void bind_svmlight(nb::module_& m) {
  m.def("read_svmlight", &read_svmlight<Real, Index>, "text"_a, "budget"_a, "base"_a, "first"_a,
        "last"_a, "need_qid"_a, "data"_a.noconvert(), "indices"_a.noconvert(),
        "indptr"_a.noconvert(), "targets"_a.noconvert(), "qid"_a.noconvert().none(),
        "first_entry"_a, "cursor"_a.noconvert());
  m.def("write_svmlight", &write_svmlight<Real, Index>, "data"_a.noconvert(),
        "indices"_a.noconvert(), "indptr"_a.noconvert(), "targets"_a.noconvert(),
        "qid"_a.noconvert().none(), "base"_a, "out"_a.noconvert(), "cursor"_a.noconvert());
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "C++ core of widemargin: free functions on arrays that Python owns.";
  bind_row_steps(m);
  bind_sweeps(m);
  bind_dense<double>(m);
  bind_dense<float>(m);
  bind_dense<std::int16_t>(m);
  bind_dense<std::uint8_t>(m);
  bind_dense_groups(m);
  bind_descend_dense<double>(m);
  bind_descend_dense<float>(m);
  bind_descend_dense<std::int16_t>(m);
  bind_descend_dense<std::uint8_t>(m);
  m.def("count_svmlight", &count_svmlight, "lines"_a.noconvert());
  m.def("svmlight_line_start", &svmlight_line_start, "text"_a.noconvert(), "position"_a);
  const auto bind_types = [&]<class Real, class Index>(Real, Index) {
    bind_csr<Real, Index>(m);
    bind_csr_block<Real, Index>(m);
    bind_descend_csr<Real, Index>(m);
    bind_csr_groups<Real, Index>(m);
    bind_svmlight<Real, Index>(m);
  };
  bind_types(double{}, std::int32_t{});
  bind_types(double{}, std::int64_t{});
  bind_types(float{}, std::int32_t{});
  bind_types(float{}, std::int64_t{});
}
