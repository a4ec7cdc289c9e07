// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "pair_steps.hpp"

#include <type_traits>

#include "pair_rows.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

template <class V>
inline V larger(V a, V b) {
  return a > b ? a : b;
}
template <class V>
[[gnu::always_inline]] inline auto largest_of(V all_lanes) {
  typedef std::remove_cvref_t<decltype(all_lanes[0])> Lane;
  typedef Lane Some __attribute__((vector_size(16)));
  constexpr std::size_t count = sizeof(V) / sizeof(Some), lanes = sizeof(Some) / sizeof(Lane);
  // Of a copy: GCC keeps vectors whose parts are taken in memory, in all loops over them.
  Some most[count];
  std::memcpy(most, &all_lanes, sizeof(V));
  for (std::size_t step = count / 2; step > 0; step /= 2)
    for (std::size_t k = 0; k < step; ++k) most[k] = larger(most[k], most[k + step]);
  const Lane a = larger<Lane>(most[0][0], most[0][lanes / 2]);
  if constexpr (lanes == 2) return a;
  return larger<Lane>(a, larger<Lane>(most[0][1], most[0][lanes - 1]));
}

// The first place of the largest number.
template <typename Real>
struct Largest {
  typedef std::remove_cvref_t<decltype(IntVector<Real>{}[0])> Place;
  Vector<Real> value;
  IntVector<Real> place, now;

  explicit Largest(Real least) : value(all<Real>(least)), place(lanes()), now(lanes()) {}
  void offer(Vector<Real> x) {
    const auto larger = x > value;
    value = larger ? x : value;
    place = larger ? now : place;
    now += static_cast<int>(kLanes<Real>);
  }
  // What is offered next has the places from `begin` on.
  void go_to(std::size_t begin) { now = lanes() + static_cast<Place>(begin); }
  // 0, 1, ...: a constant, where lanes that are set one by one took a tenth of a step.
  static IntVector<Real> lanes() {
    IntVector<Real> v{};
    for (std::size_t i = 0; i < kLanes<Real>; ++i) v[i] = static_cast<Place>(i);
    return v;
  }
  [[gnu::always_inline]] std::size_t best(Real& of) const {
    of = largest_of(value);
    // Minus the places: those of other lanes are the least.
    constexpr Place least = static_cast<Place>(std::uint64_t{1} << (8 * sizeof(Place) - 1));
    const IntVector<Real> at = value == all<Real>(of) ? -place : IntVector<Real>{} + least;
    return static_cast<std::size_t>(-largest_of(at));
  }
};

// Smallest curvature that a step divides by, alone and as a share of the diagonal.
constexpr double kCurvature = 1e-12;

// A negative curvature of so large a share of the diagonal is no rounding of kernel values: that is
// some units in the last place (6e-8 and 1e-16), a thousand times less in float32.
template <typename Real>
constexpr double kNegative = sizeof(Real) == 4 ? 1e-4 : 1e-8;

// Smallest curvature that a step divides by, where values are rounded: what that may make of it.
template <template <typename> class Rows>
constexpr double kLeastCurvature = kCurvature;
template <>
constexpr double kLeastCurvature<RoundedRows> = 0.5 * kRoundedUnit;

// Which of two groups whose sums are given a part of the rows belongs to, where each has one part
// of two; -1: to both, or that is not known.
template <class Problem>
inline int group_of_part(const Problem&, std::size_t) {
  return -1;
}
template <typename Real>
inline int group_of_part(const SmallProblem<Real, MadeRows>& of, std::size_t part) {
  if (of.sums < 2 || of.K.count != 2) return -1;
  bool has[2] = {false, false};
  for (std::size_t i = of.K.begin[part]; i < of.K.begin[part + 1]; ++i)
    if (of.lower[i] < of.upper[i]) has[of.upper[i] > 0 ? 0 : 1] = true;
  return has[0] && has[1] ? -1 : has[1] ? 1 : 0;
}
template <typename Real, template <typename> class Rows, bool kinked>
class Steps {
  static constexpr Real kInfinity = static_cast<Real>(__builtin_inf());
  static constexpr Real unit = kUnit<Real, Rows>, twice = 2 * unit;

 public:
  explicit Steps(const SmallProblem<Real, Rows>& problem) : p_(problem) {
    const std::size_t groups = p_.sums > 1 ? 2 : 1;
    for (std::size_t i = 0; i < 2 * groups * p_.width; ++i) p_.room[i] = -kInfinity;
    std::size_t free = 0;
    for (std::size_t i = 0; i < p_.q; ++i) {
      look(i);
      const double x = p_.x[i];
      free += p_.lower[i] < x && x < p_.upper[i] && !(kinked && x == 0);
    }
    if (const bool few = free < Relaxation::kManyFree; !p_.relaxation->goes_on)
      p_.relaxation->longest = few ? Relaxation::kLongestOfFew : Relaxation::kLongest;
    for (std::size_t i = 0; i < p_.q; ++i)
      if (const Real size = absolute(p_.diagonal[i]); size > largest_) largest_ = size;
    for (std::size_t i = 1; i < p_.q; ++i) is_flat_ = is_flat_ && p_.diagonal[i] == p_.diagonal[0];
    const int some[] = {group_of_part(p_, 0), group_of_part(p_, 1)};
    if (some[0] + some[1] == 1) group_[0] = some[0], group_[1] = some[1];
  }

  // Pairs (i, j) of one group: x_i rises and x_j falls by as much.
  template <int groups>
  PairSteps pairs(double stop, std::int64_t most) {
    PairSteps done{0, 0, 0.0};
    Real rise[groups];
    std::size_t first[groups];
    for (int g = 0; g < groups; ++g) first[g] = highest(up(g), rise[g]);
    Vector<Real> falls[2] = {all<Real>(-kInfinity), all<Real>(-kInfinity)};
    if constexpr (groups > 1) {
      for (std::size_t s = 0; s < p_.width; s += kLanes<Real>)
        for (int g = 0; g < groups; ++g)
          falls[g] = larger(load(p_.F + s) + load(down(g) + s), falls[g]);
    }
    for (;; ++done.steps) {
      int g = 0;  // the group that violates more: the other needs no partner, and no row of K
      if constexpr (groups > 1) {
        const double other = static_cast<double>(largest_of(falls[1])) + rise[1];
        g = other > static_cast<double>(largest_of(falls[0])) + rise[0] ? 1 : 0;
      }
      const std::size_t i = first[g], j = partner(i, g, rise[g], done.violation);
      if (!(done.violation > stop) || done.steps == most || is_over(p_.K)) return done;
      double curvature =
          static_cast<double>(p_.diagonal[i]) + p_.diagonal[j] - 2.0 * value(p_.K, i, j);
      done.negative += curvature < -kNegative<Real> * size(i, j);
      const double least = kLeastCurvature<Rows> * size(i, j);
      if (!(curvature > least)) curvature = least;
      double t = (static_cast<double>(p_.F[j]) - p_.F[i]) / curvature;
      if constexpr (kinked)
        t = (static_cast<double>(p_.F[j]) + down(0)[j] + up(0)[i] - p_.F[i]) / curvature;
      go(i, 1), go(j, -1);
      t *= factor();
      const double most = top(i), least_j = bottom(j);
      if (const double room = most - p_.x[i]; t > room) t = room;
      if (const double room = p_.x[j] - least_j; t > room) t = room;
      p_.x[i] = t == most - p_.x[i] ? most : p_.x[i] + t;
      p_.x[j] = t == p_.x[j] - least_j ? least_j : p_.x[j] - t;
      look(i);
      look(j);
      const Real step = static_cast<Real>(t), by = step * unit;
      p_.F[i] += p_.ridge[i] * step;
      p_.F[j] -= p_.ridge[j] * step;
      Largest<Real> largest(-kInfinity), second(-kInfinity);
      Real *const gradient = p_.F, *const can = up(0), *const other = groups > 1 ? up(1) : can;
      const Real *const down0 = down(0), *const down1 = groups > 1 ? down(1) : down0;
      falls[0] = falls[1] = all<Real>(-kInfinity);
      with_parts(p_.K, i, j, [&](auto a, auto b, std::size_t s, std::size_t end, std::size_t part) {
        if constexpr (groups > 1) {
          if (const int own = group_[part]; own >= 0) {
            // The other one has nothing that can move here.
            Largest<Real> most = own == 0 ? largest : second;
            Vector<Real> fall = falls[own];
            most.go_to(s);
            const Real *const up_own = up(own), *const down_own = down(own);
            for (; s < end; s += kLanes<Real>, a += kLanes<Real>, b += kLanes<Real>) {
              const Vector<Real> F = load(gradient + s) + apart(a, b) * by;
              store(gradient + s, F);
              most.offer(load(up_own + s) - F);
              fall = larger(F + load(down_own + s), fall);
            }
            (own == 0 ? largest : second) = most;
            falls[own] = fall;
            return;
          }
        }
        Largest<Real> most = largest, next = second;
        most.go_to(s), next.go_to(s);
        Vector<Real> fall0 = falls[0], fall1 = falls[1];
        for (; s < end; s += kLanes<Real>, a += kLanes<Real>, b += kLanes<Real>) {
          ahead(b);
          const Vector<Real> F = load(gradient + s) + apart(a, b) * by;
          store(gradient + s, F);
          most.offer(load(can + s) - F);
          if constexpr (groups > 1) {
            next.offer(load(other + s) - F);
            fall0 = larger(F + load(down0 + s), fall0);
            fall1 = larger(F + load(down1 + s), fall1);
          }
        }
        largest = most;
        if constexpr (groups > 1) second = next, falls[0] = fall0, falls[1] = fall1;
      });
      first[0] = largest.best(rise[0]);
      if constexpr (groups > 1) first[1] = second.best(rise[1]);
    }
  }

  // Without the equality: two variables at a time, each within its bounds.
  PairSteps free_pairs(double stop, std::int64_t most) {
    PairSteps done{0, 0, 0.0};
    for (;; ++done.steps) {
      const std::size_t i = steepest(done.violation);
      if (!(done.violation > stop) || done.steps == most || is_over(p_.K)) return done;
      const std::size_t j = companion(i);
      const Box a = box(i), b = box(j);
      const double c = value(p_.K, i, j) + static_cast<double>(p_.shift);
      done.negative +=
          p_.diagonal[i] < 0 || (i != j && c * c > (1 + kNegative<Real>)*a.curvature * b.curvature);
      double s = 0, t = 0;
      if (i == j)
        s = a.best(0, 0);
      else
        best_of_two(a, b, c, factor(), s, t);
      move(i, s);
      if (i != j) move(j, t);
      if (s != 0) go(i, s > 0 ? 1 : -1);
      if (t != 0) go(j, t > 0 ? 1 : -1);
      const Real u = static_cast<Real>(s), v = static_cast<Real>(t);
      const Real by_u = u * unit, by_v = v * unit;
      p_.F[i] += p_.ridge[i] * u;
      if (i != j) p_.F[j] += p_.ridge[j] * v;
      const Real shift = p_.shift * (u + v);
      with_parts(p_.K, i, j, [&](auto x, auto y, std::size_t k, std::size_t end, std::size_t) {
        for (; k < end; k += kLanes<Real>, x += kLanes<Real>, y += kLanes<Real>)
          store(p_.F + k, load(p_.F + k) + ((in_units(x) * by_u + in_units(y) * by_v) + shift));
      });
    }
  }

 private:
  // The factor of steps, and what it learns from one.
  double factor() const { return p_.relaxation->factor; }
  void go(std::size_t i, signed char way) const { p_.relaxation->go(i, way); }

  // How far x_i can rise or fall, to its bounds or to the kink.
  double top(std::size_t i) const { return kinked && p_.x[i] < 0 ? 0 : p_.upper[i]; }
  double bottom(std::size_t i) const { return kinked && p_.x[i] > 0 ? 0 : p_.lower[i]; }

  // Whether x_i can rise or fall: 0, or minus infinity, which is added to what is maximized. Where
  // there is a kink, what it adds to the slope that way.
  void look(std::size_t i) {
    if constexpr (kinked) {
      const Real kink = p_.kink[i];
      up(0)[i] = p_.x[i] < 0 ? kink : p_.x[i] < p_.upper[i] ? -kink : -kInfinity;
      down(0)[i] = p_.x[i] > 0 ? kink : p_.x[i] > p_.lower[i] ? -kink : -kInfinity;
      return;
    }
    const int group = p_.sums > 1 && !(p_.upper[i] > 0) ? 1 : 0;
    up(group)[i] = p_.x[i] < p_.upper[i] ? 0 : -kInfinity;
    down(group)[i] = p_.x[i] > p_.lower[i] ? 0 : -kInfinity;
  }
  Real* up(int group) const { return p_.room + 2 * static_cast<std::size_t>(group) * p_.width; }
  Real* down(int group) const { return up(group) + p_.width; }
  // What curvatures are compared with.
  double size(std::size_t i, std::size_t j) const {
    return static_cast<double>(absolute(p_.diagonal[i])) + absolute(p_.diagonal[j]);
  }
  static Real absolute(Real x) { return x < 0 ? -x : x; }

  // One variable: how far it can go, its gradient and curvature.
  struct Box {
    double lower, upper, slope, curvature;

    double within(double t) const { return t < lower ? lower : t > upper ? upper : t; }
    bool holds(double t) const { return t == within(t); }
    // Its best step where another one went `t`, coupled by `c`.
    double best(double c, double t) const { return within(-(slope + c * t) / curvature); }
  };

  Box box(std::size_t i) const {
    double curvature = p_.diagonal[i];
    if (!(curvature > kCurvature)) curvature = kCurvature;
    if constexpr (kinked) {  // the way that it moves alone
      const double rise = static_cast<double>(up(0)[i]) - p_.F[i];
      const double fall = static_cast<double>(down(0)[i]) + p_.F[i];
      if (rise > fall) return {0, top(i) - p_.x[i], -rise, curvature};
      return {bottom(i) - p_.x[i], 0, fall, curvature};
    }
    return {p_.lower[i] - p_.x[i], p_.upper[i] - p_.x[i], p_.F[i], curvature};
  }

  // The best steps s, t of two variables, and further by `more` where bounds are as far: inside of
  // both, or else on an edge.
  static void best_of_two(const Box& a, const Box& b, double c, double more, double& s, double& t) {
    const double det = a.curvature * b.curvature - c * c;
    if (det > kCurvature * a.curvature * b.curvature) {
      s = (c * b.slope - b.curvature * a.slope) / det;
      t = (c * a.slope - a.curvature * b.slope) / det;
      if (a.holds(s) && b.holds(t)) {
        if (a.holds(more * s) && b.holds(more * t)) s *= more, t *= more;
        return;
      }
    }
    double least = 0;
    s = t = 0;
    const auto offer = [&](double u, double v) {
      if (!(__builtin_isfinite(u) && __builtin_isfinite(v))) return;
      const double value = a.slope * u + b.slope * v + 0.5 * a.curvature * u * u +
                           0.5 * b.curvature * v * v + c * u * v;
      if (value < least) {
        least = value;
        s = u;
        t = v;
      }
    };
    const double us[] = {a.lower, a.upper, a.best(0, 0)}, vs[] = {b.lower, b.upper};
    for (const double u : us) offer(u, b.best(c, u));
    for (const double v : vs) offer(a.best(c, v), v);
  }

  void move(std::size_t i, double t) {
    const double x = p_.x[i], low = t < 0 ? bottom(i) : p_.lower[i];
    const double high = t > 0 ? top(i) : p_.upper[i];
    p_.x[i] = t == low - x ? low : t == high - x ? high : x + t;
    look(i);
  }

  std::size_t highest(const Real* can, Real& rise) const {
    Largest<Real> largest(-kInfinity);
    for (std::size_t s = 0; s < p_.width; s += kLanes<Real>)
      largest.offer(load(can + s) - load(p_.F + s));
    return largest.best(rise);
  }

  // The j that can fall whose step with i decreases the objective most; and the violation.
  std::size_t partner(std::size_t i, int group, Real rise, double& violation) const {
    const Real* const diagonal = p_.diagonal;
    if (is_flat_)
      return partner(i, group, rise, violation,
                     [both = all<Real>(diagonal[i] + diagonal[i])](std::size_t, auto twice_K) {
                       return both - twice_K;
                     });
    return partner(i, group, rise, violation, [=, own = diagonal[i]](std::size_t s, auto twice_K) {
      return (load(diagonal + s) - twice_K) + own;
    });
  }
  template <class Curvature>
  std::size_t partner(std::size_t i, int group, Real rise, double& violation,
                      const Curvature& curvature_at) const {
    Largest<Real> gain(0);
    Vector<Real> fall = all<Real>(-kInfinity);
    const Vector<Real> least =
        all<Real>((absolute(p_.diagonal[i]) + largest_) * static_cast<Real>(kLeastCurvature<Rows>));
    const Real *const gradient = p_.F, *const can = down(group);
    with_parts(p_.K, i, i, [&](auto a, auto, std::size_t s, std::size_t end, std::size_t part) {
      if (group_[part % 2] == 1 - group) return;
      Largest<Real> best = gain;
      best.go_to(s);
      Vector<Real> most = fall;
      for (; s < end; s += kLanes<Real>, a += kLanes<Real>) {
        ahead(a);
        const Vector<Real> F = load(gradient + s) + load(can + s);
        most = larger(F, most);
        const Vector<Real> slope = F + rise;
        const Vector<Real> curved = curvature_at(s, in_units(a) * twice);
        const Vector<Real> curvature = curved > least ? curved : least;
        const Vector<Real> good = slope * slope * about_inverse<Real>(curvature);
        best.offer(slope > all<Real>(0) ? good : all<Real>(0));
      }
      gain = best;
      fall = most;
    });
    Real ignored;
    violation = static_cast<double>(largest_of(fall)) + rise;
    return gain.best(ignored);
  }

  // The variable whose step decreases the objective most, and the largest violation.
  std::size_t steepest(double& violation) const {
    Largest<Real> gain(0), slope(0);
    const Vector<Real> tiny = all<Real>(static_cast<Real>(kCurvature));
    for (std::size_t s = 0; s < p_.width; s += kLanes<Real>) {
      const Vector<Real> F = load(p_.F + s);
      const Vector<Real> rise = load(up(0) + s) - F, fall = load(down(0) + s) + F;
      Vector<Real> size = rise > fall ? rise : fall;
      size = size > all<Real>(0) ? size : all<Real>(0);
      slope.offer(size);
      const Vector<Real> curved = load(p_.diagonal + s);
      gain.offer(size * size / (curved > tiny ? curved : tiny));
    }
    Real most, ignored;
    slope.best(most);
    violation = static_cast<double>(most);
    return gain.best(ignored);
  }

  // The variable that decreases the objective most together with i, bounds aside; or i itself.
  std::size_t companion(std::size_t i) const {
    Largest<Real> gain(0);
    const Real a = p_.diagonal[i];
    Real g = p_.F[i];
    if constexpr (kinked) {
      const Real rise = up(0)[i] - p_.F[i], fall = down(0)[i] + p_.F[i];
      g = rise > fall ? -rise : fall;
    }
    if (!(a > static_cast<Real>(kCurvature))) return i;
    const Vector<Real> zero = all<Real>(0);
    with_parts(p_.K, i, i, [&](auto row, auto, std::size_t s, std::size_t end, std::size_t) {
      gain.go_to(s);
      for (; s < end; s += kLanes<Real>, row += kLanes<Real>) {
        const Vector<Real> F = load(p_.F + s), c = in_units(row) * unit + p_.shift,
                           b = load(p_.diagonal + s);
        const Vector<Real> rise = load(up(0) + s) - F, fall = load(down(0) + s) + F;
        const Vector<Real> moves = rise > fall ? rise : fall;
        // What is left of its slope and curvature after the step of i alone.
        Vector<Real> own = F;
        if constexpr (kinked) own = rise > fall ? -rise : fall;
        const Vector<Real> slope = own - c * (g / a), left = b - c * c / a;
        const Vector<Real> good = slope * slope / (left > b * Real(1e-6) ? left : b);
        gain.offer(moves > zero ? good : zero);
      }
    });
    Real best;
    const std::size_t j = gain.best(best);
    return best > 0 ? j : i;
  }

  const SmallProblem<Real, Rows>& p_;
  Real largest_ = 0;     // entry of the diagonal
  bool is_flat_ = true;  // whether all are equal
  // Where two sums are given, and each of two parts of the rows has one of them: which one.
  int group_[2] = {-1, -1};
};

template <typename Real, template <typename> class Rows>
PairSteps descend(const SmallProblem<Real, Rows>& problem, double stop, std::int64_t most) {
  if (problem.kink != nullptr) {
    Steps<Real, Rows, true> steps(problem);
    return problem.sums == 0 ? steps.free_pairs(stop, most) : steps.template pairs<1>(stop, most);
  }
  Steps<Real, Rows, false> steps(problem);
  if (problem.sums == 0) return steps.free_pairs(stop, most);
  return problem.sums == 1 ? steps.template pairs<1>(stop, most)
                           : steps.template pairs<2>(stop, most);
}

PairSteps descend_coded(const SmallProblem<float, CodedRows>& problem, double stop,
                        std::int64_t most) {
  return Steps<float, CodedRows, false>(problem).pairs<1>(stop, most);
}

constexpr std::size_t kSide = 64;  // of a tile

// What rounded values of a tile are across its diagonal.
void turn(const std::int16_t* tile, std::size_t stride, std::int16_t* out) {
#if defined(__SSE2__)
  constexpr std::size_t side = 8;  // of a square in registers
  for (std::size_t top = 0; top < kSide; top += side)
    for (std::size_t left = 0; left < kSide; left += side) {
      __m128i a[side], b[side];
      for (std::size_t k = 0; k < side; ++k)
        std::memcpy(a + k, tile + (left + k) * kSide + top, sizeof(*a));
      for (std::size_t step = 0; step < 3; ++step) {
        for (std::size_t k = 0; k < side; k += 2) {
          b[k] = _mm_unpacklo_epi16(a[k / 2], a[k / 2 + side / 2]);
          b[k + 1] = _mm_unpackhi_epi16(a[k / 2], a[k / 2 + side / 2]);
        }
        for (std::size_t k = 0; k < side; ++k) a[k] = b[k];
      }
      for (std::size_t k = 0; k < side; ++k)
        std::memcpy(out + (top + k) * stride + left, a + k, sizeof(*a));
    }
#else
  for (std::size_t i = 0; i < kSide; ++i)
    for (std::size_t j = 0; j < kSide; ++j) out[i * stride + j] = tile[j * kSide + i];
#endif
}

void round(const float* tile, std::size_t rows, std::size_t stride, std::int16_t* out,
           std::int16_t* across) {
  std::int16_t rounded[kSide * kSide] = {};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t s = 0; s < kSide; s += kLanes<float>) {
      const Vector<float> scaled = load(tile + r * kSide + s) * (1 / kRoundedUnit) + 0.5f;
      const Shorts v =
          __builtin_convertvector(__builtin_convertvector(scaled, IntVector<float>), Shorts);
      std::memcpy(out + r * stride + s, &v, sizeof(v));
      std::memcpy(rounded + r * kSide + s, &v, sizeof(v));
    }
  if (across != nullptr) turn(rounded, stride, across);
}

}  // namespace

PairTable pair_table() {
  return {&descend<float, StoredRows>,       &descend<double, StoredRows>,
          &descend<float, MadeRows>,         &descend<float, RoundedRows>,
          kPicks ? &descend_coded : nullptr, &round};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
