// The kernels: what each one sums over the columns, and its value of that sum. The formulas stand
// here once, for plain numbers (kernel_rows.cpp) and for twice their precision (twofold.cpp).
#pragma once

#include <cstddef>

#if defined(WIDEMARGIN_SIMD)
#include "vectors.hpp"
#endif

namespace widemargin {

// In the order of the table in kernels/table.py; then what the core has beside it.
enum class KernelKind : int {
  linear = 0,
  poly = 1,
  rbf = 2,
  sigmoid = 3,
  laplacian = 4,
  chi2 = 5,
  rbf_by_differences = 6
};
// Kernels with a name, and all.
constexpr int kNamedKernels = static_cast<int>(KernelKind::rbf_by_differences);
constexpr int kKernels = kNamedKernels + 1;

struct KernelForm {
  KernelKind kind;
  double gamma, coef0;
  int degree;
};

// What is summed: x z, (x - z)^2, |x - z| or (x - z)^2 / (x + z).
enum class Term { product, square, size, share };

static constexpr Term term_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::rbf:
    case KernelKind::rbf_by_differences:
      return Term::square;
    case KernelKind::laplacian:
      return Term::size;
    case KernelKind::chi2:
      return Term::share;
    default:
      return Term::product;
  }
}

// What rows of plain numbers sum: rbf has |x - z|^2 = |x|^2 + |z|^2 - 2x'z, or the sum of squares
// of differences: that takes twice as long, and its digits do not depend on how far the rows lie
// from zero.
static constexpr Term row_term(KernelKind kind) {
  return kind == KernelKind::rbf ? Term::product : term_of(kind);
}

#if defined(WIDEMARGIN_SIMD)
namespace WIDEMARGIN_SIMD {
namespace {

// Of plain numbers or vectors of them; twofold ones have their own, and their own operators.
template <class T>
inline T squared(T apart) {
  return apart * apart;
}
template <class T>
inline T magnitude(T apart) {
  return apart < T{} ? -apart : apart;
}
// a / b; 0 where both are.
template <class T>
inline T quotient(T a, T b) {
  return a / (b == T{} ? T{} + 1 : b);
}
template <class T, class Real>
inline T affine(T a, Real factor, Real shift) {
  return a * factor + shift;
}
template <class T>
inline T power(T base, int degree) {
  T value = T{} + 1;
  for (int d = degree; d > 0; d >>= 1) {
    if (d & 1) value = value * base;
    base = base * base;
  }
  return value;
}
template <class T>
inline T tangent(T a) {
  const T e = decay(magnitude(a), 2), size = (1 - e) / (1 + e);
  return a < T{} ? -size : size;
}

// One term of the sum.
template <Term term, class T>
inline auto kernel_term(T x, T z) {
  if constexpr (term == Term::product) {
    return x * z;
  } else if constexpr (term == Term::square) {
    return squared(x - z);
  } else if constexpr (term == Term::size) {
    return magnitude(x - z);
  } else {  // the quotient first: its square may be out of range
    const auto apart = x - z;
    return apart * quotient(apart, x + z);
  }
}

// The value of the kernel, by its sum; twofold ones change in their place.
template <KernelKind kind, class T, class Real>
inline decltype(auto) kernel_value(T&& sum, Real gamma, Real coef0, int degree) {
  if constexpr (kind == KernelKind::linear) {
    return sum;
  } else if constexpr (kind == KernelKind::poly) {
    return power(affine(sum, gamma, coef0), degree);
  } else if constexpr (kind == KernelKind::sigmoid) {
    return tangent(affine(sum, gamma, coef0));
  } else {
    static_assert(term_of(kind) != Term::product);
    return decay(sum, gamma);
  }
}

template <KernelKind given>
struct Kind {
  static constexpr KernelKind value = given;
};

// f(Kind<kind>) of the kind that a form has.
template <class F, int kind = 0>
inline void with_kind(KernelKind found, const F& f) {
  if constexpr (kind < kKernels) {
    if (found == static_cast<KernelKind>(kind)) return f(Kind<static_cast<KernelKind>(kind)>{});
    with_kind<F, kind + 1>(found, f);
  }
}

}  // namespace
}  // namespace WIDEMARGIN_SIMD
#endif

}  // namespace widemargin
