// The functions for many problems over the same samples, as Python calls them.
#include <atomic>
#include <cmath>
#include <memory>

#include "batch.hpp"
#include "batch_sums.hpp"
#include "bindings.hpp"
#include "bindings_question.hpp"
#include "bindings_views.hpp"
#include "exact_problem.hpp"
#include "fold_problems.hpp"
#include "given_facts.hpp"
#include "group_rows.hpp"
#include "kept_scores.hpp"
#include "large_pages.hpp"
#include "simd.hpp"
#include "table_sums.hpp"

namespace {

widemargin::KernelForm form_of(const Form& form) {
  const auto [kind, gamma, coef0, degree] = form;
  require(0 <= kind && kind < widemargin::kKernels);
  return {static_cast<widemargin::KernelKind>(kind), gamma, coef0, degree};
}

// Whether rows are sparse, of ones alone, and their products are enough for the kernel.
bool are_ones(const widemargin::KernelForm& form, const widemargin::Batch<double>& rows) {
  if (rows.begin == nullptr || widemargin::row_term(form.kind) != widemargin::Term::product)
    return false;
  for (std::size_t r = 0; r < rows.count; ++r)
    for (auto p = rows.begin[r]; p < rows.end[r]; ++p)
      if (rows.data[p] != 1) return false;
  return true;
}

widemargin::ExactRows exact_rows(const Form& form, const widemargin::Batch<double>& batch,
                                 const Array<const double>& norms) {
  require(norms.size() == batch.count);
  auto rows = batch;
  rows.is_ones = are_ones(form_of(form), batch);
  return {form_of(form), rows, span(norms)};
}

// The problems that Python asks for, and where their answers go.
struct Asked {
  Index group, group_end, end, after;
  Array<const double> y, C, q, mass;
  Array<double> c, scores;
  bool squared;
  int intercept;
  Matrix<double> numbers;
  Matrix<std::int64_t> counts;

  std::span<const std::int64_t> groups_of(std::size_t t) const {
    const auto begin = static_cast<std::size_t>(t > 0 ? group_end(t - 1) : 0);
    return span(group).subspan(begin, static_cast<std::size_t>(group_end(t)) - begin);
  }

  // Whether the arrays fit groups of so many samples, and each other.
  void check(const Index& count) const {
    const std::size_t problems = end.size(), total = y.size();
    require(group_end.size() == problems && ends_at(group_end, group.size()) &&
            are_below(group, count.size()) && ends_at(end, total) && C.size() == total &&
            q.size() == total && mass.size() == problems && c.size() == total &&
            scores.size() == total && numbers.shape(0) == problems && numbers.shape(1) == 4 &&
            counts.shape(0) == problems && counts.shape(1) == 3 && after.size() == problems);
    for (std::size_t t = 0; t < problems; ++t) {
      std::int64_t own = 0;
      for (const auto g : groups_of(t)) own += count(static_cast<std::size_t>(g));
      const auto begin = t > 0 ? end(t - 1) : 0;
      require(own > 0 && own == end(t) - begin);
      if (std::isnan(mass(t))) continue;
      require(mass(t) > 0 && std::isfinite(mass(t)) && intercept != 2);
      for (auto i = begin; intercept == 0 && i < end(t); ++i)
        require(y(static_cast<std::size_t>(i)) > 0);
    }
    check_chains();
  }

  void check_chains() const {
    std::vector<bool> followed(end.size());
    for (std::size_t t = 0; t < end.size(); ++t) {
      const auto before = after(t);
      require(-1 <= before && before < static_cast<std::int64_t>(t));
      if (before < 0) continue;
      require(!followed[static_cast<std::size_t>(before)]);
      followed[static_cast<std::size_t>(before)] = true;
      require(std::ranges::equal(groups_of(t), groups_of(static_cast<std::size_t>(before))));
    }
  }

  widemargin::BatchProblems problems() const {
    return {span(group), span(group_end), span(end), span(after),  span(y), span(C),
            span(q),     span(mass),      span(c),   span(scores), squared, intercept};
  }

  // Problems that were not begun have scores of zero.
  void keep(const std::vector<widemargin::BatchResult>& results) const {
    for (std::size_t t = 0; t < results.size(); ++t) {
      const auto& one = results[t];
      const std::size_t begin = t > 0 ? static_cast<std::size_t>(end(t - 1)) : 0;
      if (one.end == widemargin::BatchEnd::waiting)
        std::fill(scores.data() + begin, scores.data() + end(t), 0.0);
      numbers(t, 0) = one.intercept, numbers(t, 1) = one.primal, numbers(t, 2) = one.dual;
      numbers(t, 3) = one.rho;
      counts(t, 0) = one.steps, counts(t, 1) = one.negative;
      counts(t, 2) = static_cast<std::int64_t>(one.end);
    }
  }
};

// Samples of a batch of so many rows, in groups whose strips begin at `strip`, and the rows that
// they are.
void check_groups(const Index& strip, const Index& count, const Index& rows, std::size_t most) {
  const std::size_t groups = count.size();
  require(strip.size() == groups + 1 && strip.size() >= 2 && strip(0) == 0 &&
          std::ranges::is_sorted(span(strip)));
  std::int64_t samples = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto room = (strip(g + 1) - strip(g)) * static_cast<std::int64_t>(widemargin::kStrip);
    require(0 <= count(g) && count(g) <= room);
    samples += count(g);
  }
  require(rows.size() == static_cast<std::size_t>(samples) && are_below(rows, most));
}

std::tuple<std::int64_t, bool> solved(const widemargin::BatchSamples& samples, const Asked& asked,
                                      double tol, std::int64_t most, std::int64_t bytes,
                                      std::size_t threads, bool exactly, double hopeless,
                                      double seconds, double work, double moved,
                                      const nb::callable& stop, int simd) {
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
  Question question{stop};
  const widemargin::BatchLimits limits{tol,
                                       most,
                                       static_cast<std::size_t>(bytes),
                                       threads,
                                       exactly,
                                       hopeless,
                                       seconds,
                                       work,
                                       moved,
                                       std::ref(question)};
  std::vector<widemargin::BatchResult> results(asked.end.size());
  const auto problems = asked.problems();
  std::int64_t evaluations;
  {
    const nb::gil_scoped_release release;
    evaluations =
        widemargin::solve_batch({code.kernels, code.pairs, code.objective, code.factor, code.span},
                                samples, problems, limits, results);
  }
  asked.keep(results);
  return {evaluations, question.interrupted};
}

std::tuple<std::int64_t, bool> solve_batch(
    const Form& form, const widemargin::Strips<float>& strips,
    const widemargin::Batch<float>& batch, const Index& strip, const Index& count,
    const Index& rows, const Array<const double>& diagonal, const Form& exact_form,
    const widemargin::Batch<double>& exact, const Array<const double>& norms, const Index& group,
    const Index& group_end, const Index& end, const Index& after, const Array<const double>& y,
    const Array<const double>& C, const Array<const double>& q, const Array<const double>& mass,
    const Array<double>& c, const Array<double>& scores, bool squared, int intercept, double tol,
    std::int64_t most, std::int64_t bytes, std::size_t threads, bool exactly, double hopeless,
    double seconds, double work, double moved, const nb::callable& stop,
    const Matrix<double>& numbers, const Matrix<std::int64_t>& counts, int simd) {
  check_groups(strip, count, rows, batch.count);
  const Asked asked{group, group_end, end,    after,   y,         C,       q,
                    mass,  c,         scores, squared, intercept, numbers, counts};
  asked.check(count);
  require(ends_at(strip, (strips.samples + widemargin::kStrip - 1) / widemargin::kStrip) &&
          (strips.ones != nullptr ? batch.begin != nullptr : strips.data != nullptr) &&
          strips.indptr == nullptr && batch.n == strips.n && exact.count == batch.count &&
          exact.n == batch.n && diagonal.size() == batch.count);
  const widemargin::BatchSamples samples{form_of(form),  strips,
                                         batch,          {span(strip), span(count), span(rows)},
                                         span(diagonal), exact_rows(exact_form, exact, norms)};
  return solved(samples, asked, tol, most, bytes, threads, exactly, hopeless, seconds, work, moved,
                stop, simd);
}

// The rows of X less centers for `solve_batch`: `place` has the row of each padded sample, each row
// at least once. `look` may raise.
template <class X>
widemargin::GroupRows* rows_of_groups(const X& rows, const Index& place,
                                      const Array<const double>& center,
                                      const Array<const double>& exact_center, bool squares,
                                      bool exact_squares, const nb::callable& look, int simd) {
  std::unique_ptr<widemargin::GroupRows> out;
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
  with_view(rows, [&](const auto& view, std::size_t m, std::size_t n) {
    require(center.size() == n && exact_center.size() == n && are_below(place, m) &&
            place.size() % widemargin::kStrip == 0 && m > 0 && n > 0);
    const nb::gil_scoped_release release;
    out = std::make_unique<widemargin::GroupRows>(m, n, place.size());
    out->fill(code.kernels, view, span(place), {span(center), squares},
              {span(exact_center), exact_squares}, [&] {
                const nb::gil_scoped_acquire acquire;
                look();
              });
  });
  return out.release();  // to Python
}

template <class... X>
void bind_rows_of_groups(nb::module_& m) {
  using widemargin::GroupRows;
  nb::class_<GroupRows>(m, "GroupRows", "Rows that problems share.")
      .def_prop_ro("strips", &GroupRows::strips, nb::keep_alive<0, 1>())
      .def_prop_ro("batch", &GroupRows::batch, nb::keep_alive<0, 1>())
      .def_prop_ro("exact", &GroupRows::exact, nb::keep_alive<0, 1>())
      .def_prop_ro("norms", [](nb::handle self) {
        const auto norms = nb::cast<const GroupRows&>(self).norms();
        return nb::ndarray<nb::numpy, double, nb::ndim<1>>(norms.data(), {norms.size()}, self);
      });
  (m.def("rows_of_groups", &rows_of_groups<X>, "X"_a.noconvert(), "place"_a.noconvert(),
         "center"_a.noconvert(), "exact_center"_a.noconvert(), "squares"_a, "exact_squares"_a,
         "look"_a, "simd"_a = -1),
   ...);
}

// The kernel values of all pairs of rows, which nothing has to make.
widemargin::ExactRows given_rows(const Matrix<const double>& values,
                                 const Array<const double>& diagonal) {
  require(values.shape(0) == values.shape(1) && diagonal.size() == values.shape(0));
  return {{}, {}, span(diagonal), span(values)};
}

std::tuple<std::int64_t, bool> solve_given(
    const Matrix<const double>& values, const Index& strip, const Index& count, const Index& rows,
    const Array<const double>& diagonal, const Index& group, const Index& group_end,
    const Index& end, const Index& after, const Array<const double>& y,
    const Array<const double>& C, const Array<const double>& q, const Array<const double>& mass,
    const Array<double>& c, const Array<double>& scores, bool squared, int intercept, double tol,
    std::int64_t most, std::int64_t bytes, std::size_t threads, bool exactly, double hopeless,
    double seconds, double work, double moved, const nb::callable& stop,
    const Matrix<double>& numbers, const Matrix<std::int64_t>& counts, int simd) {
  check_groups(strip, count, rows, diagonal.size());
  const Asked asked{group, group_end, end,    after,   y,         C,       q,
                    mass,  c,         scores, squared, intercept, numbers, counts};
  asked.check(count);
  const widemargin::BatchSamples samples{{},
                                         {},
                                         {},
                                         {span(strip), span(count), span(rows)},
                                         span(diagonal),
                                         given_rows(values, diagonal)};
  return solved(samples, asked, tol, most, bytes, threads, exactly, hopeless, seconds, work, moved,
                stop, simd);
}

template <class Sums>
void summed(const Sums& sums, std::size_t threads, const nb::callable& stop, int simd) {
  const auto code = widemargin::compiled(widemargin::simd_level(simd));
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

void check_sums(std::size_t count, const Index& support, const Index& support_end,
                const Array<const double>& weight, const Index& row, const Index& row_end,
                const Array<double>& out) {
  require(are_below(support, count) && are_below(row, count) && weight.size() == support.size() &&
          out.size() == row.size() && ends_at(support_end, support.size()) &&
          ends_at(row_end, row.size()) && support_end.size() == row_end.size());
}

void sum_batch(const Form& form, const widemargin::Batch<double>& batch,
               const Array<const double>& norms, const Index& support, const Index& support_end,
               const Array<const double>& weight, const Index& row, const Index& row_end,
               const Index& run_end, const Array<double>& out, std::size_t threads,
               const nb::callable& stop, int simd) {
  check_sums(batch.count, support, support_end, weight, row, row_end, out);
  require(ends_at(run_end, row_end.size()) && run_end.size() <= row_end.size());
  summed<widemargin::BatchSums>({exact_rows(form, batch, norms), span(support), span(support_end),
                                 span(row), span(row_end), span(run_end), span(weight), span(out)},
                                threads, stop, simd);
}

void sum_given(const Matrix<const double>& values, const Array<const double>& diagonal,
               const Index& support, const Index& support_end, const Array<const double>& weight,
               const Index& row, const Index& row_end, const Array<double>& out,
               std::size_t threads, const nb::callable& stop) {
  check_sums(diagonal.size(), support, support_end, weight, row, row_end, out);
  summed<widemargin::BatchSums>({given_rows(values, diagonal),
                                 span(support),
                                 span(support_end),
                                 span(row),
                                 span(row_end),
                                 {},
                                 span(weight),
                                 span(out)},
                                threads, stop, -1);
}

// The weights of all rows, which lie in groups, and the rows to score: see TableSums.
struct Table {
  Matrix<const double> weight;
  std::size_t steps;
  Index order, group_end, row, wanted;
  Array<double> out;

  widemargin::TableSums of(const widemargin::ExactRows& rows) const {
    const std::size_t m = rows.norms.size(), columns = weight.shape(1);
    const auto most = static_cast<std::int64_t>(steps);
    const std::size_t strips = (row.size() + widemargin::kStrip - 1) / widemargin::kStrip;
    require(weight.shape(0) == m && steps > 0 && group_end.size() > 0 && columns % steps == 0 &&
            are_below(order, m) && ends_at(group_end, order.size()) && are_below(row, m) &&
            wanted.size() == row.size() &&
            std::ranges::all_of(span(wanted), [most](auto k) { return 0 <= k && k <= most; }) &&
            out.size() == group_end.size() * columns * strips * widemargin::kStrip);
    return {rows,      span(weight), columns,  steps, span(order), span(group_end),
            span(row), span(wanted), span(out)};
  }
};

void sum_table(const Form& form, const widemargin::Batch<double>& batch,
               const Array<const double>& norms, const Matrix<const double>& weight,
               std::size_t steps, const Index& order, const Index& group_end, const Index& row,
               const Index& wanted, const Array<double>& out, std::size_t threads,
               const nb::callable& stop, int simd) {
  const Table table{weight, steps, order, group_end, row, wanted, out};
  summed(table.of(exact_rows(form, batch, norms)), threads, stop, simd);
}

void sum_table_given(const Matrix<const double>& values, const Array<const double>& diagonal,
                     const Matrix<const double>& weight, std::size_t steps, const Index& order,
                     const Index& group_end, const Index& row, const Index& wanted,
                     const Array<double>& out, std::size_t threads, const nb::callable& stop) {
  const Table table{weight, steps, order, group_end, row, wanted, out};
  summed(table.of(given_rows(values, diagonal)), threads, stop, -1);
}

void lay_out(const Index& end, const Index& row, const Array<const double>& y,
             const Matrix<const double>& weights, const Matrix<const double>& factors,
             const Array<const double>& Cs, const Array<std::int64_t>& all_rows,
             const Array<double>& all_y, const Array<double>& all_C, const Array<double>& all_c,
             std::size_t threads) {
  const std::size_t folds = weights.shape(0), places = row.size() * folds * Cs.size();
  require(folds > 0 && ends_at(end, row.size()) && y.size() == row.size() &&
          are_below(row, weights.shape(1)) && factors.shape(0) == folds &&
          factors.shape(1) == end.size() && all_rows.size() == places && all_y.size() == places &&
          all_C.size() == places && all_c.size() == places);
  const nb::gil_scoped_release release;
  widemargin::lay_out(
      {folds, span(end), span(row), span(y), span(weights), span(factors), span(Cs)}, threads,
      {span(all_rows), span(all_y), span(all_C), span(all_c)});
}

std::tuple<double, double, double, std::size_t, std::size_t> given_facts(
    const Matrix<const double>& values, const Array<const double>& s) {
  require(values.shape(0) == s.size() && values.shape(1) == s.size());
  const nb::gil_scoped_release release;
  const auto found = widemargin::facts_of(span(values), span(s));
  return {found.largest, found.share, found.apart, found.i, found.j};
}

// Memory in large pages, which another array may have had before. Arrays begin at different
// offsets in them, so that they do not compete for the same sets of the caches: SVCCV on 5,000 rows
// of pendigits takes 0.94 of the time.
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> large_room(std::size_t bytes) {
  static std::atomic<std::size_t> rooms{0};
  constexpr std::size_t apart = 5 * 64, places = 12;
  auto pages = std::make_unique<widemargin::LargePages>(bytes + places * apart);
  auto* const begin = static_cast<std::uint8_t*>(pages->get()) + rooms++ % places * apart;
  const nb::capsule owner(
      pages.get(), [](void* own) noexcept { delete static_cast<widemargin::LargePages*>(own); });
  (void)pages.release();
  return {begin, {bytes}, owner};
}

}  // namespace

void bind_batch(nb::module_& m) {
  bind_rows_of_groups<Matrix<const double>, Matrix<const float>, Matrix<const std::int16_t>,
                      Matrix<const std::uint8_t>, widemargin::Csr>(m);
  m.attr("LONGEST") = widemargin::KeptScores::kLongest;
  m.attr("SUM_BLOCKS") = widemargin::kSumBlocks;
  m.def(
      "codes",
      [](int simd) {
        const auto code = widemargin::compiled(widemargin::simd_level(simd));
        return code.kernels.ones_apart != nullptr ? widemargin::kCodes : 0;
      },
      "simd"_a = -1);
  m.attr("MANY_FREE") = widemargin::kManyFree;
  m.attr("MOST_FACED") = widemargin::ExactProblem::kMostFaced;
  m.attr("INSIDE") = widemargin::kInside;
  m.attr("MOST_BASIS") = widemargin::ExactFace::kMostBasis;
  m.attr("FAR_OFF") = widemargin::kFarOff;
  m.attr("OF_VISIT") = widemargin::kOfVisit;
  m.def("large_room", &large_room, "bytes"_a);
  m.def("lent_bytes", [] { return widemargin::Spare::of_process().lent(); });
  m.def("solve_batch", &solve_batch, "form"_a, "strips"_a, "batch"_a, "strip"_a.noconvert(),
        "count"_a.noconvert(), "rows"_a.noconvert(), "diagonal"_a.noconvert(), "exact_form"_a,
        "exact"_a, "norms"_a.noconvert(), "group"_a.noconvert(), "group_end"_a.noconvert(),
        "end"_a.noconvert(), "after"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(),
        "q"_a.noconvert(), "mass"_a.noconvert(), "c"_a.noconvert(), "scores"_a.noconvert(),
        "squared"_a, "intercept"_a, "tol"_a, "most"_a, "bytes"_a, "threads"_a, "exactly"_a,
        "hopeless"_a, "seconds"_a, "work"_a, "moved"_a, "stop"_a, "numbers"_a.noconvert(),
        "counts"_a.noconvert(), "simd"_a = -1);
  m.def("solve_given", &solve_given, "values"_a.noconvert(), "strip"_a.noconvert(),
        "count"_a.noconvert(), "rows"_a.noconvert(), "diagonal"_a.noconvert(),
        "group"_a.noconvert(), "group_end"_a.noconvert(), "end"_a.noconvert(),
        "after"_a.noconvert(), "y"_a.noconvert(), "C"_a.noconvert(), "q"_a.noconvert(),
        "mass"_a.noconvert(), "c"_a.noconvert(), "scores"_a.noconvert(), "squared"_a, "intercept"_a,
        "tol"_a, "most"_a, "bytes"_a, "threads"_a, "exactly"_a, "hopeless"_a, "seconds"_a, "work"_a,
        "moved"_a, "stop"_a, "numbers"_a.noconvert(), "counts"_a.noconvert(), "simd"_a = -1);
  m.def("sum_given", &sum_given, "values"_a.noconvert(), "diagonal"_a.noconvert(),
        "support"_a.noconvert(), "support_end"_a.noconvert(), "weight"_a.noconvert(),
        "row"_a.noconvert(), "row_end"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "stop"_a);
  m.def("lay_out", &lay_out, "end"_a.noconvert(), "row"_a.noconvert(), "y"_a.noconvert(),
        "weights"_a.noconvert(), "factors"_a.noconvert(), "Cs"_a.noconvert(),
        "all_rows"_a.noconvert(), "all_y"_a.noconvert(), "all_C"_a.noconvert(),
        "all_c"_a.noconvert(), "threads"_a);
  m.def("given_facts", &given_facts, "values"_a.noconvert(), "s"_a.noconvert());
  m.def("sum_batch", &sum_batch, "form"_a, "batch"_a, "norms"_a.noconvert(),
        "support"_a.noconvert(), "support_end"_a.noconvert(), "weight"_a.noconvert(),
        "row"_a.noconvert(), "row_end"_a.noconvert(), "run_end"_a.noconvert(), "out"_a.noconvert(),
        "threads"_a, "stop"_a, "simd"_a = -1);
  m.def("sum_table", &sum_table, "form"_a, "batch"_a, "norms"_a.noconvert(), "weight"_a.noconvert(),
        "steps"_a, "order"_a.noconvert(), "group_end"_a.noconvert(), "row"_a.noconvert(),
        "wanted"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "stop"_a, "simd"_a = -1);
  m.def("sum_table_given", &sum_table_given, "values"_a.noconvert(), "diagonal"_a.noconvert(),
        "weight"_a.noconvert(), "steps"_a, "order"_a.noconvert(), "group_end"_a.noconvert(),
        "row"_a.noconvert(), "wanted"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "stop"_a);
}
