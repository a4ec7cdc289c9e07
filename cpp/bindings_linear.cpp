// Linear problems that are solved all at once, as Python calls them.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "bindings.hpp"
#include "bindings_question.hpp"
#include "descent_batch.hpp"
#include "newton_batch.hpp"

namespace {

// What a problem has in arrays: `steps` has one number each.
template <class Rows>
widemargin::LinearProblems<Rows> linear_problems(
    const Rows& X, std::size_t m, const Matrix<const double>& y, const Matrix<const double>& C,
    bool squared, int intercept, const Matrix<double>& alpha, const Matrix<double>& v,
    const Array<std::int64_t>& steps, const std::optional<Matrix<const double>>& q) {
  const std::size_t problems = y.shape(0), order = X.n + (intercept > 0), places = q ? 2 * m : m;
  require(m > 0 && order > 0 && y.shape(1) == m && C.shape(0) == problems && C.shape(1) == m &&
          alpha.shape(0) == problems && alpha.shape(1) == places && v.shape(0) == problems &&
          v.shape(1) == order && steps.size() == problems &&
          (!q || (q->shape(0) == problems && q->shape(1) == places)));
  const auto margins = q ? span(*q) : std::span<const double>();
  return {X, span(y), span(C), margins, squared, intercept, span(alpha), span(v), m};
}

// run(question) without the GIL; whether Ctrl-C ended it.
template <class Run>
bool is_interrupted(const nb::callable& stop, const Run& run) {
  Question question{stop};
  {
    const nb::gil_scoped_release release;
    run(std::ref(question));
  }
  return question.interrupted;
}

// Of dense or sparse rows, of these with the squared loss; whether Ctrl-C ended it.
template <class Rows>
bool newton_batch(const Rows& X, const Matrix<const double>& y, const Matrix<const double>& C,
                  bool squared, int intercept, double tol, std::int64_t most, std::size_t threads,
                  const nb::callable& stop, const Matrix<double>& alpha, const Matrix<double>& v,
                  const Array<std::int64_t>& steps, int simd,
                  const std::optional<Matrix<const double>>& q, double digits, std::int64_t few) {
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
  const auto solve = [&](const auto& rows, std::size_t m) {
    const auto all = linear_problems(rows, m, y, C, squared, intercept, alpha, v, steps, q);
    return is_interrupted(stop, [&](const auto& ask) {
      widemargin::newton_batch(code, all, {tol, most, threads, ask}, digits, few, span(steps));
    });
  };
  if constexpr (std::is_same_v<Rows, widemargin::Csr>) {
    require(squared);
    return solve(X, X.rows());
  } else {
    return solve(widemargin::DenseView<double>{X.data(), X.shape(0), X.shape(1)}, X.shape(0));
  }
}

// The same of sparse rows by coordinate descent. No column of X repeats in a row.
bool descent_batch(const widemargin::Csr& X, const Matrix<const double>& y,
                   const Matrix<const double>& C, bool squared, int intercept, double tol,
                   std::int64_t most, std::size_t threads, const nb::callable& stop,
                   const Matrix<double>& alpha, const Matrix<double>& v,
                   const Array<std::int64_t>& visits, int simd,
                   const std::optional<Matrix<const double>>& q, std::uint64_t seed) {
  const auto level = widemargin::simd_level(simd);
  const auto all = linear_problems(X, X.rows(), y, C, squared, intercept, alpha, v, visits, q);
  return is_interrupted(stop, [&](const auto& ask) {
    widemargin::descent_batch(level, all, {tol, most, threads, ask}, seed, span(visits));
  });
}

}  // namespace

void bind_linear(nb::module_& m) {
  const auto bind = [&m](const char* name, auto function, auto... last) {
    m.def(name, function, "X"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "squared"_a,
          "intercept"_a, "tol"_a, "most"_a, "threads"_a, "stop"_a, "alpha"_a.noconvert(),
          "v"_a.noconvert(), "steps"_a.noconvert(), "simd"_a = -1, "q"_a.noconvert() = nb::none(),
          last...);
  };
  const auto digits = "digits"_a = std::numeric_limits<double>::infinity();
  bind("newton_batch", &newton_batch<Matrix<const double>>, digits, "few"_a = 0);
  bind("newton_batch", &newton_batch<widemargin::Csr>, digits, "few"_a = 0);
  bind("descent_batch", &descent_batch, "seed"_a = 0);
}
