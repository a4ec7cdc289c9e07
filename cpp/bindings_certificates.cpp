// Bounds of the optima of many problems, as Python calls them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bindings.hpp"
#include "certificates.hpp"
#include "given_sums.hpp"

namespace {

using Numbers = Array<const double>;

void put(const std::vector<widemargin::ProvenBounds>& bounds, const Matrix<double>& out) {
  for (std::size_t t = 0; t < bounds.size(); ++t) {
    const auto& one = bounds[t];
    out(t, 0) = one.primal, out(t, 1) = one.dual, out(t, 2) = one.over, out(t, 3) = one.under;
  }
}

void certify_many(const Index& end, const std::vector<Numbers>& data, bool squared, int intercept,
                  const std::vector<Numbers>& found, const Array<const bool>& has_loss,
                  const Index& row, const Numbers& length, const std::vector<Numbers>& numbers,
                  const std::optional<Matrix<const double>>& squares, const Matrix<double>& out) {
  const std::size_t places = row.size(), problems = end.size();
  require(data.size() == 4 && found.size() == 3 && numbers.size() == 2);
  const auto &y = data[0], &C = data[1], &q = data[2], &mass = data[3];
  const auto &c = found[0], &f = found[1], &errors = found[2], &b = numbers[0], &rho = numbers[1];
  for (const auto& one : {y, C, q, c, f, errors}) require(one.size() == places);
  for (const auto& one : {mass, b, rho}) require(one.size() == problems);
  require(ends_at(end, places) && has_loss.size() == places && are_below(row, length.size()) &&
          out.shape(0) == problems && out.shape(1) == 4);
  if (squares) require(squares->shape(0) == problems && squares->shape(1) == 4);
  const widemargin::CertifiedProblems given{span(end),  span(y), span(C),  span(q),
                                            span(mass), squared, intercept};
  const std::span<const std::uint8_t> may_lose{
      reinterpret_cast<const std::uint8_t*>(has_loss.data()), places};
  const widemargin::CertifiedAnswers answers{
      span(c),
      span(f),
      span(errors),
      may_lose,
      span(row),
      span(length),
      span(b),
      span(rho),
      squares ? std::span<const double>(squares->data(), squares->size())
              : std::span<const double>()};
  std::vector<widemargin::ProvenBounds> bounds(problems);
  {
    const nb::gil_scoped_release release;
    widemargin::certify_many(given, answers, bounds);
  }
  put(bounds, out);
}

void errors_by_part(double eps, const Numbers& h, const Numbers& s, double base, double each,
                    double more, double lost, const Index& end, const Index& row, const Numbers& c,
                    const Array<double>& out) {
  require(h.size() == s.size() && c.size() == row.size() && out.size() == row.size() &&
          ends_at(end, row.size()));
  const nb::gil_scoped_release release;
  widemargin::errors_by_part({eps, span(h), span(s)}, {base, each, more, lost}, span(end),
                             span(row), span(c), span(out));
}

// What is known of kept kernel values, and of their sums: see `KnownValues` and `SumError`.
using Known = std::tuple<double, Numbers, Numbers, double, double, double, double>;

// The last four of these.
widemargin::SumError error_of(const Known& known) {
  return {std::get<3>(known), std::get<4>(known), std::get<5>(known), std::get<6>(known)};
}

widemargin::KnownValues values_of(const Known& known) {
  const auto &h = std::get<1>(known), &s = std::get<2>(known);
  require(h.size() == s.size());
  return {std::get<0>(known), span(h), span(s)};
}

widemargin::KnownScores known_scores(const Known& known, const Index& end, const Index& row,
                                     const Numbers& y, const std::vector<Numbers>& found) {
  require(found.size() == 3 && ends_at(end, row.size()));
  const auto &c = found[0], &f = found[1], &b = found[2];
  for (const auto& one : {y, c, f}) require(one.size() == row.size());
  require(b.size() == end.size());
  return {values_of(known), error_of(known), span(end), span(row),
          span(y),          span(c),         span(f),   span(b)};
}

// Numbers that the owner keeps.
template <class T>
nb::object as_array(const widemargin::Room<T>& room, const nb::capsule& owner) {
  const std::span<const T> all = room;
  return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(all.data(), {all.size()}, owner));
}

// `sum` makes scores in float64: see `Grouped.exact`.
void prove_many(const Known& known, const Known& exact, const Index& end, const Index& row,
                const std::vector<Numbers>& data, const std::vector<Numbers>& found,
                const Numbers& rho, const Numbers& counted, bool are_all_wanted, bool squared,
                int intercept, double enough, std::size_t threads, const nb::callable& sum,
                const Matrix<double>& out) {
  require(data.size() == 4 && out.shape(0) == end.size() && out.shape(1) == 4);
  const auto &y = data[0], &C = data[1], &q = data[2], &mass = data[3];
  const auto scores = known_scores(known, end, row, y, found);
  for (const auto& one : {C, q, counted}) require(one.size() == row.size());
  for (const auto& one : {mass, rho}) require(one.size() == end.size());
  const widemargin::CertifiedProblems given{span(end),  span(y), span(C),  span(q),
                                            span(mass), squared, intercept};
  const widemargin::ExactSums sums{values_of(exact), error_of(exact), span(counted)};
  std::vector<widemargin::ProvenBounds> bounds(end.size());
  auto* const places = new widemargin::FoundPlaces;
  const nb::capsule owner(
      places, [](void* p) noexcept { delete static_cast<widemargin::FoundPlaces*>(p); });
  {
    const nb::gil_scoped_release release;
    *places = widemargin::find_places(given, scores, span(rho), sums, are_all_wanted, enough,
                                      bounds, threads);
  }
  const auto made = nb::cast<Numbers>(
      sum(nb::make_tuple(as_array(places->support, owner), as_array(places->weight, owner),
                         as_array(places->support_end, owner)),
          nb::make_tuple(as_array(places->row, owner), as_array(places->end, owner))));
  require(made.size() == places->row.size());
  widemargin::prove_places(given, scores, span(rho), sums, *places, span(made), bounds);
  put(bounds, out);
}

template <class T, std::size_t n>
using Table = nb::ndarray<T, nb::ndim<n>, nb::c_contig, nb::device::cpu>;
using Counts = Table<std::int16_t, 3>;

void keep_answers(const Known& known, const Index& end, const Index& row, const Numbers& y,
                  const std::vector<Numbers>& found, std::size_t threads,
                  const Matrix<const double>& weights, const Matrix<const std::int64_t>& sum,
                  const Table<double, 4>& coefficients, const std::vector<Counts>& counts) {
  const auto& [eps, h, s, base, each, more, lost] = known;
  const std::size_t folds = weights.shape(0), rows = weights.shape(1);
  const std::size_t sums = coefficients.shape(2), Cs = coefficients.shape(3);
  require(h.size() == rows && s.size() == rows && are_below(row, rows) &&
          ends_at(end, row.size()) && y.size() == row.size());
  require(found.size() == 3 && coefficients.shape(0) == folds && coefficients.shape(1) == rows &&
          sum.shape(0) == end.size() && sum.shape(1) == 2);
  for (const auto one : span(sum)) require(static_cast<std::size_t>(one) < sums);
  const auto &c = found[0], &f = found[1], &b = found[2];
  for (const auto& one : {c, f}) require(one.size() == row.size() * folds * Cs);
  require(b.size() == end.size() * folds * Cs && (counts.empty() || counts.size() == 2));
  for (const auto& one : counts)
    require(one.shape(0) == folds && one.shape(1) == rows && one.shape(2) == Cs);
  const auto count = [&](std::size_t k) -> std::span<std::int16_t> {
    if (counts.empty()) return {};
    return {counts[k].data(), counts[k].size()};
  };
  const widemargin::FoldAnswers answers{folds,
                                        Cs,
                                        {eps, span(h), span(s)},
                                        {base, each, more, lost},
                                        span(end),
                                        span(row),
                                        span(y),
                                        span(c),
                                        span(f),
                                        span(b),
                                        span(weights)};
  const widemargin::FoldSums out{
      sums, span(sum), {coefficients.data(), coefficients.size()}, count(0), count(1)};
  const nb::gil_scoped_release release;
  widemargin::keep_answers(answers, threads, out);
}

// As `Certificate.relative_gap` of solution.py has it.
void relative_gaps(const Matrix<const double>& bounds, const Array<double>& gaps) {
  require(bounds.shape(0) == gaps.size() && bounds.shape(1) == 4);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < gaps.size(); ++t) {
    const double size = std::abs(bounds(t, 0)), scale = bounds(t, 2);
    const double gap = std::abs(bounds(t, 0) - bounds(t, 1));
    const double all = scale > size ? scale : size;
    const bool is_known = gap < infinity && all > 0 && all < infinity && !std::isnan(scale);
    gaps(t) =
        is_known ? std::max(gap, std::numeric_limits<double>::epsilon() * size) / all : infinity;
  }
}

double missing(const Numbers& alpha, double total) {
  return widemargin::missing(span(alpha), total);
}

void fill_sum(const Numbers& C, double total, bool bounded, const Array<double>& alpha) {
  require(C.size() == alpha.size());
  widemargin::fill(span(C), total, bounded, span(alpha));
}

void change_sum(const Numbers& alpha, const Numbers& C, double total, bool bounded,
                const Array<double>& moved) {
  require(C.size() == alpha.size() && moved.size() == alpha.size());
  widemargin::change(span(alpha), span(C), total, bounded, span(moved));
}

// Coefficients y alpha with the sums that are given, of problems that have some.
void fill_sums(const Index& end, const std::vector<Numbers>& data, bool bounded, bool by_class,
               const Array<double>& c) {
  require(data.size() == 4);
  const auto &y = data[0], &C = data[1], &mass = data[3];
  require(ends_at(end, c.size()) && y.size() == c.size() && C.size() == c.size() &&
          mass.size() == end.size());
  std::size_t begin = 0;
  for (std::size_t t = 0; t < end.size(); ++t) {
    const auto last = static_cast<std::size_t>(end(t));
    if (!std::isnan(mass(t)))
      widemargin::each_sum(span(y), begin, last, mass(t), by_class,
                           [&](const std::vector<std::size_t>& own, double total) {
                             std::vector<double> alpha(own.size());
                             widemargin::fill(widemargin::taken(span(C), own), total, bounded,
                                              alpha);
                             for (std::size_t k = 0; k < own.size(); ++k)
                               c(own[k]) = y(own[k]) * alpha[k];
                           });
    begin = last;
  }
}

}  // namespace

void bind_certificates(nb::module_& m) {
  m.def("relative_gaps", &relative_gaps, "bounds"_a, "gaps"_a.noconvert());
  m.def("missing", &missing, "alpha"_a, "total"_a);
  m.def("fill_sum", &fill_sum, "C"_a, "total"_a, "bounded"_a, "alpha"_a.noconvert());
  m.def("change_sum", &change_sum, "alpha"_a, "C"_a, "total"_a, "bounded"_a, "moved"_a.noconvert());
  m.def("fill_sums", &fill_sums, "end"_a.noconvert(), "data"_a, "bounded"_a, "by_class"_a,
        "c"_a.noconvert());
  m.def("certify_many", &certify_many, "end"_a.noconvert(), "data"_a, "squared"_a, "intercept"_a,
        "found"_a, "has_loss"_a.noconvert(), "row"_a.noconvert(), "length"_a.noconvert(),
        "numbers"_a, "squares"_a.none(), "out"_a.noconvert());
  m.def("errors_by_part", &errors_by_part, "eps"_a, "h"_a.noconvert(), "s"_a.noconvert(), "base"_a,
        "each"_a, "more"_a, "lost"_a, "end"_a.noconvert(), "row"_a.noconvert(), "c"_a.noconvert(),
        "out"_a.noconvert());
  m.def("prove_many", &prove_many, "known"_a, "exact"_a, "end"_a.noconvert(), "row"_a.noconvert(),
        "data"_a, "found"_a, "rho"_a.noconvert(), "counted"_a.noconvert(), "are_all_wanted"_a,
        "squared"_a, "intercept"_a, "enough"_a, "threads"_a, "sum"_a, "out"_a.noconvert());
  m.def("keep_answers", &keep_answers, "known"_a, "end"_a.noconvert(), "row"_a.noconvert(),
        "y"_a.noconvert(), "found"_a, "threads"_a, "weights"_a.noconvert(), "sum"_a.noconvert(),
        "coefficients"_a.noconvert(), "counts"_a);
}
