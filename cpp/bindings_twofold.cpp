// Products and kernel sums in doubled precision, as Python calls them.
#include "bindings.hpp"
#include "simd.hpp"
#include "twofold_rows.hpp"

namespace {

using Out = Array<double>;

widemargin::TwofoldTable table(int simd) {
  return widemargin::compiled(widemargin::simd_level(simd)).twofold;
}

widemargin::KernelForm kernel_form(const Form& form) {
  const auto [kind, gamma, coef0, degree] = form;
  require(0 <= kind && kind < widemargin::kNamedKernels && degree >= 1);
  return {static_cast<widemargin::KernelKind>(kind), gamma, coef0, degree};
}

// f(rows, how many, of how many columns)
template <class Real>
void with_view(const Matrix<const Real>& X, auto f) {
  f(widemargin::DenseView<Real>{X.data(), X.shape(0), X.shape(1)}, X.shape(0), X.shape(1));
}
void with_view(const widemargin::Csr& X, auto f) {
  X.visit([&](const auto& view) { f(view, view.rows(), X.n); });
}

// Whether columns rise in each row: so none is there twice.
template <class Real>
bool has_rising_columns(const widemargin::DenseView<Real>&) {
  return true;
}
template <class Real, class Index>
bool has_rising_columns(const widemargin::CsrView<Real, Index>& X) {
  for (std::size_t i = 0; i < X.rows(); ++i)
    for (auto p = X.indptr[i] + 1; p < X.indptr[i + 1]; ++p)
      if (X.indices[p - 1] >= X.indices[p]) return false;
  return true;
}

template <class X>
void matvec(const X& rows, const Array<const double>& w, const Out& hi, const Out& lo,
            const Out& size, int simd) {
  with_view(rows, [&](const auto& view, std::size_t k, std::size_t n) {
    require(w.size() == n && hi.size() == k && lo.size() == k && size.size() == k);
    const auto compiled = table(simd);
    const nb::gil_scoped_release release;
    widemargin::twofold_matvec(compiled, view, k, w.data(), {hi.data(), lo.data(), size.data()});
  });
}

template <class X>
void rmatvec(const X& rows, const Array<const double>& a, const Out& hi, const Out& lo,
             const Out& size, int simd) {
  with_view(rows, [&](const auto& view, std::size_t k, std::size_t n) {
    require(a.size() == k && hi.size() == n && lo.size() == n && size.size() == n);
    const auto compiled = table(simd);
    const nb::gil_scoped_release release;
    widemargin::twofold_rmatvec(compiled, view, span(a), n, {hi.data(), lo.data(), size.data()});
  });
}

template <class Rows>
void kernel_sums(const Form& form, const Rows& X, const Rows& Z, const Array<const double>& c,
                 const Out& hi, const Out& lo, const Out& error, const Out& size, int simd) {
  const auto kernel = kernel_form(form);
  with_view(X, [&](const auto& x, std::size_t k, std::size_t n) {
    require(hi.size() == k && lo.size() == k && error.size() == k && size.size() == k);
    with_view(Z, [&](const auto& z, std::size_t l, std::size_t columns) {
      require(c.size() == l && columns == n && has_rising_columns(x) && has_rising_columns(z));
      const auto compiled = table(simd);
      const nb::gil_scoped_release release;
      widemargin::twofold_kernel_sums(compiled, kernel, x, k, n, z, span(c),
                                      {hi.data(), lo.data(), error.data(), size.data()});
    });
  });
}

template <class Rows>
void kernel_diag(const Form& form, const Rows& X, const Out& hi, const Out& lo, const Out& error,
                 int simd) {
  const auto kernel = kernel_form(form);
  with_view(X, [&](const auto& view, std::size_t k, std::size_t n) {
    require(hi.size() == k && lo.size() == k && error.size() == k && has_rising_columns(view));
    const auto compiled = table(simd);
    const nb::gil_scoped_release release;
    widemargin::twofold_kernel_diag(compiled, kernel, view, k, n,
                                    {hi.data(), lo.data(), error.data(), nullptr});
  });
}

std::tuple<double, double, double> dot(const Array<const double>& a, const Array<const double>& hi,
                                       const Array<const double>& lo, int simd) {
  require(hi.size() == a.size() && lo.size() == a.size());
  const auto compiled = table(simd);
  const nb::gil_scoped_release release;
  double sum[3];
  widemargin::twofold_dot(compiled, span(a), hi.data(), lo.data(),
                          {sum, sum + 1, sum + 2, nullptr});
  return {sum[0], sum[1], sum[2]};
}

template <class Rows>
void bind_rows(nb::module_& m) {
  m.def("twofold_matvec", &matvec<Rows>, "X"_a.noconvert(), "w"_a.noconvert(), "hi"_a.noconvert(),
        "lo"_a.noconvert(), "size"_a.noconvert(), "simd"_a = -1);
  m.def("twofold_rmatvec", &rmatvec<Rows>, "X"_a.noconvert(), "a"_a.noconvert(), "hi"_a.noconvert(),
        "lo"_a.noconvert(), "size"_a.noconvert(), "simd"_a = -1);
  m.def("twofold_kernel_sums", &kernel_sums<Rows>, "form"_a, "X"_a.noconvert(), "Z"_a.noconvert(),
        "c"_a.noconvert(), "hi"_a.noconvert(), "lo"_a.noconvert(), "error"_a.noconvert(),
        "size"_a.noconvert(), "simd"_a = -1);
  m.def("twofold_kernel_diag", &kernel_diag<Rows>, "form"_a, "X"_a.noconvert(), "hi"_a.noconvert(),
        "lo"_a.noconvert(), "error"_a.noconvert(), "simd"_a = -1);
}

}  // namespace

void bind_twofold(nb::module_& m) {
  bind_rows<Matrix<const double>>(m);
  bind_rows<Matrix<const float>>(m);
  bind_rows<Matrix<const std::int16_t>>(m);
  bind_rows<Matrix<const std::uint8_t>>(m);
  bind_rows<widemargin::Csr>(m);
  m.def("twofold_dot", &dot, "a"_a.noconvert(), "hi"_a.noconvert(), "lo"_a.noconvert(),
        "simd"_a = -1);
}
