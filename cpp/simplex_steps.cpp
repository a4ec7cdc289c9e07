// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "simplex_steps.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

constexpr double kInfinity = __builtin_huge_val();
// Samples of a block: its extremes are found while it is in the first-level cache.
constexpr std::size_t kBlock = 256;
// Scales between these leave alpha and g in range.
constexpr double kSmall = 1e-100, kLarge = 1e100;
// Roundings of a sum that was just computed, and what one of them is of a number at most.
constexpr double kFresh = 8, kUnit = 0x1p-52;

inline double least(double a, double b) { return a < b ? a : b; }
inline double size(double a) { return a < 0 ? -a : a; }

// A sample that G = scale * g - h / 2 is least of, and one of those with alpha > 0 that it is
// largest of.
struct Extremes {
  std::size_t low, high;
  double least, most;
};

// g += y (c1 row1 + c2 row2 + c0) in one pass, and the extremes of what comes out.
template <typename Real, int rows>
Extremes update(const Simplex<Real>& p, const Real* row1, double c1, const Real* row2, double c2) {
  const double c0 = (c1 + (rows > 1 ? c2 : 0.0)) * p.shift, scale = p.scale;
  const double *y = p.y, *half = p.half, *alpha = p.alpha;
  double* kept = p.g;
  Extremes found{0, 0, kInfinity, -kInfinity};
  std::size_t low = 0, high = 0;
  for (std::size_t first = 0; first < p.m; first += kBlock) {
    const std::size_t last = first + kBlock < p.m ? first + kBlock : p.m;
    double lowest = kInfinity, highest = -kInfinity;
#pragma omp simd reduction(min : lowest) reduction(max : highest)
    for (std::size_t l = first; l < last; ++l) {
      double g = kept[l];
      if constexpr (rows > 0) {
        double change = c0 + c1 * static_cast<double>(row1[l]);
        if constexpr (rows > 1) change += c2 * static_cast<double>(row2[l]);
        g += y[l] * change;
        kept[l] = g;
      }
      const double G = scale * g - half[l];
      lowest = G < lowest ? G : lowest;
      const double held = alpha[l] > 0 ? G : -kInfinity;
      highest = held > highest ? held : highest;
    }
    if (lowest < found.least) found.least = lowest, low = first;
    if (highest > found.most) found.most = highest, high = first;
  }
  // Where they are, in their blocks: as in `partner`, of numbers that are computed again.
  found.low = low, found.high = high;
  double seen = kInfinity;
  for (std::size_t l = low; l < p.m && l < low + kBlock; ++l) {
    const double G = scale * p.g[l] - p.half[l];
    if (G < seen) seen = G, found.low = l;
  }
  seen = -kInfinity;
  for (std::size_t l = high; l < p.m && l < high + kBlock; ++l) {
    const double G = scale * p.g[l] - p.half[l];
    if (p.alpha[l] > 0 && G > seen) seen = G, found.high = l;
  }
  return found;
}

// A step along a direction with slope -2 s and curvature 2 q: R falls by `gain`. There is none
// where s may be rounding, at most `noise`: such steps would go to and fro without end.
struct Step {
  double length, gain;
};

inline Step step(double s, double noise, double q, double longest) {
  if (!(s > noise)) return {0, 0};
  const double length = q > 0 ? least(s / q, longest) : longest;
  return {length, length * (2 * s - length * q)};
}

template <typename Real>
struct Run {
  Simplex<Real>& p;

  const Real* row(std::size_t i) const {
    return p.place[i] < 0 ? nullptr : p.rows + static_cast<std::size_t>(p.place[i]) * p.stride;
  }
  double gradient(std::size_t i) const { return p.scale * p.g[i] - p.half[i]; }
  double weight(std::size_t i) const { return p.scale * p.alpha[i]; }
  // What rounding may do to the gradient of a sample, and to its mean by weight.
  double noise(std::size_t i) const {
    return (kFresh + p.updates) * kUnit * (size(p.scale * p.g[i]) + size(p.half[i]));
  }
  double noise_of_mean() const {
    return (kFresh + p.updates) * kUnit * (size(p.square) + size(p.linear));
  }
  double entry(const Real* row_i, std::size_t i, std::size_t j) const {
    return p.y[i] * p.y[j] * (static_cast<double>(row_i[j]) + p.shift);
  }

  // What a pair step from j to i gains; negative where there is none.
  double gain(std::size_t i, double Gi, const Real* row_i, std::size_t j) const {
    const double s = gradient(j) - Gi, off = noise(i) + noise(j);
    const double q = p.diagonal[i] + p.diagonal[j] - 2 * entry(row_i, i, j);
    const double gains = step(s, off, q, weight(j)).gain;
    return p.alpha[j] > 0 && s > off ? gains : -1.0;
  }

  // The j from which a pair step to i gains most; i where none gains. In its block it is the best
  // of gains that are computed again: they need not equal those of the vectors, whose products are
  // fused with other sums.
  std::size_t partner(std::size_t i, const Real* row_i) const {
    const double Gi = gradient(i);
    double best = -1;
    std::size_t block = p.m;
    for (std::size_t first = 0; first < p.m; first += kBlock) {
      const std::size_t last = first + kBlock < p.m ? first + kBlock : p.m;
      double largest = -1;
#pragma omp simd reduction(max : largest)
      for (std::size_t j = first; j < last; ++j) {
        const double gains = gain(i, Gi, row_i, j);
        largest = gains > largest ? gains : largest;
      }
      if (largest > best) best = largest, block = first;
    }
    std::size_t found = i;
    double seen = -1;
    for (std::size_t j = block; j < p.m && j < block + kBlock; ++j) {
      const double gains = gain(i, Gi, row_i, j);
      if (gains > seen) seen = gains, found = j;
    }
    return found;
  }

  // a += length (e_i - a); a negative length goes away from i, which may end at 0.
  Extremes toward(std::size_t i, const Real* row_i, double length, bool drops = false) {
    const double gi = p.scale * p.g[i], old = p.square;
    p.square = (1 - length) * (1 - length) * old + 2 * length * (1 - length) * gi +
               length * length * p.diagonal[i];
    p.linear = (1 - length) * p.linear + 2 * length * p.half[i];
    if (length >= 1) {
      for (std::size_t l = 0; l < p.m; ++l) p.alpha[l] = p.g[l] = 0;
      p.scale = 1;
    } else {
      p.scale *= 1 - length;
    }
    const double change = length / p.scale;
    p.alpha[i] = drops ? 0.0 : p.alpha[i] + change;
    p.g[i] += change * p.ridge[i];
    if (p.scale < kSmall || p.scale > kLarge) fold();
    return update<Real, 1>(p, row_i, length / p.scale * p.y[i], nullptr, 0);
  }

  // a += length (e_i - e_j).
  Extremes across(std::size_t i, std::size_t j, const Real* row_i, const Real* row_j, double q,
                  double length) {
    p.square += 2 * length * (p.scale * (p.g[i] - p.g[j])) + length * length * q;
    p.linear += 2 * length * (p.half[i] - p.half[j]);
    const double change = length / p.scale;
    p.alpha[i] += change;
    p.alpha[j] = length >= weight(j) ? 0.0 : p.alpha[j] - change;
    p.g[i] += change * p.ridge[i];
    p.g[j] -= change * p.ridge[j];
    return update<Real, 2>(p, row_i, change * p.y[i], row_j, -change * p.y[j]);
  }

  void fold() {
    for (std::size_t l = 0; l < p.m; ++l) p.alpha[l] *= p.scale, p.g[l] *= p.scale;
    p.scale = 1;
  }
};

// Whether the farthest sample, of that least G, is at most (1 + stop) radii away.
template <typename Real>
bool is_ball(const Simplex<Real>& p, double least, double stop) {
  return p.square - 2 * least <= (1 + stop) * (1 + stop) * (p.linear - p.square);
}

// Whether a is near enough: (1 + stop) times the bound. `ball`: that of balls. Else
// R <= (1 + stop) m^2 / R, where m^2 / R is a lower bound of R.
template <typename Real>
bool enough(const Simplex<Real>& p, const Extremes& found, bool ball, double stop) {
  if (ball) return is_ball(p, found.least, stop);
  return found.least > 0 && p.square * p.square <= (1 + stop) * found.least * found.least;
}

enum class Made { step, nothing, missing };

// One step toward i or another one, with the extremes before and after; a row that is `missing`.
template <typename Real>
Made make(Run<Real>& run, SimplexStep kind, bool second_order, std::size_t i, Extremes& found,
          std::int64_t& drops, std::int64_t& missing) {
  Simplex<Real>& p = run.p;
  std::size_t j = found.high;
  const double Gi = run.gradient(i);
  const double mean = p.square - 0.5 * p.linear;
  const double gi = p.scale * p.g[i], gj = p.scale * p.g[j];
  const double off = run.noise_of_mean();
  const Step near = step(mean - Gi, off + run.noise(i), p.square - 2 * gi + p.diagonal[i], 1);
  if (kind == SimplexStep::toward ||
      (kind == SimplexStep::away && mean - Gi >= found.most - mean)) {
    const Real* row = run.row(i);
    if (row == nullptr) return missing = static_cast<std::int64_t>(i), Made::missing;
    if (!(near.gain > 0)) return Made::nothing;
    found = run.toward(i, row, near.length);
  } else if (kind == SimplexStep::away) {
    const Real* row = run.row(j);
    if (row == nullptr) return missing = static_cast<std::int64_t>(j), Made::missing;
    const double a = run.weight(j);
    const double longest = a < 1 ? a / (1 - a) : kInfinity;
    const Step far =
        step(found.most - mean, off + run.noise(j), p.square - 2 * gj + p.diagonal[j], longest);
    if (!(far.gain > 0)) return Made::nothing;
    const bool is_drop = far.length >= longest;
    drops += is_drop;
    found = run.toward(j, row, -far.length, is_drop);
  } else {
    const Real* row_i = run.row(i);
    if (row_i == nullptr) return missing = static_cast<std::int64_t>(i), Made::missing;
    if (second_order) j = run.partner(i, row_i);
    if (j == i) return Made::nothing;
    const double s = run.gradient(j) - Gi;
    const double q = p.diagonal[i] + p.diagonal[j] - 2 * run.entry(row_i, i, j);
    const Step pair = step(s, run.noise(i) + run.noise(j), q, run.weight(j));
    if (kind == SimplexStep::swap && near.gain > pair.gain) {
      found = run.toward(i, row_i, near.length);
    } else {
      const Real* row_j = run.row(j);
      if (row_j == nullptr) return missing = static_cast<std::int64_t>(j), Made::missing;
      if (!(pair.gain > 0)) return Made::nothing;
      drops += pair.length >= run.weight(j);
      found = run.across(i, j, row_i, row_j, q, pair.length);
    }
  }
  ++p.updates;
  return Made::step;
}

template <typename Real>
SimplexSteps simplex_steps(Simplex<Real>& p, SimplexStep kind, bool second_order, bool ball,
                           double stop, std::int64_t limit, std::int64_t given) {
  Run<Real> run{p};
  SimplexSteps done{0, 0, -1, 0};
  Extremes found = update<Real, 0>(p, nullptr, 0, nullptr, 0);
  while (true) {
    done.least = found.least;
    if (done.steps >= limit || enough(p, found, ball, stop)) return done;
    const std::size_t i = given < 0 ? found.low : static_cast<std::size_t>(given);
    given = -1;
    if (make(run, kind, second_order, i, found, done.drops, done.missing) != Made::step)
      return done;
    ++done.steps;
  }
}

// The row of the least gradient, of a sample and where classes take turns of those with weight.
template <typename Real>
std::size_t best_drawn(const Run<Real>& run, const Sample& sample) {
  const Simplex<Real>& p = run.p;
  const std::size_t count = draw_rows(sample.draws, p.alpha, sample.size, sample.room);
  double least = kInfinity;
  std::size_t found = 0;  // where no gradient is a number below infinity
  const auto look = [&](std::size_t i) {
    const double G = run.gradient(i);
    if (G < least) least = G, found = i;
  };
  for (std::size_t k = 0; k < count; ++k) look(static_cast<std::size_t>(sample.room[k]));
  if (sample.draws.split > 0)
    for (std::size_t i = 0; i < p.m; ++i)
      if (p.alpha[i] > 0) look(i);
  return found;
}

template <typename Real>
SampledSteps sampled_steps(Simplex<Real>& p, SimplexStep kind, bool second_order, bool ball,
                           double stop, std::int64_t limit, std::int64_t given,
                           const Sample& sample) {
  Run<Real> run{p};
  SampledSteps done{0, 0, 0, -1, given, false};
  Extremes found = update<Real, 0>(p, nullptr, 0, nullptr, 0);
  for (; done.looks < limit; ++done.looks, given = -1) {
    if (given < 0) {
      std::int64_t drawn = 0;
      do {
        done.chosen = static_cast<std::int64_t>(best_drawn(run, sample));
        done.inside = ball && is_ball(p, run.gradient(static_cast<std::size_t>(done.chosen)), stop);
      } while (done.inside && ++drawn < sample.tries);
      if (done.inside) return done;
    }
    const auto i = static_cast<std::size_t>(done.chosen);
    const Made made = make(run, kind, second_order, i, found, done.drops, done.missing);
    if (made == Made::missing) return done;
    done.steps += made == Made::step;
  }
  return done;
}

}  // namespace

SimplexTable simplex_table() {
  return {&simplex_steps<float>, &simplex_steps<double>, &sampled_steps<float>,
          &sampled_steps<double>};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
