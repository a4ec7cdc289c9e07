// The only file that includes nanobind: every C++ function that Python calls is bound here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "csr.hpp"
#include "row_steps.hpp"
#include "simd.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> span(const In<T>& array) {
  return {array.data(), array.size()};
}

// Rows that lie inside of `indices` and `data`. That no column index is out of range is checked
// once for the whole matrix, where rows are made (linalg.as_matrix).
template <typename Real, typename Index>
widemargin::CsrView<Real, Index> csr_view(const In<Index>& indptr, const In<Index>& indices,
                                          const In<Real>& data) {
  const auto ends = span(indptr);
  if (ends.empty() || ends.front() < 0 || indices.size() != data.size() ||
      static_cast<std::size_t>(ends.back()) > data.size() ||
      !std::is_sorted(ends.begin(), ends.end()))
    throw std::invalid_argument("CSR arrays do not fit together");
  return {ends, span(indices), span(data)};
}

template <typename Real, typename Index>
void csr_gram(const In<Index>& indptr, const In<Index>& indices, const In<Real>& data,
              const In<double>& d, const Out2<double>& out) {
  const auto X = csr_view<Real, Index>(indptr, indices, data);
  if (d.size() != X.rows()) throw std::invalid_argument("d must have one number a row");
  if (out.shape(0) != out.shape(1)) throw std::invalid_argument("out must be square");
  nb::gil_scoped_release release;
  widemargin::csr_gram(X, span(d), {out.data(), out.size()}, out.shape(0));
}

// Vectors of one block: C, then alpha, u, s, xi, d, dalpha, ds, dxi, of one length.
widemargin::RowVectors row_vectors(const In<double>& C,
                                   const std::vector<InOut<double>>& vectors) {
  if (vectors.size() != 8) throw std::invalid_argument("eight row vectors are needed");
  for (const auto& v : vectors)
    if (v.size() != C.size()) throw std::invalid_argument("row vectors must have one length");
  const auto at = [&](std::size_t j) { return vectors[j].data(); };
  return {C.data(), at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), C.size()};
}

widemargin::RowSteps row_steps(int simd) {
  const auto levels = widemargin::simd_levels();
  const auto level = simd < 0 ? levels.back() : static_cast<widemargin::Simd>(simd);
  if (std::find(levels.begin(), levels.end(), level) == levels.end())
    throw std::invalid_argument("this processor or build has no such instruction set");
  return widemargin::row_steps(level);
}

template <typename Real, typename Index>
void csr_matvec(const In<Index>& indptr, const In<Index>& indices, const In<Real>& data,
                const In<double>& w, const InOut<double>& out) {
  const auto X = csr_view<Real, Index>(indptr, indices, data);
  if (out.size() != X.rows()) throw std::invalid_argument("out must have one number a row");
  nb::gil_scoped_release release;
  widemargin::csr_matvec(X, span(w), {out.data(), out.size()});
}

template <typename Real, typename Index>
void csr_rmatvec(const In<Index>& indptr, const In<Index>& indices, const In<Real>& data,
                 const In2<double>& U, const Out2<double>& out) {
  const auto X = csr_view<Real, Index>(indptr, indices, data);
  const std::span<const double> in{U.data(), U.size()};
  const std::span<double> sums{out.data(), out.size()};
  if (U.shape(0) != X.rows() || U.shape(1) != out.shape(1))
    throw std::invalid_argument("U must have one row a row of X and as many columns as out");
  nb::gil_scoped_release release;
  switch (U.shape(1)) {
    case 1:
      return widemargin::csr_rmatvec<1>(X, in, sums);
    case 2:
      return widemargin::csr_rmatvec<2>(X, in, sums);
    case 3:
      return widemargin::csr_rmatvec<3>(X, in, sums);
    default:
      throw std::invalid_argument("U may have one to three columns");
  }
}

// No conversions: an array of another type would be copied, and what is written into the copy
// would be lost; float64 entries would pass as float32 where the index types differ.
template <typename Real, typename Index>
void bind_csr(nb::module_& m) {
  const auto bind = [&m](const char* name, auto function) {
    m.def(name, function, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
          "in"_a.noconvert(), "out"_a.noconvert());
  };
  bind("csr_matvec", &csr_matvec<Real, Index>);
  bind("csr_rmatvec", &csr_rmatvec<Real, Index>);
  bind("csr_gram", &csr_gram<Real, Index>);
}

using Sums = std::tuple<double, std::size_t, double, double>;

void bind_row_steps(nb::module_& m) {
  m.def("simd_levels", [] {
    std::vector<int> levels;
    for (auto level : widemargin::simd_levels()) levels.push_back(static_cast<int>(level));
    return levels;
  });
  m.def(
      "advance",
      [](const In<double>& C, const std::vector<InOut<double>>& vectors, double t, bool hinge,
         int simd) {
        const auto rows = row_vectors(C, vectors);
        nb::gil_scoped_release release;
        const auto sums = row_steps(simd).advance(rows, t, hinge);
        return std::make_tuple(sums.products, sums.losses, sums.linear);
      },
      "C"_a, "vectors"_a.noconvert(), "t"_a, "hinge"_a, "simd"_a = -1);
  m.def(
      "predict",
      [](const In<double>& C, const std::vector<InOut<double>>& vectors, const In<double>& z,
         double clip, const Out2<double>& E, bool hinge, int simd) -> Sums {
        const auto rows = row_vectors(C, vectors);
        if (z.size() != rows.k || E.shape(0) != rows.k || E.shape(1) != 2)
          throw std::invalid_argument("z and E must fit the rows");
        nb::gil_scoped_release release;
        const auto sums = row_steps(simd).predict(rows, z.data(), clip, E.data(), hinge);
        return {sums.ratio, sums.row, sums.first, sums.second};
      },
      "C"_a, "vectors"_a.noconvert(), "z"_a, "clip"_a, "E"_a.noconvert(), "hinge"_a, "simd"_a = -1);
  m.def(
      "correct",
      [](const In<double>& C, const std::vector<InOut<double>>& vectors, const In<double>& z,
         double target, bool hinge, int simd) -> Sums {
        const auto rows = row_vectors(C, vectors);
        if (z.size() != rows.k) throw std::invalid_argument("z must fit the rows");
        nb::gil_scoped_release release;
        const auto sums = row_steps(simd).correct(rows, z.data(), target, hinge);
        return {sums.ratio, sums.row, sums.first, sums.second};
      },
      "C"_a, "vectors"_a.noconvert(), "z"_a, "target"_a, "hinge"_a, "simd"_a = -1);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "C++ core of widemargin: free functions on arrays that Python owns.";
  bind_row_steps(m);
  bind_csr<float, std::int32_t>(m);
  bind_csr<double, std::int32_t>(m);
  bind_csr<float, std::int64_t>(m);
  bind_csr<double, std::int64_t>(m);
}
