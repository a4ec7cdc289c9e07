// Newton's method on small linear problems, as Python calls it.
#include <algorithm>
#include <limits>

#include "bindings.hpp"
#include "newton_batch.hpp"
#include "question.hpp"

namespace {

// Whether Ctrl-C ended it.
bool newton_batch(const Matrix<const double>& X, const Matrix<const double>& y,
                  const Array<const double>& C, bool squared, int intercept, double tol,
                  std::int64_t most, std::size_t threads, const nb::callable& stop,
                  const Matrix<double>& alpha, const Matrix<double>& v,
                  const Array<std::int64_t>& steps, int simd,
                  const std::optional<Matrix<const double>>& q, double digits) {
  const std::size_t m = X.shape(0), n = X.shape(1), problems = y.shape(0);
  const std::size_t order = n + (intercept > 0), places = q ? 2 * m : m;
  require(m > 0 && order > 0 && y.shape(1) == m && C.size() == m && alpha.shape(0) == problems &&
          alpha.shape(1) == places && v.shape(0) == problems && v.shape(1) == order &&
          steps.size() == problems && (!q || (q->shape(0) == problems && q->shape(1) == places)));
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
  const auto margins = q ? span(*q) : std::span<const double>();
  const widemargin::NewtonProblems all{{X.data(), m, n}, span(y),   span(C),     margins,
                                       squared,          intercept, span(alpha), span(v)};
  Question question{stop};
  {
    const nb::gil_scoped_release release;
    widemargin::newton_batch(
        code, all, {tol, std::min(tol, digits), most, threads, std::ref(question)}, span(steps));
  }
  return question.interrupted;
}

}  // namespace

void bind_newton(nb::module_& m) {
  m.def("newton_batch", &newton_batch, "X"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "squared"_a, "intercept"_a, "tol"_a, "most"_a, "threads"_a, "stop"_a, "alpha"_a.noconvert(),
        "v"_a.noconvert(), "steps"_a.noconvert(), "simd"_a = -1, "q"_a.noconvert() = nb::none(),
        "digits"_a = std::numeric_limits<double>::infinity());
}
