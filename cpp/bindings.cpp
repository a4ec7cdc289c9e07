// The only file that includes nanobind: every C++ function that Python calls is bound here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <stdexcept>

#include "csr.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> span(const In<T>& array) {
  return {array.data(), array.size()};
}

template <typename Real, typename Index>
widemargin::CsrView<Real, Index> csr_view(const In<Index>& indptr, const In<Index>& indices,
                                          const In<Real>& data) {
  if (indptr.size() == 0 || indices.size() != data.size() ||
      static_cast<std::size_t>(indptr.data()[indptr.size() - 1]) > data.size())
    throw std::invalid_argument("CSR arrays do not fit together");
  return {span(indptr), span(indices), span(data)};
}

template <typename Real, typename Index>
void csr_gram(const In<Index>& indptr, const In<Index>& indices, const In<Real>& data,
              const In<double>& d, const Out2<double>& out) {
  const auto X = csr_view<Real, Index>(indptr, indices, data);
  if (d.size() != X.rows()) throw std::invalid_argument("d must have one number a row");
  nb::gil_scoped_release release;
  widemargin::csr_gram(X, span(d), {out.data(), out.size()}, out.shape(0));
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "C++ core of widemargin: free functions on arrays that Python owns.";
  m.def("csr_gram", &csr_gram<float, std::int32_t>);
  m.def("csr_gram", &csr_gram<double, std::int32_t>);
  m.def("csr_gram", &csr_gram<float, std::int64_t>);
  m.def("csr_gram", &csr_gram<double, std::int64_t>);
}
