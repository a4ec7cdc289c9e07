// The functions for many problems over the same samples, as Python calls them.
#include <cmath>

#include "batch.hpp"
#include "bindings.hpp"
#include "question.hpp"
#include "simd.hpp"

namespace {

using Form = std::tuple<int, double, double, int>;
using Index = Array<const std::int64_t>;

widemargin::KernelForm form_of(const Form& form) {
  const auto [kind, gamma, coef0, degree] = form;
  require(0 <= kind && kind < widemargin::kKernels);
  return {static_cast<widemargin::KernelKind>(kind), gamma, coef0, degree};
}

// Whether numbers rise from 0 or more up to `last`.
bool ends_at(const Index& end, std::size_t last) {
  const auto all = span(end);
  return std::ranges::is_sorted(all) && (all.empty() ? last == 0 : all.front() >= 0) &&
         (all.empty() || static_cast<std::size_t>(all.back()) == last);
}

bool are_below(const Index& index, std::size_t count) {
  return std::ranges::all_of(
      span(index), [count](auto i) { return 0 <= i && static_cast<std::size_t>(i) < count; });
}

widemargin::ExactRows exact_rows(const Form& form, const widemargin::Batch<double>& batch,
                                 const Array<const double>& norms) {
  require(norms.size() == batch.count);
  return {form_of(form), batch, span(norms)};
}

// Samples, in groups whose strips begin at `strip`; the rows of the batch that they are.
std::tuple<std::int64_t, bool> solve_batch(
    const Form& form, const widemargin::Strips<float>& strips,
    const widemargin::Batch<float>& batch, const Index& strip, const Index& count,
    const Index& rows, const Array<const double>& diagonal, const Form& exact_form,
    const widemargin::Batch<double>& exact, const Array<const double>& norms, const Index& group,
    const Index& group_end, const Index& end, const Index& after, const Array<const double>& y,
    const Array<const double>& C, const Array<const double>& q, const Array<const double>& mass,
    const Array<double>& c, const Array<double>& scores, bool squared, int intercept, double tol,
    std::int64_t most, std::int64_t bytes, std::size_t threads, const nb::callable& stop,
    const Matrix<double>& numbers, const Matrix<std::int64_t>& counts, int simd) {
  const std::size_t groups = count.size(), problems = end.size(), total = y.size();
  require(strip.size() == groups + 1 && strip.size() >= 2 && strip(0) == 0 &&
          ends_at(strip, (strips.samples + widemargin::kStrip - 1) / widemargin::kStrip));
  std::int64_t samples = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto room = (strip(g + 1) - strip(g)) * static_cast<std::int64_t>(widemargin::kStrip);
    require(0 <= count(g) && count(g) <= room);
    samples += count(g);
  }
  require(rows.size() == static_cast<std::size_t>(samples) && are_below(rows, batch.count) &&
          strips.data != nullptr && strips.indptr == nullptr && batch.n == strips.n &&
          exact.count == batch.count && exact.n == batch.n && diagonal.size() == batch.count);
  require(group_end.size() == problems && ends_at(group_end, group.size()) &&
          are_below(group, groups) && ends_at(end, total) && C.size() == total &&
          q.size() == total && mass.size() == problems && c.size() == total &&
          scores.size() == total && numbers.shape(0) == problems && numbers.shape(1) == 4 &&
          counts.shape(0) == problems && counts.shape(1) == 3 && after.size() == problems);
  std::vector<bool> followed(problems);
  for (std::size_t t = 0; t < problems; ++t) {
    std::int64_t own = 0;
    for (auto k = t > 0 ? group_end(t - 1) : 0; k < group_end(t); ++k)
      own += count(static_cast<std::size_t>(group(static_cast<std::size_t>(k))));
    const auto begin = t > 0 ? end(t - 1) : 0;
    require(own > 0 && own == end(t) - begin);
    if (!std::isnan(mass(t))) {
      require(mass(t) > 0 && std::isfinite(mass(t)) && intercept != 2);
      for (auto i = begin; intercept == 0 && i < end(t); ++i)
        require(y(static_cast<std::size_t>(i)) > 0);
    }
    const auto before = after(t);
    require(-1 <= before && before < static_cast<std::int64_t>(t));
    if (before < 0) continue;
    require(!followed[static_cast<std::size_t>(before)]);
    followed[static_cast<std::size_t>(before)] = true;
    const auto groups_of = [&](std::size_t k) {
      const auto begin = static_cast<std::size_t>(k > 0 ? group_end(k - 1) : 0);
      return span(group).subspan(begin, static_cast<std::size_t>(group_end(k)) - begin);
    };
    require(std::ranges::equal(groups_of(t), groups_of(static_cast<std::size_t>(before))));
  }
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
  const widemargin::BatchSamples given{form_of(form),  strips,
                                       batch,          {span(strip), span(count), span(rows)},
                                       span(diagonal), exact_rows(exact_form, exact, norms)};
  const widemargin::BatchProblems asked_for{span(group), span(group_end), span(end), span(after),
                                            span(y),     span(C),         span(q),   span(mass),
                                            span(c),     span(scores),    squared,   intercept};
  Question question{stop};
  const widemargin::BatchLimits limits{tol, most, static_cast<std::size_t>(bytes), threads,
                                       std::ref(question)};
  std::vector<widemargin::BatchResult> results(problems);
  std::int64_t evaluations;
  {
    const nb::gil_scoped_release release;
    evaluations =
        widemargin::solve_batch(code.kernels, code.pairs, given, asked_for, limits, results);
  }
  for (std::size_t t = 0; t < problems; ++t) {
    const auto& one = results[t];
    numbers(t, 0) = one.intercept, numbers(t, 1) = one.primal, numbers(t, 2) = one.dual;
    numbers(t, 3) = one.rho;
    counts(t, 0) = one.steps, counts(t, 1) = one.negative;
    counts(t, 2) = static_cast<std::int64_t>(one.end);
  }
  return {evaluations, question.interrupted};
}

void sum_batch(const Form& form, const widemargin::Batch<double>& batch,
               const Array<const double>& norms, const Index& support, const Index& support_end,
               const Array<const double>& weight, const Index& row, const Index& row_end,
               const Index& run_end, const Array<double>& out, std::size_t threads,
               const nb::callable& stop, int simd) {
  require(ends_at(run_end, row_end.size()) && run_end.size() <= row_end.size());
  require(are_below(support, batch.count) && are_below(row, batch.count) &&
          weight.size() == support.size() && out.size() == row.size() &&
          ends_at(support_end, support.size()) && ends_at(row_end, row.size()) &&
          support_end.size() == row_end.size());
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
  const widemargin::BatchSums sums{exact_rows(form, batch, norms),
                                   span(support),
                                   span(support_end),
                                   span(row),
                                   span(row_end),
                                   span(run_end),
                                   span(weight),
                                   span(out)};
  Question question{stop};
  {
    const nb::gil_scoped_release release;
    widemargin::sum_batch(code.kernels, sums, threads, std::ref(question));
  }
  if (question.interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
}

}  // namespace

void bind_batch(nb::module_& m) {
  m.def("solve_batch", &solve_batch, "form"_a, "strips"_a, "batch"_a, "strip"_a.noconvert(),
        "count"_a.noconvert(), "rows"_a.noconvert(), "diagonal"_a.noconvert(), "exact_form"_a,
        "exact"_a, "norms"_a.noconvert(), "group"_a.noconvert(), "group_end"_a.noconvert(),
        "end"_a.noconvert(), "after"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "q"_a.noconvert(), "mass"_a.noconvert(), "c"_a.noconvert(), "scores"_a.noconvert(),
        "squared"_a, "intercept"_a, "tol"_a, "most"_a, "bytes"_a, "threads"_a, "stop"_a,
        "numbers"_a.noconvert(), "counts"_a.noconvert(), "simd"_a = -1);
  m.def("sum_batch", &sum_batch, "form"_a, "batch"_a, "norms"_a.noconvert(),
        "support"_a.noconvert(), "support_end"_a.noconvert(), "weight"_a.noconvert(),
        "row"_a.noconvert(), "row_end"_a.noconvert(), "run_end"_a.noconvert(), "out"_a.noconvert(),
        "threads"_a, "stop"_a, "simd"_a = -1);
}
