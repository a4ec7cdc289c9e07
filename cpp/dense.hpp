// Products of dense rows with vectors, in float64 whatever the type of the entries: one
// pass over the rows, nothing converted in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// k rows of n entries, one after the other.
template <typename Real>
struct DenseView {
  const Real* data;
  std::size_t k;
  std::size_t n;
};

// The functions of one instruction set for one type of entries.
template <typename Real>
struct DenseProducts {
  void (*matvec)(const DenseView<Real>& X, const double* w, double* out);   // out = X w
  void (*rmatvec)(const DenseView<Real>& X, const double* u, double* out);  // out += X' u
};

struct DenseTable {
  DenseProducts<double> f64;
  DenseProducts<float> f32;
  DenseProducts<std::int16_t> i16;
  DenseProducts<std::uint8_t> u8;

  template <typename Real>
  const DenseProducts<Real>& of() const;
};

template <>
inline const DenseProducts<double>& DenseTable::of() const {
  return f64;
}
template <>
inline const DenseProducts<float>& DenseTable::of() const {
  return f32;
}
template <>
inline const DenseProducts<std::int16_t>& DenseTable::of() const {
  return i16;
}
template <>
inline const DenseProducts<std::uint8_t>& DenseTable::of() const {
  return u8;
}

namespace baseline {
DenseTable dense_table();
}
namespace avx2 {
DenseTable dense_table();
}
namespace avx512 {
DenseTable dense_table();
}

}  // namespace widemargin
