// What the files that bind functions to Python share; only these include nanobind.
#pragma once

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

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Index = Array<const std::int64_t>;
// Kernel, gamma, coef0 and degree.
using Form = std::tuple<int, double, double, int>;

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

template <class Optional>
auto data(const Optional& array) {
  return array ? array->data() : nullptr;
}

inline void require(bool fits) {
  if (!fits) throw std::invalid_argument("the arrays do not fit each other");
}

// Whether numbers rise from 0 or more up to `last`, as the ends of parts do.
inline bool ends_at(const Index& end, std::size_t last) {
  const auto all = span(end);
  return std::ranges::is_sorted(all) && (all.empty() || all.front() >= 0) &&
         static_cast<std::size_t>(all.empty() ? 0 : all.back()) == last;
}

inline bool are_below(const Index& index, std::size_t count) {
  bool fits = true;
  for (const auto i : span(index)) fits &= static_cast<std::size_t>(i) < count;
  return fits;
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

// The functions of the other files called bindings_*.cpp.
void bind_svmlight(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_certificates(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_steps(nb::module_& m);
void bind_twofold(nb::module_& m);
