#include "newton_batch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "crew.hpp"
#include "sweeps.hpp"

namespace widemargin {
namespace {

// The constants of augmented_lagrangian.py, where they are explained.
constexpr double kStartPenalty = 0.5, kMostPenalty = 1e12;
constexpr double kSettled = 0.05, kBalanced = 0.1;
constexpr int kMostSteps = 12, kFewSteps = 3, kManySteps = 6;
constexpr double kRaise = 5.0, kLower = 1.5, kLowerMuch = 5.0;
// And of newton.py.
constexpr double kFreeCurvature = 1e-9;
constexpr int kMostUpdates = 20;
// Of tol: what rounding may add to the gap comes on top.
constexpr double kShare = 0.9;
// Steps within tol that are taken for more digits, which rounding may not allow: of 271 problems
// of 30 to 128 rows 25 % reached 1e-12, after a median of 7 and in nine of ten cases after 49.
constexpr int kFurther = 40;
// What conjugate gradients leave of a residual, and how many entries all of them may read: 0.3 s.
// (3,000 rows of ten ones, C = 100: 26 ms, where `active_set` takes 120 and 1,000 steps are too
// few.)
constexpr double kForcing = 0.1, kMostEntries = 2e8;
// Where fewer rows than this share of the columns have a loss, each of these is another direction
// in which Newton's steps go astray: 20 to 190 of them, where others take 3 to 10. (0.85 and 0.9
// take as long: benchmarks/core/steps_or_newton.py --squared.)
constexpr double kFewRows = 0.85;
// Pivots are at least this share of the diagonal.
constexpr double kPivot = 1e-15;

using Numbers = std::vector<double>;

double dot(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Solve H x = b in place, H by its upper triangle, which becomes a factor.
void solve(Numbers& H, Numbers& b) {
  const std::size_t k = b.size();
  for (std::size_t p = 0; p < k; ++p) {
    double* row = &H[p * k];
    const double root = std::sqrt(row[p]);
    for (std::size_t j = p; j < k; ++j) row[j] /= root;
    for (std::size_t i = p + 1; i < k; ++i) {
      double* below = &H[i * k];
      const double factor = row[i], least = kPivot * below[i];
      for (std::size_t j = i; j < k; ++j) below[j] -= factor * row[j];
      below[i] = std::max(below[i], least);
    }
  }
  for (std::size_t p = 0; p < k; ++p) {
    b[p] /= H[p * k + p];
    for (std::size_t j = p + 1; j < k; ++j) b[j] -= H[p * k + j] * b[p];
  }
  for (std::size_t p = k; p-- > 0;) {
    for (std::size_t j = p + 1; j < k; ++j) b[p] -= H[p * k + j] * b[j];
    b[p] /= H[p * k + p];
  }
}

// v, the scores f = A v, or f + 1 - q where q is given, alpha by them, and the sums of a sweep.
struct Point {
  Numbers v, f, alpha, residual;
  double primal, dual, value, imbalance;

  Point(std::size_t places, std::size_t k) : v(k), f(places), alpha(places), residual(k) {}
  double gap() const { return primal - dual; }
};

// A'DA of the rows of X whose D is not zero, whatever their labels.
void add_gram(const FusedDense<double>& X, const Numbers& d, std::size_t order, Numbers& gram) {
  Numbers change(order * order);
  DenseGram<double, FusedDense<double>> matrix(X);
  matrix.add(0, d.size(), d.data());
  matrix.write(change.data(), order);
  for (std::size_t i = 0; i < gram.size(); ++i) gram[i] += change[i];
}

template <class Rows, class Problems>
class Newton {
  static constexpr bool kIsDense = std::is_same_v<Rows, FusedDense<double>>;

 public:
  // `whole` is X'CX of dense rows X and the C of problem 0, with a column of ones for an intercept.
  Newton(const Compiled& code, const Problems& all, const Rows& X, const Numbers& whole,
         std::size_t t)
      : all_(all),
        m_(all.m),
        k_(all.order()),
        copies_(all.copies()),
        C_(all.weights(t)),
        q_(all.q.empty() ? all.q : all.q.subspan(2 * t * m_, 2 * m_)),
        X_(X),
        A_{X_, all.y.subspan(t * m_, m_), all.intercept > 0, code.steps},
        here_(copies_ * m_, k_),
        there_(copies_ * m_, k_),
        multiplier_(all.squared ? 0 : copies_ * m_),
        d_(m_),
        R_(k_, 1.0),
        gram_(whole),
        counted_(m_, 1),
        s_(all.squared ? 2.0 : kStartPenalty) {
    if (all.intercept == 1) {
      R_.back() = 0;
      least_ = kFreeCurvature * std::accumulate(C_.begin(), C_.end(), 0.0);
    }
    if constexpr (kIsDense) {
      std::ranges::transform(C_, all.weights(0), d_.begin(), std::minus{});
      if (std::ranges::any_of(d_, [](double change) { return change != 0; }))
        add_gram(X_, d_, k_, gram_);
    }
  }

  // Steps until the gap is small enough, or those of `few` if few rows have a loss then; how many.
  std::int64_t run(const LinearLimits& limits, double digits, std::int64_t few, Crew& crew,
                   bool is_caller) {
    evaluate(there_, true);
    std::swap(here_, there_);
    std::int64_t steps = 0;
    int further = 0;
    while (steps < limits.most && has_time() && !is_good(digits) && !crew.stopped(is_caller)) {
      if (is_good(limits.tol) && further++ == kFurther) break;
      ++steps;
      if (!all_.squared && is_settled())
        renew();
      else
        step();
      if (!std::isfinite(here_.primal) || (few > 0 && steps >= few && is_astray())) break;
    }
    return steps;
  }

  void write(std::span<double> alpha, std::span<double> v) {
    if (copies_ == 2) cancel();
    if (all_.intercept == 1) balance();
    const bool good = std::isfinite(here_.primal);
    for (std::size_t i = 0; i < alpha.size(); ++i) alpha[i] = good ? here_.alpha[i] : 0.0;
    for (std::size_t j = 0; j < k_; ++j) v[j] = good ? here_.v[j] : 0.0;
  }

 private:
  bool is_good(double tol) const { return here_.gap() <= kShare * tol * std::abs(here_.primal); }

  // Whether nothing is proved yet, and fewer rows have a loss than there are columns.
  bool is_astray() const {
    if (is_good(1.0)) return false;
    const auto rows = std::ranges::count_if(here_.alpha, [](double a) { return a > 0; });
    return static_cast<double>(rows) < kFewRows * static_cast<double>(k_);
  }

  bool is_settled() const {
    if (since_ >= kMostSteps) return true;
    double half = 0;
    for (std::size_t j = 0; j < k_; ++j)
      half += 0.5 * R_[j] * here_.residual[j] * here_.residual[j];
    return half <= kSettled * here_.gap() && here_.imbalance <= kBalanced * here_.gap();
  }

  // The first or the second copy of the rows.
  PenaltyRows rows(const Point& point, std::size_t copy = 0) const {
    const std::size_t from = copy * m_;
    return {C_.data(), all_.squared ? nullptr : &multiplier_[from], &point.f[from], s_, m_};
  }

  // Scores, unless v is empty, alpha, and their sums.
  PenaltySums sweep(Point& point, std::span<const double> v, Numbers& g) const {
    if (copies_ == 1)
      return penalty_sweep(A_, v, rows(point),
                           {point.f.data(), point.alpha.data(), g, nullptr, nullptr, nullptr})
          .first;
    PenaltySums total{};
    A_.sweep<1>(v, g, [&](std::size_t begin, std::size_t end, const double* z, auto& u) {
      if (!v.empty()) reach(point, begin, end, z);
      for (std::size_t copy = 0; copy < 2; ++copy) {
        const std::size_t from = copy * m_;
        double* alpha = &point.alpha[from];
        const auto sums = A_.steps.penalty(rows(point, copy).part(begin, end), alpha + begin);
        total.losses += sums.losses;
        total.linear += sums.linear;
        total.value += sums.value;
        for (std::size_t i = begin; i < end; ++i) total.linear += (q_[from + i] - 1) * alpha[i];
      }
      for (std::size_t i = begin; i < end; ++i)
        u[0][i - begin] = point.alpha[i] - point.alpha[m_ + i];
    });
    return total;
  }

  // What stands for the scores of both copies where their margins are to reach q, not 1.
  void reach(Point& point, std::size_t begin, std::size_t end, const double* z) const {
    for (std::size_t i = begin; i < end; ++i) {
      point.f[i] = z[i - begin] + (1 - q_[i]);
      point.f[m_ + i] = (1 - q_[m_ + i]) - z[i - begin];
    }
  }

  // What the point is at its v; with the scores that it has, if they are not asked for.
  void evaluate(Point& point, bool scores) {
    Numbers g(k_);
    const std::span<const double> v =
        scores ? std::span<const double>(point.v) : std::span<const double>();
    const auto sums = sweep(point, v, g);
    double ridge = 0, square = 0;
    for (std::size_t j = 0; j < k_; ++j) {
      ridge += 0.5 * R_[j] * point.v[j] * point.v[j];
      square += 0.5 * R_[j] * g[j] * g[j];
      point.residual[j] = R_[j] * point.v[j] - g[j];
    }
    point.imbalance = 0;
    if (all_.intercept == 1)
      point.imbalance = 3 * std::max(1.0, std::abs(point.v.back())) * std::abs(g.back());
    point.primal = ridge + sums.losses;
    point.dual = sums.linear - square - point.imbalance;
    point.value = ridge + sums.value;
  }

  // Alpha as multipliers, and a penalty by how hard the last one was.
  void renew() {
    multiplier_ = here_.alpha;
    if (since_ >= kMostSteps)
      s_ /= kLowerMuch;
    else if (since_ > kManySteps)
      s_ /= kLower;
    else if (since_ <= kFewSteps)
      s_ = std::min(kRaise * s_, kMostPenalty);
    since_ = 0;
    evaluate(here_, false);
  }

  // Newton's direction: the solution of (R + s A'DA) dv = residual.
  Numbers direction() {
    Numbers dv = here_.residual;
    if constexpr (kIsDense) {
      update();
      Numbers H = gram_;
      for (auto& entry : H) entry *= s_;
      for (std::size_t j = 0; j < k_; ++j) H[j * k_ + j] += ridge(j);
      solve(H, dv);
      return dv;
    } else {
      return by_conjugate_gradients();
    }
  }

  bool has_time() const {
    if constexpr (kIsDense)
      return true;
    else
      return gradients_ * static_cast<double>(X_.X.data.size()) < kMostEntries;
  }

  double ridge(std::size_t j) const { return R_[j] > 0 ? R_[j] : s_ * least_; }

  // The same until this share of the residual is left, with the diagonal in front: what is left of
  // the gap has its square.
  Numbers by_conjugate_gradients() {
    for (std::size_t i = 0; i < m_; ++i)
      d_[i] = s_ * C_[i] * (counts(i) + (copies_ == 2 && counts(m_ + i)));
    Numbers x(k_), r = here_.residual, z(k_), p(k_), Hp(k_);
    const Numbers diagonal = diagonal_of_matrix();
    const double enough = kForcing * kForcing * dot(r, r);
    double before = 0;
    for (; has_time() && dot(r, r) > enough; ++gradients_) {
      for (std::size_t j = 0; j < k_; ++j) z[j] = r[j] / diagonal[j];
      const double now = dot(r, z), share = before > 0 ? now / before : 0;
      for (std::size_t j = 0; j < k_; ++j) {
        p[j] = z[j] + share * p[j];
        Hp[j] = ridge(j) * p[j];
      }
      csr_weighted_product(X_.X, std::span<const double>(d_), std::span<const double>(p),
                           std::span<double>(Hp), X_.n);
      const double way = now / dot(p, Hp);
      for (std::size_t j = 0; j < k_; ++j) x[j] += way * p[j], r[j] -= way * Hp[j];
      before = now;
    }
    return x;
  }

  Numbers diagonal_of_matrix() const {
    Numbers found(k_);
    for (std::size_t i = 0; i < m_; ++i) {
      if (d_[i] == 0) continue;
      for (auto q = X_.X.indptr[i]; q < X_.X.indptr[i + 1]; ++q) {
        const double entry = static_cast<double>(X_.X.data[q]);
        found[static_cast<std::size_t>(X_.X.indices[q])] += d_[i] * entry * entry;
      }
      if (k_ > X_.n) found[X_.n] += d_[i];
    }
    for (std::size_t j = 0; j < k_; ++j) found[j] += ridge(j);
    return found;
  }

  // A step along that, with a line search where the whole one is too long.
  void step() {
    ++since_;
    const Numbers dv = direction();
    const double slope = -dot(here_.residual, dv);
    for (std::size_t j = 0; j < k_; ++j) there_.v[j] = here_.v[j] - dv[j];
    evaluate(there_, true);
    const double change = there_.value - here_.value;
    const bool flat = std::abs(change) <= 1e-6 * std::abs(here_.value);
    const double next = -dot(there_.residual, dv);
    if (!(change <= 1e-4 * slope || (flat && next <= -0.5 * slope))) {
      const double t = search(dv, -slope);
      for (std::size_t j = 0; j < k_; ++j) there_.v[j] = here_.v[j] - t * dv[j];
      for (std::size_t i = 0; i < here_.f.size(); ++i)
        there_.f[i] = here_.f[i] + t * (there_.f[i] - here_.f[i]);
      evaluate(there_, false);
    }
    std::swap(here_, there_);
  }

  // Where the slope along v - t dv is small beside what it is at 0; the scores at t = 1 are known.
  double search(const Numbers& dv, double scale) const {
    double first = 0, second = 0;
    for (std::size_t j = 0; j < k_; ++j) {
      first -= R_[j] * here_.v[j] * dv[j];
      second += R_[j] * dv[j] * dv[j];
    }
    double t = 0.5, low = 0, high = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 60; ++i) {
      auto sums = A_.steps.slope(rows(here_), there_.f.data(), t);
      if (copies_ == 2) {
        const auto others = A_.steps.slope(rows(here_, 1), &there_.f[m_], t);
        sums.first += others.first;
        sums.second += others.second;
      }
      const double slope = sums.first + first + t * second;
      if (std::abs(slope) <= 0.1 * scale) break;
      (slope > 0 ? high : low) = t;
      t -= slope / (sums.second + second);
      if (!(t > low && t < high)) t = std::isfinite(high) ? 0.5 * (low + high) : 2 * low;
    }
    return t;
  }

  // A'DA of the point, by the rows whose D has changed or by all, which are fewer.
  void update() {
    std::size_t active = 0, changed = 0;
    for (std::size_t i = 0; i < m_; ++i) {
      const int inside = counts(i) + (copies_ == 2 && counts(m_ + i)), before = counted_[i];
      active += inside > 0, changed += inside != before;
      d_[i] = C_[i] * (inside - before);
      counted_[i] = static_cast<char>(inside);
    }
    if (changed == 0) return;
    if (changed >= active || ++updates_ > kMostUpdates) {
      updates_ = 0;
      std::fill(gram_.begin(), gram_.end(), 0.0);
      for (std::size_t i = 0; i < m_; ++i) d_[i] = counted_[i] * C_[i];
    }
    add_gram(X_, d_, k_, gram_);
  }

  // Whether alpha is strictly between its bounds.
  bool counts(std::size_t place) const {
    const double a = here_.alpha[place];
    return a > 0 && (all_.squared || a < C_[place % m_]);
  }

  // What both copies of a row have of alpha only costs: their sums are the same without it.
  void cancel() {
    for (std::size_t i = 0; i < m_; ++i) {
      const double both = std::min(here_.alpha[i], here_.alpha[m_ + i]);
      here_.alpha[i] -= both;
      here_.alpha[m_ + i] -= both;
    }
  }

  bool is_positive(std::size_t place) const { return (A_.y[place % m_] > 0) == (place < m_); }

  // The heavier class gives up what the other one lacks.
  void balance() {
    double sums[2] = {0, 0};
    for (std::size_t i = 0; i < here_.alpha.size(); ++i) sums[is_positive(i)] += here_.alpha[i];
    const bool heavy = sums[1] > sums[0];
    if (sums[heavy] == sums[!heavy]) return;
    const double share = sums[!heavy] / sums[heavy];
    for (std::size_t i = 0; i < here_.alpha.size(); ++i)
      if (is_positive(i) == heavy) here_.alpha[i] *= share;
  }

  const Problems& all_;
  std::size_t m_, k_, copies_;
  std::span<const double> C_, q_;
  const Rows& X_;
  Block A_;
  Point here_, there_;
  Numbers multiplier_, d_, R_, gram_;
  std::vector<char> counted_;  // how often the matrix counts a row
  double s_, least_ = 0;
  int since_ = 0, updates_ = 0, gradients_ = 0;
};

}  // namespace

namespace {

template <class Rows, class Problems>
void run(const Compiled& code, const Problems& problems, const Rows& X, const Numbers& whole,
         const LinearLimits& limits, double digits, std::int64_t few,
         std::span<std::int64_t> steps) {
  const std::size_t k = problems.order(), places = problems.copies() * problems.m;
  Crew crew(limits.threads, limits.stop);
  crew.run(problems.size(), [&](std::size_t t, bool is_caller) {
    Newton<Rows, Problems> one(code, problems, X, whole, t);
    steps[t] = one.run(limits, std::min(limits.tol, digits), few, crew, is_caller);
    one.write(problems.alpha.subspan(t * places, places), problems.v.subspan(t * k, k));
  });
}

}  // namespace

void newton_batch(const Compiled& code, const LinearProblems<DenseView<double>>& problems,
                  const LinearLimits& limits, double digits, std::int64_t few,
                  std::span<std::int64_t> steps) {
  const std::size_t k = problems.order();
  Numbers whole(k * k);
  const FusedDense<double> X{problems.X, code.dense.f64};
  const auto C = problems.weights(0);
  add_gram(X, Numbers(C.begin(), C.end()), k, whole);
  run(code, problems, X, whole, limits, digits, few, steps);
}

void newton_batch(const Compiled& code, const LinearProblems<Csr>& problems,
                  const LinearLimits& limits, double digits, std::int64_t few,
                  std::span<std::int64_t> steps) {
  problems.X.visit([&]<class Real, class Index>(const CsrView<Real, Index>& view) {
    const FusedCsr<Real, Index> X{view, problems.X.n};
    run(code, problems, X, {}, limits, digits, few, steps);
  });
}

}  // namespace widemargin
