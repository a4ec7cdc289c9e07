#include "descent_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "coordinate_descent.hpp"
#include "crew.hpp"
#include "intercept.hpp"

namespace widemargin {
namespace {

// The constants of descent.py, where they are explained.
constexpr double kMarkFactor = 1.5, kMarkStep = 0.5, kLargestStep = 50, kQuickMark = 40;
constexpr double kShare = 1.4, kCurvedShare = 1.1, kLeastShare = 0.3, kMostShare = 3, kLeft = 0.8;
constexpr double kWrong = 10, kWeight = 0.3, kReach = 4;
// Of tol: what rounding may add to the gap comes on top.
constexpr double kOfTol = 0.99;
// Entries that are visited between two looks at the clock, about 5 ms, and the cost of a visit in
// entries besides its own.
constexpr double kSlice = 1 << 22, kVisit = 64;
// Vectors that passes of `Objective` go over have a multiple of so many numbers.
constexpr std::size_t kLanes = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Numbers = std::vector<double>;

double square(std::span<const double> v) {
  return std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
}

double sum(std::span<const double> v) { return std::accumulate(v.begin(), v.end(), 0.0); }

// One problem, whose rows are a class each (Coordinate) or have a target (TubeCoordinate).
template <class Row, class Real, class Index>
class OneDescent {
  using Rows = CsrRows<Real, Index>;
  static constexpr bool kIsTube = std::is_same_v<Row, TubeCoordinate>;

 public:
  // `squares` are those of the rows.
  OneDescent(Simd level, const LinearProblems<Csr>& all, const CsrView<Real, Index>& X,
             const Numbers& squares, double tol, std::size_t t)
      : all_(all),
        X_(X),
        descend_(descend<Rows, Row>(level)),
        passes_(compiled(level).objective),
        m_(all.m),
        y_(all.y.subspan(t * m_, m_)),
        weights_(all.weights(t)),
        rows_(m_),
        order_(m_),
        v_(all.order()),
        tol_(kOfTol * tol),
        share_(all.squared ? kCurvedShare : kShare) {
    const auto count = static_cast<double>(m_);
    if (all.intercept == 2) state_.weight = 1;
    if (is_free()) state_.weight = std::max(kWeight * sum(squares) / count, kReach / sum(weights_));
    double kappa = 0;
    for (std::size_t i = 0; i < m_; ++i) {
      Row& row = rows_[i];
      row.upper = all.squared ? kInfinity : weights_[i];
      row.diagonal = all.squared ? 0.5 / weights_[i] : 0.0;
      const double size = squares[i] + state_.weight + row.diagonal;
      if constexpr (kIsTube) {
        const double *first = &all.q[2 * t * m_], *second = first + m_;
        row.step = 1 / size;
        row.target = 0.5 * y_[i] * (first[i] - second[i]);
        row.kink = -0.5 * (first[i] + second[i]);
      } else {
        row.step = y_[i] / size;
      }
      kappa += weights_[i] * (squares[i] + state_.weight) / count;
    }
    lay_out();
    begin_at(all.alpha.subspan(t * all.copies() * m_), all.v.subspan(t * v_.size()));
    std::iota(order_.begin(), order_.end(), 0);
    state_.size = state_.active = static_cast<std::int64_t>(m_);
    state_.upper = state_.smallest = state_.gap = kInfinity;
    state_.lower = state_.largest = -kInfinity;
    // What the first epoch leaves of P(0), unless it begins elsewhere.
    state_.fall = is_free() || square(v_) > 0 ? 1.0 : std::min(1.0, kappa);
    state_.goal = share_ * tol_ * passes_.losses(objective(), C_.data(), 0).value;
  }

  // Visits until the gap is small enough; how many.
  std::int64_t run(std::int64_t most, std::uint64_t seed, Crew& crew, bool is_caller) {
    state_.random = seed;
    const auto count = static_cast<double>(m_);
    const double entries = static_cast<double>(X_.data.size()) / count + kVisit;
    const auto slice = std::max<std::int64_t>(1, static_cast<std::int64_t>(kSlice / entries));
    const CsrRows<Real, Index> rows{X_.indptr.data(), X_.indices.data(), X_.data.data(), all_.X.n};
    const Variables<Row> variables{rows_.data(), order_.data(), static_cast<std::int64_t>(m_),
                                   v_.data(), all_.intercept > 0};
    double mark = 1;
    while (state_.visits < most && !crew.stopped(is_caller)) {
      const auto until = static_cast<std::int64_t>(mark * count);
      if (!descend_(rows, variables, state_, slice, until, true)) continue;
      if (is_promising() || (state_.visits >= until && mark >= kQuickMark)) {
        if (certify() || is_hopeless(most)) return state_.visits;
      } else if (state_.visits >= until && is_free()) {
        v_.back() += state_.weight * excess();
      }
      while (mark * count <= static_cast<double>(state_.visits))
        mark = std::min(kMarkFactor * mark + kMarkStep, mark + kLargestStep);
    }
    certify();
    return state_.visits;
  }

  // The answer of the last certificate.
  void write(std::span<double> alpha, std::span<double> v) const {
    std::copy(w_.begin(), w_.end(), v.begin());
    for (std::size_t i = 0; i < m_; ++i) {
      const double own = y_[i] * x_[i];
      alpha[i] = std::max(own, 0.0);
      if constexpr (kIsTube) alpha[m_ + i] = std::max(-own, 0.0);
    }
  }

 private:
  bool is_free() const { return all_.intercept == 1; }
  double label(std::size_t i) const { return kIsTube ? 1.0 : y_[i]; }

  void begin_at(std::span<const double> alpha, std::span<const double> v) {
    for (std::size_t i = 0; i < m_; ++i) {
      Row& row = rows_[i];
      row.alpha = std::clamp(alpha[i], 0.0, row.upper);
      if constexpr (kIsTube)
        row.alpha = y_[i] * (row.alpha - std::clamp(alpha[m_ + i], 0.0, row.upper));
    }
    follow();
    if (all_.intercept == 2) v_.back() = excess();
    if (is_free()) v_.back() = v[v_.size() - 1];
  }

  // The weights by alpha, and y alpha of each row.
  void follow() {
    for (std::size_t i = 0; i < m_; ++i) x_[i] = label(i) * rows_[i].alpha;
    std::fill(v_.begin(), v_.end(), 0.0);
    X_.rmatvec(0, m_, x_.data(), v_.data());
  }

  // What passes over all rows need, which does not change.
  void lay_out() {
    const std::size_t width = (m_ + kLanes - 1) / kLanes * kLanes;
    for (auto* numbers : {&x_, &f_, &target_, &q_, &signs_, &lower_, &upper_, &C_})
      numbers->resize(width);
    std::ranges::copy(weights_, C_.begin());
    if (all_.squared) ridge_.resize(width);
    for (std::size_t i = 0; i < m_; ++i) {
      if constexpr (kIsTube) {
        target_[i] = rows_[i].target, q_[i] = rows_[i].kink;
      } else {
        target_[i] = signs_[i] = y_[i], q_[i] = 1;
      }
      const double upper = rows_[i].upper;
      lower_[i] = kIsTube || y_[i] < 0 ? -upper : 0;
      upper_[i] = kIsTube || y_[i] > 0 ? upper : 0;
      if (all_.squared) ridge_[i] = static_cast<float>(rows_[i].diagonal);
    }
  }

  Objective objective() const {
    return {x_.data(),     f_.data(),     target_.data(), q_.data(),
            signs_.data(), lower_.data(), upper_.data(),  all_.squared ? ridge_.data() : nullptr,
            x_.size(),     all_.squared,  kIsTube};
  }

  // y'alpha
  double excess() const {
    double total = 0;
    for (std::size_t i = 0; i < m_; ++i) total += label(i) * rows_[i].alpha;
    return total;
  }

  // What D is without 1/2 |v|^2.
  double reached() const {
    double total = 0;
    for (const Row& row : rows_) {
      total += row.alpha * (1 - 0.5 * row.diagonal * row.alpha);
      if constexpr (kIsTube) total += row.alpha * (row.target - 1) - row.kink * std::abs(row.alpha);
    }
    return total;
  }

  // Half the square of the weights of v, with an intercept that is penalized.
  double ridge(std::span<const double> v) const {
    return 0.5 * square(is_free() ? v.first(all_.X.n) : v);
  }

  double promised() const { return state_.gap * state_.fall; }

  // Whether the gap by the gradients is at its goal, by what P is now.
  bool is_promising() {
    const double dual = reached() - ridge(v_), gap = promised();
    state_.goal = std::min(state_.goal, share_ * tol_ * (dual + gap));
    return gap <= state_.goal;
  }

  // Whether the gap is small enough: of v with the best intercept, and alpha made feasible. What
  // rounding has left of v beside alpha is undone.
  bool certify() {
    X_.matvec(0, m_, v_.data(), f_.data());
    w_ = v_;
    if (is_free()) balance();
    follow();
    const Objective of = objective();
    if (is_free()) w_.back() = Intercept(passes_, of, {C_.data(), 0.0}, breaks_).find(true);
    if (is_free()) v_.back() = w_.back();
    if (all_.intercept == 2) v_.back() = excess();
    const double b = all_.intercept > 0 ? w_.back() : 0.0;
    const double primal = ridge(w_) + passes_.losses(of, C_.data(), b).value;
    const double gap = primal - (reached() - ridge(v_)), goal = tol_ * primal;
    if (!(gap > goal)) return true;
    steer(gap, goal);
    return false;
  }

  // Whether the loss is squared and the gap will not be small enough in time, by what the last
  // epoch has left of it. Of the hinge it says too little.
  bool is_hopeless(std::int64_t most) const {
    if (!all_.squared || state_.fall >= 1) return false;
    const double epochs = std::log(state_.goal / state_.gap) / std::log(state_.fall);
    const double left = epochs * static_cast<double>(state_.active);
    return static_cast<double>(state_.visits) + left > static_cast<double>(most);
  }

  // Set the gap at which the next certificate is worth its cost.
  void steer(double gap, double goal) {
    if (gap > std::max(goal, kWrong * promised())) {
      state_.goal = share_ * goal;
      state_.first = kInfinity;
      return;
    }
    if (gap < kInfinity && promised() < kInfinity)
      share_ = std::clamp(promised() / gap, kLeastShare, kMostShare);
    state_.goal = std::min(share_ * goal, kLeft * promised());
  }

  // The heavier class gives up what the other one lacks: its free variables, if they suffice.
  void balance() {
    double sums[2] = {}, free[2] = {};
    for (std::size_t i = 0; i < m_; ++i) {
      const double x = label(i) * rows_[i].alpha, size = std::abs(x);
      sums[x > 0] += size;
      if (size < rows_[i].upper) free[x > 0] += size;
    }
    const bool heavy = sums[1] > sums[0];
    const double excess = sums[heavy] - sums[!heavy];
    if (!(excess > 0)) return;
    const bool only_free = free[heavy] > excess;
    const double factor = 1 - excess / (only_free ? free[heavy] : sums[heavy]);
    for (std::size_t i = 0; i < m_; ++i) {
      Row& row = rows_[i];
      const bool own = (label(i) * row.alpha > 0) == heavy;
      if (own && !(only_free && std::abs(row.alpha) >= row.upper)) row.alpha *= factor;
    }
  }

  const LinearProblems<Csr>& all_;
  const CsrView<Real, Index>& X_;
  const Descend<Rows, Row> descend_;
  const ObjectiveTable passes_;
  const std::size_t m_;
  std::span<const double> y_, weights_;
  std::vector<Row> rows_;
  std::vector<std::int64_t> order_;
  Numbers v_, w_;  // of the descent, and of the last certificate
  DescentState state_{};
  const double tol_;
  double share_;  // of the gap that is asked for, which gradients may promise
  // As an `Objective` has them.
  Numbers x_, f_, target_, q_, signs_, lower_, upper_, C_;
  std::vector<float> ridge_;
  std::vector<std::pair<double, double>> breaks_;
};

}  // namespace

void descent_batch(Simd level, const LinearProblems<Csr>& problems, const LinearLimits& limits,
                   std::uint64_t seed, std::span<std::int64_t> visits) {
  problems.X.visit([&]<class Real, class Index>(const CsrView<Real, Index>& X) {
    const std::size_t m = problems.m, k = problems.order(), places = problems.copies() * m;
    Numbers squares(m), sums(problems.X.n);
    csr_row_squares(X, std::span<double>(sums), std::span<double>(squares));
    Crew crew(limits.threads, limits.stop);
    const auto solve = [&]<class Row>(std::type_identity<Row>) {
      crew.run(problems.size(), [&](std::size_t t, bool is_caller) {
        OneDescent<Row, Real, Index> one(level, problems, X, squares, limits.tol, t);
        visits[t] = one.run(limits.most, seed, crew, is_caller);
        one.write(problems.alpha.subspan(t * places, places), problems.v.subspan(t * k, k));
      });
    };
    if (problems.q.empty())
      solve(std::type_identity<Coordinate>());
    else
      solve(std::type_identity<TubeCoordinate>());
  });
}

}  // namespace widemargin
