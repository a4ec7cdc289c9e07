// The steps of kernel solvers, as Python calls them.
#include <vector>

#include "bindings.hpp"
#include "mirror.hpp"
#include "pair_steps.hpp"
#include "simd.hpp"
#include "simplex_steps.hpp"
#include "violations.hpp"

namespace {

template <class Real, class Stored>
std::tuple<std::int64_t, std::int64_t, double> pair_steps(
    const Matrix<const Stored>& K, std::size_t q, const Array<const Real>& diagonal,
    const Array<const Real>& ridge, Real shift, const Array<const double>& lower,
    const Array<const double>& upper, const Array<double>& x, const Array<Real>& F,
    const Matrix<Real>& room, int sums, double stop, std::int64_t most,
    const std::optional<Array<const Real>>& kink, int simd) {
  const std::size_t width = K.shape(1);
  require(q >= 1 && q <= width && K.shape(0) >= q && width % 16 == 0 && diagonal.size() == width &&
          ridge.size() == width && F.size() == width && 0 <= sums && sums <= 2 &&
          room.shape(0) == (sums > 1 ? 4 : 2) && room.shape(1) == width && lower.size() == q &&
          upper.size() == q && x.size() == q && !(sums > 0 && shift != 0));
  require(!kink || (kink->size() == width && sums < 2));
  std::vector<signed char> ways(q);
  widemargin::Relaxation relaxation{ways.data()};
  const auto descend = [&]<template <typename> class Rows>(widemargin::Descent<Real, Rows> run) {
    const widemargin::SmallProblem<Real, Rows> problem{
        {K.data(), width}, q,          width,        diagonal.data(),
        ridge.data(),      shift,      lower.data(), upper.data(),
        x.data(),          F.data(),   room.data(),  sums,
        ::data(kink),      &relaxation};
    const nb::gil_scoped_release release;
    return run(problem, stop, most);
  };
  const auto& table = widemargin::compiled(widemargin::simd_level(simd)).pairs;
  widemargin::PairSteps done;
  if constexpr (std::is_same_v<Real, Stored>)
    done = descend(table.steps<Real>());
  else
    done = descend(table.rounded32);
  return {done.steps, done.negative, done.violation};
}

// A problem of the simplex in arrays; `numbers`: scale, square, linear and updates, in and out.
template <class Real>
widemargin::Simplex<Real> simplex(const Matrix<const Real>& rows,
                                  const Array<const std::int64_t>& place,
                                  const Array<const double>& y, const Array<const double>& diagonal,
                                  const Array<const double>& ridge, const Array<const double>& half,
                                  double shift, const Array<double>& alpha, const Array<double>& g,
                                  const Array<double>& numbers, int kind, std::int64_t given) {
  const std::size_t m = place.size();
  require(rows.shape(1) >= m && y.size() == m && diagonal.size() == m && ridge.size() == m &&
          half.size() == m && alpha.size() == m && g.size() == m && numbers.size() == 4 && m >= 1 &&
          0 <= kind && kind <= static_cast<int>(widemargin::SimplexStep::swap) &&
          given < static_cast<std::int64_t>(m));
  for (auto p : span(place)) require(p < static_cast<std::int64_t>(rows.shape(0)));
  return {rows.data(),     place.data(), rows.shape(1), m,          y.data(),
          diagonal.data(), ridge.data(), half.data(),   shift,      alpha.data(),
          g.data(),        numbers(0),   numbers(1),    numbers(2), numbers(3)};
}

template <class Real>
void keep(const widemargin::Simplex<Real>& problem, const Array<double>& numbers) {
  numbers(0) = problem.scale, numbers(1) = problem.square, numbers(2) = problem.linear;
  numbers(3) = problem.updates;
}

template <class Real>
std::tuple<std::int64_t, std::int64_t, std::int64_t, double> simplex_steps(
    const Matrix<const Real>& rows, const Array<const std::int64_t>& place,
    const Array<const double>& y, const Array<const double>& diagonal,
    const Array<const double>& ridge, const Array<const double>& half, double shift,
    const Array<double>& alpha, const Array<double>& g, const Array<double>& numbers, int kind,
    bool second_order, bool ball, double stop, std::int64_t most, std::int64_t given, int simd) {
  auto problem =
      simplex<Real>(rows, place, y, diagonal, ridge, half, shift, alpha, g, numbers, kind, given);
  const auto run = widemargin::compiled(widemargin::simd_level(simd)).simplex.steps<Real>();
  widemargin::SimplexSteps done;
  {
    const nb::gil_scoped_release release;
    done = run(problem, static_cast<widemargin::SimplexStep>(kind), second_order, ball, stop, most,
               given);
  }
  keep(problem, numbers);
  return {done.steps, done.drops, done.missing, done.least};
}

// What rows are drawn from, in arrays: `order` has `split` rows of one class in front.
widemargin::Draws draws(const Array<const std::int64_t>& order, std::size_t split,
                        const Array<std::uint64_t>& state, const Array<const double>& weight) {
  const std::size_t m = order.size();
  require(m >= 1 && split < m && state.size() == 1 && weight.size() == m);
  for (auto i : span(order)) require(0 <= i && i < static_cast<std::int64_t>(m));
  return {order.data(), m, split, state.data()};
}

std::size_t draw_rows(const Array<const std::int64_t>& order, std::size_t split,
                      const Array<std::uint64_t>& state, const Array<const double>& weight,
                      const Array<std::int64_t>& out) {
  const auto from = draws(order, split, state, weight);
  return widemargin::draw_rows(from, weight.data(), out.size(), out.data());
}

template <class Real>
std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>
sampled_steps(const Matrix<const Real>& rows, const Array<const std::int64_t>& place,
              const Array<const double>& y, const Array<const double>& diagonal,
              const Array<const double>& ridge, const Array<const double>& half, double shift,
              const Array<double>& alpha, const Array<double>& g, const Array<double>& numbers,
              int kind, bool second_order, bool ball, double stop, std::int64_t most,
              std::int64_t given, const Array<const std::int64_t>& order, std::size_t split,
              const Array<std::uint64_t>& state, const Array<std::int64_t>& room,
              std::int64_t tries, int simd) {
  auto problem =
      simplex<Real>(rows, place, y, diagonal, ridge, half, shift, alpha, g, numbers, kind, given);
  const Array<const double> weight(alpha);
  require(room.size() >= 1);
  const widemargin::Sample sample{draws(order, split, state, weight), room.size(), tries,
                                  room.data()};
  const auto run = widemargin::compiled(widemargin::simd_level(simd)).simplex.sampled<Real>();
  widemargin::SampledSteps done;
  {
    const nb::gil_scoped_release release;
    done = run(problem, static_cast<widemargin::SimplexStep>(kind), second_order, ball, stop, most,
               given, sample);
  }
  keep(problem, numbers);
  return {done.looks, done.steps, done.drops, done.missing, done.chosen, done.inside};
}

void violations(const Array<const double>& F, const Array<const double>& c,
                const Array<const double>& lower, const Array<const double>& upper,
                const Array<double>& rise, const Array<double>& fall,
                const std::optional<Array<const bool>>& current) {
  const std::size_t m = F.size();
  require(c.size() == m && lower.size() == m && upper.size() == m && rise.size() == m &&
          fall.size() == m && (!current || current->size() == m));
  const nb::gil_scoped_release release;
  widemargin::violations(F.data(), c.data(), lower.data(), upper.data(), data(current), m,
                         rise.data(), fall.data());
}

template <class Real>
void mirror(const Matrix<Real>& K, std::size_t begin, std::size_t end, std::size_t q,
            std::size_t first, std::size_t last) {
  require(begin <= first && first <= last && last <= end && end <= q);
  require(q <= K.shape(0) && q <= K.shape(1));
  const nb::gil_scoped_release release;
  widemargin::mirror(K.data(), begin, end, q, first, last, K.shape(1));
}

// What works on the block of a working set.
template <class Real, class Stored>
void bind_block(nb::module_& m) {
  m.def("pair_steps", &pair_steps<Real, Stored>, "K"_a.noconvert(), "q"_a, "diagonal"_a.noconvert(),
        "ridge"_a.noconvert(), "shift"_a, "lower"_a.noconvert(), "upper"_a.noconvert(),
        "x"_a.noconvert(), "F"_a.noconvert(), "room"_a.noconvert(), "sums"_a, "stop"_a, "most"_a,
        "kink"_a.noconvert().none() = nb::none(), "simd"_a = -1);
  m.def("mirror", &mirror<Stored>, "K"_a.noconvert(), "begin"_a, "end"_a, "q"_a, "first"_a,
        "last"_a);
}

template <class Real>
void bind_simplex(nb::module_& m) {
  m.def("simplex_steps", &simplex_steps<Real>, "rows"_a.noconvert(), "place"_a.noconvert(),
        "y"_a.noconvert(), "diagonal"_a.noconvert(), "ridge"_a.noconvert(), "half"_a.noconvert(),
        "shift"_a, "alpha"_a.noconvert(), "g"_a.noconvert(), "numbers"_a.noconvert(), "kind"_a,
        "second_order"_a, "ball"_a, "stop"_a, "most"_a, "given"_a = -1, "simd"_a = -1);
  m.def("sampled_steps", &sampled_steps<Real>, "rows"_a.noconvert(), "place"_a.noconvert(),
        "y"_a.noconvert(), "diagonal"_a.noconvert(), "ridge"_a.noconvert(), "half"_a.noconvert(),
        "shift"_a, "alpha"_a.noconvert(), "g"_a.noconvert(), "numbers"_a.noconvert(), "kind"_a,
        "second_order"_a, "ball"_a, "stop"_a, "most"_a, "given"_a, "order"_a.noconvert(), "split"_a,
        "state"_a.noconvert(), "room"_a.noconvert(), "tries"_a, "simd"_a = -1);
}

}  // namespace

void bind_steps(nb::module_& m) {
  m.attr("BLOCK_STEPS") = widemargin::kRoundedSteps;
  m.def("draw_rows", &draw_rows, "order"_a.noconvert(), "split"_a, "state"_a.noconvert(),
        "weight"_a.noconvert(), "out"_a.noconvert());
  m.def("violations", &violations, "F"_a.noconvert(), "c"_a.noconvert(), "lower"_a.noconvert(),
        "upper"_a.noconvert(), "rise"_a.noconvert(), "fall"_a.noconvert(),
        "current"_a.noconvert().none() = nb::none());
  bind_block<float, float>(m);
  bind_block<double, double>(m);
  bind_block<float, std::int16_t>(m);
  bind_simplex<float>(m);
  bind_simplex<double>(m);
}
