#include "batch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "batch_sums.hpp"
#include "blocks.hpp"
#include "chain.hpp"
#include "crew.hpp"
#include "intercept.hpp"
#include "kept_parts.hpp"
#include "lane_sums.hpp"
#include "narrow.hpp"
#include "objective.hpp"
#include "problem_vectors.hpp"

namespace widemargin {
namespace {

// Columns from which rows of K are made together where that is worth it.
constexpr std::size_t kWide = 24;
// Steps between two looks at the gap. SVCCV on 5,000 rows of pendigits, pairs of 1,000, takes 0.93
// of the time in this engine with 250 as with 125, and 1.1 and 1.3 times with 62 and 33.
constexpr std::int64_t kSteps = 250, kStepsExactly = 100;
// The same where the memory for rows of K comes to its end.
constexpr std::int64_t kFewSteps = 10;
// Rows of problems that are solved to the last digits of float64, for as much time again; where
// values are given, or are products of rows, for less; the violation at which that ends, and the
// steps a row.
constexpr std::size_t kExactly = 64, kExactlyCheap = 128;
constexpr double kDigits = 1e-13;
constexpr std::int64_t kStepsOfRow = 100;
// The violation at which steps end first, as a share of tol, and how it falls if the gap is larger.
constexpr double kViolation = 0.3, kFall = 0.25, kLeast = 1e-7;
// The same with scores in float64. These are made where float32 is too rough: where what it may add
// to the gap leaves less than kLeastGoal of it, and where steps in float32 end above it; of
// problems of so many rows, for rows with alpha > 0, a loss, or kClose less than one. With C =
// 1,000 the pairs of letter, pendigits and digits take 0.11, 0.13 and 0.3 times as long to a gap of
// 1e-4 as where working sets went on after float32, to 1e-5 0.09, 0.1 and 0.45 times.
constexpr double kLeastRefined = 1e-11, kClose = 0.05, kLeastGoal = 0.3;
constexpr std::size_t kMostRefined = 4000;
// What scores in float32 are off by, as a share of |x|. Of 4,440 problems with C of 1 to 1,000 and
// gaps of 1e-3 and 1e-4, 7 were not solved with 1e-8, 2 with 2e-8; this makes scores in float64 for
// more of them, which takes usps with C = 1,000 twice as long to 1e-3.
constexpr double kNoise = 1e-8;
// Where this noise is below this share of tol, scores that working sets have added up as variables
// moved are not made again: 4,000 rows take 0.9 times as long.
constexpr double kNegligible = 0.01;

// Steps of classifiers with the hinge end at margins of 1 and this share of tol more: then scores
// that float32, or a step that is not made, leaves a little off are no losses. The gap has at most
// twice as much of it, as sum alpha is at most 2 P. With C = 1,000 the pairs of digits and
// pendigits take 0.6 of the steps; of 2,250 problems of a path of pendigits with a large gamma 0
// are not solved, not 260. (0.1 and 0.3: as many steps, up to a fifth more with C = 1,000.)
constexpr double kMargin = 0.2;
// The most that scores in float32 are off by, as a share of |x|: 0.1 to 0.6 of it were seen.
constexpr double kFarthest = 1e-6;

// Steps a row in which the gap falls to this share, or else the gradient is made again, whose
// digits many steps have used up; so often, then it is given up: float32 can do no more. Never
// takes up to 1.3 times as long on eight problems of 1,200 to 4,000 rows, once or four times 0.95
// to 1.17 times.
constexpr std::size_t kPatientSteps = 5;
constexpr double kProgress = 0.9;
constexpr int kRefreshes = 2;
constexpr std::size_t kLeastPatience = 2000;
// The same in float64, which is given up then. 30 problems of 20 to 100 rows, of products of
// columns of 1e-4 to 1e4, that it does not solve to 1e-4 take 2.7 s, not 4.3 s, with any number
// from 10 to 100; 30 of 200 rows with C = 1,000, not solved to 1e-6, 1.4 s, not 2.1 s. It solves
// 141 of 177 others; 100 gives up 4 of these, 30 would 14, which working sets solve in as long.
constexpr std::size_t kPatientStepsExactly = 100;

// Where steps did not suffice for a problem, the one that follows it has this part of them.
constexpr std::int64_t kFewerSteps = 5;
// Rows from which settled variables are left out, from so many parts of the steps on; and the share
// of the others that is worth it: 4,000 rows of a9a with C = 100 take 110 ms with 0.5, 90 with 0.4,
// 240 with 0.7; with 0.3 float32 does not solve them, with 0.4 not all chains of 1,100 rows. The
// path of SVCCV on 5,000 rows takes 1.6 s with 0.3, 0.5 and 0.7, not 2.5 s. With 0.7, eight
// problems of 1,200 to 4,000 rows took 0.95 to 1.4 times as long from 500 or 2,000 rows on, and
// 0.94 to 1.2 times from the first part on.
constexpr std::size_t kLong = 1000;
constexpr std::int64_t kFirst = 2;
constexpr double kNarrower = 0.5;
// How often the gap of a long problem may be larger than its gradient said: float32 can do no more.
constexpr int kMistaken = 2;
// One problem alone of few columns is solved by working sets, which keep no rows of K, from so many
// rows on: there it takes as long to make a value as to read a kept one. Regressions take many
// steps a row: 4,000 rows with C = 1 and 10 take 0.8 and 0.6 times the processor time that they
// took with kept rows, 2,000 rows 1.1 and 0.7 times. Classifiers of 15,000 rows take 0.4 times, of
// 5,000 to 8,000 rows 1.1 to 1.4 times, in less memory, and threads have work.
constexpr std::size_t kBlockRows = 4001, kBlockRowsTwice = 2000, kBlockColumns = 32;
// Variables of a working set: at first, at most, and as a share of those that are free. (512 to
// 2,048 at first, and shares of 1.1 to 1.5: 0.9 to 1.1 times as long on 4,000 and 8,000 rows.)
constexpr std::size_t kFirstBlock = 1024, kLargestBlock = 4096, kLeastBlock = 256;
constexpr double kFreeRoom = 1.25;
// Steps a variable of one working set: of 4,000 rows with C = 1,000 one whose rounded values were
// not positive semidefinite made 580, and the objective worse.
constexpr std::int64_t kStepsOfSet = 100;
// The share of the violation to which a working set is solved; or so much of what the gap has to
// fall by, which falls with it. (0.2 and 0.3: as long, with more sets.)
constexpr double kInner = 0.1, kMostInner = 0.5, kAim = 0.8;
// What a step within caches takes, as a share of one over as many kept rows; and steps a row in
// which the gap has to fall.
constexpr double kBlockStep = 0.02;
constexpr std::size_t kPatientBlocks = 100;
// Of tol: what rounding may add to the gap comes on top.
constexpr double kShare = 0.9;
// Of the gap that is asked for: above it with rough intercepts, no better ones are looked for.
constexpr double kFar = 5;
// The objective at zero, times this, is the least that a gap is relative to.
constexpr double kFloor = 1e-10;
// Where the optimum may be zero, gaps are relative to this share of what the certificate has them
// relative to: it counts rounding, too.
constexpr double kSure = 0.25;
// Where the optimum may be zero: without a margin so far, and at a small share of the largest
// objective there is, pair steps are given up that take it no faster than this factor at a time:
// where there is no margin they hardly move.
constexpr double kQuick = 0.7;

// Multiplications between two looks whether it is over, a millisecond or so; and what a value takes
// beside those of its columns.
constexpr std::size_t kLook = 1 << 23, kOfValue = 8;

// One problem, from its start to its end. Positions count the samples with what pads their groups.
class Problem : ProblemVectors {
 public:
  Problem(KeptParts& kept, const BatchCode& code, const BatchSamples& samples,
          const BatchProblems& problems, std::size_t t, Narrow& narrow, ProblemVectors& vectors,
          Crew& crew, bool is_caller)
      : ProblemVectors(std::move(vectors)),
        vectors_(vectors),
        kept_(kept),
        kernels_(code.kernels),
        pairs_(code.pairs),
        passes_(code.passes),
        samples_(samples),
        all_(problems),
        narrow_(narrow),
        crew_(crew),
        is_caller_(is_caller) {
    at_ = problems.begin_of(t);
    m_ = problems.size_of(t);
    const bool equality = problems.intercept == 1;
    const double mass = problems.mass[t];
    has_mass_ = !std::isnan(mass);
    sums_ = has_mass_ ? (equality ? 2 : 1) : (equality ? 1 : 0);
    shift_ = problems.intercept == 2 ? 1.0 : 0.0;
    if (!are_for(problems, t)) take_rows(t);
    of_ = static_cast<std::int64_t>(t), lines_.clear();
    if (is_twofold_) m_ /= 2;
    width_ = begin_.back();
    together_ = samples.strips.n >= kWide ? kTogether : 1;
    C_.resize(width_), x_.resize(width_), f_.assign(width_, 0.0);
    each_group([&](std::size_t p, std::size_t i, std::size_t, std::size_t count) {
      std::copy_n(&problems.C[i], count, &C_[p]);
      std::copy_n(&problems.c[i], count, &x_[p]);
    });
    if (is_twofold_) take_halves();
    take_bounds();
    near_ = target_;
    may_curve_ =
        !samples.is_given() && (samples.form.kind == KernelKind::sigmoid ||
                                (samples.form.kind == KernelKind::poly && samples.form.coef0 < 0));
    is_plain_ = !has_mass_ && !is_twofold_ &&
                count_of(width_, [&](std::size_t p) { return (C_[p] != 0) & (q_[p] != 1); }) == 0;
    double largest = 0;
    for (std::size_t p = 0; !is_plain_ && p < width_; ++p)
      if (C_[p] != 0)
        largest = std::max(largest, std::abs(q_[p]) + (is_twofold_ ? std::abs(target_[p]) : 0.0));
    unit_ = is_plain_ || !(largest > 0 || has_mass_) ? 1.0 : largest;
    may_be_zero_ = has_mass_ && largest == 0;
    if (may_be_zero_) largest_ = mass * mass * *std::ranges::max_element(diagonal_);
    zero_ = may_be_zero_ ? kSure * largest_ : passes_.losses(objective(), C_.data(), 0.0).value;
    if (sums_ == 1)
      lines_.push_back({C_.data(), has_mass_ ? mass : 0.0});
    else if (sums_ > 1)
      split(mass);
  }

  ~Problem() { vectors_ = std::move(static_cast<ProblemVectors&>(*this)); }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  void run(const BatchLimits& limits, const std::optional<Scored>& scored, BatchResult& out) {
    const std::size_t q = width_;
    if (is_plain_ && !all_.squared) {
      margin_ = 1 + kMargin * limits.tol;
      for (std::size_t p = 0; p < width_; ++p) near_[p] = margin_ * target_[p];
    }
    SmallProblem<float, MadeRows> problem{{parts_.data(), begin_.data(), id_.data(), still_.data(),
                                           id_.size(), this, &Problem::make, &is_over_},
                                          q,
                                          width_,
                                          diagonal_.data(),
                                          ridge_.data(),
                                          static_cast<float>(shift_),
                                          lower_.data(),
                                          upper_.data(),
                                          x_.data(),
                                          F_.data(),
                                          room_.data(),
                                          sums_,
                                          is_twofold_ ? kink_.data() : nullptr};
    const double share = kShare * limits.tol;
    double goal = share;
    BatchEnd end = BatchEnd::waiting;
    std::int64_t steps = 0, negative = 0;
    // All kernel values of a problem, in each thread.
    const std::size_t whole = limits.threads * m_ * padded() * sizeof(double);
    begin_blocks(limits);
    const std::size_t needed = limits.exactly ? whole : start_bytes();
    if (bytes(limits) + needed > limits.bytes) {
      restart();
      end = BatchEnd::no_room;
    } else if (limits.exactly) {
      end = run_exactly(limits, steps, negative);
    } else if (scored && is_within_bounds_) {
      take_known(*scored);
    } else {
      known_.start(width_);
      refresh();
    }
    if (!(unit_ > 0)) unit_ = 1;  // no score differs from zero
    double stop = kViolation * limits.tol * unit_;
    const std::int64_t chunk = std::max<std::int64_t>(kSteps, static_cast<std::int64_t>(m_ / 8));
    int mistaken = 0;
    double spent = 0;  // the same in steps of all variables
    const bool may_narrow = !blocks_ && is_plain_ && sums_ == 1 && !all_.squared && m_ >= kLong;
    const bool may_refine = !limits.exactly && (blocks_ || m_ <= kMostRefined);
    narrow_.turn_off();
    while (end == BatchEnd::waiting) {
      const bool was_narrow = narrow_.is_on();
      const double each = share_of_step();
      const double left = std::ceil((static_cast<double>(limits.most) - spent) / each);
      const auto some = static_cast<std::int64_t>(left),
                 few = std::min(within(limits, chunk), some);
      problem.made = steps;
      const auto done = blocks_      ? block_steps(problem, stop, share, some)
                        : was_narrow ? narrow_steps(stop, few, steps)
                                     : pairs_.made32(problem, stop, few);
      steps += done.steps, negative += done.negative;
      spent += each * static_cast<double>(done.steps);
      violation_ = done.violation;
      const bool settled = !(done.violation > stop) || done.steps == 0;
      if (!blocks_) take_scores();
      if (is_over_) end = BatchEnd::stopped;
      if (is_over_) break;
      const double before = dual_;
      if (settled || (may_be_near(goal) && gap() <= goal)) {
        if (blocks_ && !is_refined_ && is_as_bounded() && noise() < kNegligible * limits.tol)
          take_gradient();
        else
          refresh();
        narrow_.turn_off();
        double now = gap();
        if (may_refine && !is_refined_) {
          goal = std::min(share, limits.tol - noise());
          if (goal < kLeastGoal * limits.tol) now = begin_to_refine(steps), goal = share;
        }
        if (now <= goal)
          end = BatchEnd::solved;
        else if (settled && !was_narrow &&
                 (stop *= kFall) < (is_refined_ ? kLeastRefined : kLeast) * unit_)
          end = BatchEnd::stuck;
        else if (!settled && (may_narrow || blocks_) && ++mistaken == kMistaken)
          end = BatchEnd::stuck;
      }
      if (blocks_ && end == BatchEnd::waiting) {
        if (dual_ < before) blocks_->round_no_more();  // rounding did that
        const double off = noise();
        if (!is_refined_ && limits.tol - off < kLeastGoal * limits.tol && rough_gap_ < kFar * off)
          (void)begin_to_refine(steps), goal = share;
      }
      const bool is_over = spent >= static_cast<double>(limits.most);
      const bool is_last =
          is_over || (negative > 0 && !may_curve_) || is_hopeless(before, limits.hopeless) ||
          (!may_curve_ && blocks_ && blocks_->is_for_factor(rough_gap_, limits, steps));
      const bool unsolved = blocks_ && done.steps >= most_of_set();
      if (end == BatchEnd::waiting && (is_last || !goes_on(steps, unsolved))) end = BatchEnd::stuck;
      if (end == BatchEnd::stuck && may_refine && !is_refined_ && !is_last) {
        end = begin_to_refine(steps) <= share ? BatchEnd::solved : BatchEnd::waiting;
        goal = share;
        stop = kViolation * limits.tol * unit_;
        mistaken = 0;
      }
      if (end != BatchEnd::waiting) break;
      if (bytes(limits) > limits.bytes) end = BatchEnd::no_room;
      if (crew_.stopped(is_caller_)) end = BatchEnd::stopped;
      // Where those that are left are settled, the others have their turn.
      const bool may_look = may_narrow && steps >= kFirst * chunk && !(settled && was_narrow);
      if (may_look && end == BatchEnd::waiting) look_closer(problem, limits);
    }
    narrow_.turn_off();
    const bool may_finish = end == BatchEnd::solved || (end == BatchEnd::stuck && !is_plain_);
    const bool is_cheap = samples_.is_given() || samples_.form.kind == KernelKind::linear;
    const bool is_small = m_ <= (is_cheap ? kExactlyCheap : kExactly);
    if (may_finish && is_small)
      Exact(*this).advance(kDigits, kStepsOfRow * static_cast<std::int64_t>(m_));
    else if (end != BatchEnd::solved && steps > 0 && !limits.exactly)
      refresh();
    if (end != BatchEnd::solved || is_small) (void)gap();  // else it is known
    if (!std::isfinite(b_) || !std::isfinite(rho_) || !are_finite()) {
      restart();
      (void)gap();
      end = BatchEnd::stuck;
    }
    if (blocks_) kept_.count(blocks_->evaluations());
    const double off = is_refined_ ? 0.0 : noise();
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    const bool is_exact = limits.exactly || (may_finish && is_small);
    const double length = is_exact ? 1.0 : known_.length();
    out = {b_,  primal_, dual_, rho_, steps, negative, end, is_small ? unknown : losses_,
           off, length};
    each([&](std::size_t p, std::size_t i, std::size_t) {
      all_.c[i] = is_twofold_ ? std::max(x_[p], 0.0) : x_[p];
      all_.scores[i] = f_[p];
      if (!is_twofold_) return;
      all_.c[i + m_] = std::min(x_[p], 0.0);
      all_.scores[i + m_] = f_[p];
    });
  }

 private:
  // f(first position, first place in the arrays of all problems, first sample, their number).
  template <class F>
  void each_group(const F& f) const {
    std::size_t i = at_;
    for (std::size_t g = 0; g < id_.size(); i += counts_[g], ++g)
      f(begin_[g], i, kept_.first(id_[g]), counts_[g]);
  }
  // f(position, place in the arrays of all problems, sample).
  template <class F>
  void each(const F& f) const {
    each_group([&](std::size_t p, std::size_t i, std::size_t s, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) f(p + k, i + k, s + k);
    });
  }

  // Begin with scores of the start, or with those of coefficients near it.
  void take_known(const Scored& scored) {
    std::vector<double> x(width_);
    each_group([&](std::size_t p, std::size_t i, std::size_t, std::size_t count) {
      std::copy_n(&all_.c[scored.begin + i - at_], count, &x[p]);
      std::copy_n(&all_.scores[scored.begin + i - at_], count, &f_[p]);
    });
    known_.start(x, f_, scored.length);
    if (scored.begin == at_)
      take_gradient();
    else
      refresh();
  }

  // What does not change with the weights: the rows of problem t, and what is known of them.
  void take_rows(std::size_t t) {
    const auto first = t > 0 ? all_.group_end[t - 1] : 0;
    is_twofold_ = all_.is_twofold(t);
    const auto groups = (all_.group_end[t] - first) / (is_twofold_ ? 2 : 1);
    begin_.assign(1, 0), id_.clear(), counts_.clear();
    const auto& of = samples_.groups;
    for (auto k = first; k < first + groups; ++k) {
      const auto g = static_cast<std::size_t>(all_.group[static_cast<std::size_t>(k)]);
      id_.push_back(g), counts_.push_back(static_cast<std::size_t>(of.count[g]));
      begin_.push_back(begin_.back() +
                       static_cast<std::size_t>(of.strip[g + 1] - of.strip[g]) * kStrip);
    }
    const std::size_t width = begin_.back();
    for (auto* vector : {&lower_, &upper_, &y_, &q_, &near_}) vector->resize(width);
    for (auto* vector : {&diagonal_, &ridge_, &F_}) vector->resize(width);
    rows_.resize(width), parts_.resize(width), target_.resize(width);
    room_.resize((sums_ > 1 ? 4 : 2) * width);
    is_flat_ = true;
    each_group([&](std::size_t p, std::size_t i, std::size_t s, std::size_t count) {
      std::copy_n(&all_.y[i], count, &y_[p]);
      std::copy_n(&all_.q[i], count, &q_[p]);
      std::copy_n(&of.rows[s], count, &rows_[p]);
      for (std::size_t k = 0; k < count; ++k) {
        const double own = samples_.diagonal[static_cast<std::size_t>(rows_[p + k])];
        is_flat_ = is_flat_ && own == samples_.diagonal[static_cast<std::size_t>(rows_[0])];
        diagonal_[p + k] = static_cast<float>(own + shift_);
        parts_[p + k] = kept_.of_sample(s + k);
      }
    });
    for (std::size_t p = 0; p < width; ++p) target_[p] = y_[p] * q_[p];
  }

  // Bounds by the weights, and the start within them.
  void take_bounds() {
    const double open = all_.squared ? std::numeric_limits<double>::infinity() : 0.0;
    const double both = is_twofold_ ? 1.0 : 0.0;
    const double clipped = count_of(width_, [&](std::size_t p) {
      const double most = C_[p] + (C_[p] > 0 ? open : 0.0), least = -most, before = x_[p];
      const double upper = y_[p] > 0 ? most : 0.0, lower = y_[p] > both ? 0.0 : least;
      const double more = before < lower ? lower : before, x = more > upper ? upper : more;
      lower_[p] = lower, upper_[p] = upper, x_[p] = x;
      return !(std::abs(x - before) <= kSame * std::abs(before));
    });
    is_within_bounds_ = clipped == 0 && !is_twofold_;
    find_still();
    if (!all_.squared) return;
    each([&](std::size_t p, std::size_t, std::size_t) {
      const double own = samples_.diagonal[static_cast<std::size_t>(rows_[p])];
      ridge_[p] = C_[p] > 0 ? static_cast<float>(0.5 / C_[p]) : 0.0f;
      diagonal_[p] = static_cast<float>(own + shift_) + ridge_[p];
    });
  }

  // What one variable for two rows has of both.
  void take_halves() {
    kink_.resize(width_);
    each([&](std::size_t p, std::size_t i, std::size_t) {
      x_[p] = all_.c[i] + all_.c[i + m_];
      target_[p] = 0.5 * (all_.q[i] - all_.q[i + m_]);
      q_[p] = -0.5 * (all_.q[i] + all_.q[i + m_]);
      kink_[p] = static_cast<float>(q_[p]);
    });
  }

  // Begin with working sets, where they suit the problem and there is room for them.
  void begin_blocks(const BatchLimits& limits) {
    const auto most =
        static_cast<std::size_t>(std::sqrt(static_cast<double>(limits.bytes) / sizeof(float)));
    largest_block_ = std::min(kLargestBlock, std::max(most, kStrip) - kStrip);
    const bool is_twice = is_twofold_ || (id_.size() > 1 && id_.front() == id_.back());
    const bool is_large = m_ >= (is_twice ? kBlockRowsTwice : kBlockRows);
    if (!is_large || all_.size() > 1 || limits.exactly || samples_.is_given() ||
        samples_.strips.n > kBlockColumns || largest_block_ < kLeastBlock)
      return;
    Places places{{}, rows_.data()};
    for (std::size_t g = 0; g < id_.size(); ++g) {
      const auto strip = static_cast<std::size_t>(samples_.groups.strip[id_[g]]);
      const std::size_t same =
          static_cast<std::size_t>(std::find(id_.begin(), id_.end(), id_[g]) - id_.begin());
      places.runs.push_back({begin_[g], strip, (begin_[g + 1] - begin_[g]) / kStrip, same});
    }
    blocks_.emplace(kernels_, pairs_, samples_.form, samples_.strips, samples_.batch,
                    std::move(places), std::min(largest_block_, m_), limits.threads);
  }

  // Steps of one working set, if anything violates more than `stop`; then the gradient.
  PairSteps block_steps(const SmallProblem<float, MadeRows>& problem, double stop, double share,
                        std::int64_t most) {
    const double before = blocks_->look(problem);
    if (!(before > stop)) return {0, 0, before};
    const auto free = static_cast<std::size_t>(kFreeRoom * static_cast<double>(blocks_->free()));
    block_size_ = std::min({std::max(block_size_, free), largest_block_, m_});
    const double target = before * std::clamp(kAim * share / rough_gap_, kInner, kMostInner);
    const auto some = std::min(most, most_of_set());
    auto done = blocks_->advance(problem, block_size_, std::max(target, 0.5 * stop), some,
                                 f_.data(), [this] { return crew_.stopped(is_caller_); });
    done.violation = before;  // that of all is not known yet
    known_.follow(x_);
    take_slopes();
    return done;
  }

  // The steps of a working set at which it is left as it is.
  std::int64_t most_of_set() const { return kStepsOfSet * static_cast<std::int64_t>(block_size_); }

  // What a step costs, as a share of one over all variables.
  double share_of_step() const {
    if (blocks_) return kBlockStep * static_cast<double>(block_size_) / static_cast<double>(m_);
    return static_cast<double>(variables()) / static_cast<double>(m_);
  }

  // Bytes of rows of K, with those of other threads that leave out as many variables.
  std::size_t bytes(const BatchLimits& limits) const {
    return kept_.bytes() + limits.threads * narrow_.held();
  }

  // How many of some steps there are until rows of K may need more than these bytes: each step may
  // make rows for two variables. A few there are always.
  std::int64_t within(const BatchLimits& limits, std::int64_t steps) const {
    const std::size_t row = width_ * sizeof(float), used = bytes(limits);
    const std::size_t left = limits.bytes > used ? limits.bytes - used : 0;
    if (left / width_ >= row) return steps;
    const auto some = static_cast<std::int64_t>(left / (2 * together_ * row));
    return std::clamp(some, kFewSteps, steps);
  }

  // How many there are now.
  std::size_t variables() const { return narrow_.is_on() ? narrow_.at().size() : m_; }

  // Whether the gap has fallen within so many steps.
  bool has_fallen(std::int64_t steps, std::size_t patience) {
    if (primal_ - dual_ < kProgress * least_gap_) {
      least_gap_ = primal_ - dual_;
      since_ = steps;
    }
    return steps - since_ <= static_cast<std::int64_t>(patience);
  }

  // Whether it has of late, or may fall by a gradient that is made again: soon, where float32 was
  // too rough, and a working set is `unsolved`.
  bool goes_on(std::int64_t steps, bool unsolved) {
    const std::size_t patient = blocks_ ? kPatientBlocks : kPatientSteps;
    const bool waits = has_fallen(steps, std::max(patient * variables(), kLeastPatience));
    if (waits && (!unsolved || since_ == steps)) return true;
    if (refreshes_++ == kRefreshes) return false;
    narrow_.turn_off();
    refresh();
    (void)gap();
    least_gap_ = primal_ - dual_;
    since_ = steps;
    return true;
  }

  // Steps of the variables that are not settled.
  PairSteps narrow_steps(double stop, std::int64_t some, std::int64_t made) {
    const auto problem = narrow_.problem(this, &Problem::make_narrow, is_over_, made);
    const auto done = pairs_.made32(problem, stop, some);
    narrow_.give_back(x_.data(), F_.data());
    return done;
  }
  static const float* make_narrow(void* self, std::size_t k, std::size_t) {
    auto& own = *static_cast<Problem*>(self);
    const std::size_t p = own.narrow_.at()[k];
    return own.narrow_.cut(k, own.id_.size(), [&](std::size_t g) {
      const float* part = __atomic_load_n(own.parts_[p] + own.id_[g], __ATOMIC_ACQUIRE);
      if (part == nullptr) part = own.make_part(p, g);
      return Narrow::Part{part, own.begin_[g], own.begin_[g + 1]};
    });
  }

  // Leave variables out that are at a bound, and whose slope says that no pair takes them: their
  // part in the gap is zero. Of the gradient they keep what was known when they were left out.
  void look_closer(const SmallProblem<float, MadeRows>& problem, const BatchLimits& limits) {
    auto at = unsettled(narrow_.at());
    const auto now = static_cast<double>(narrow_.is_on() ? narrow_.at().size() : width_);
    if (at.empty() || static_cast<double>(at.size()) > kNarrower * now) return;
    const std::size_t more = limits.threads * Narrow::bytes(at.size());
    if (kept_.bytes() + std::max(more, limits.threads * narrow_.held()) > limits.bytes) return;
    narrow_.take(std::move(at), problem);
  }

  // Back to the answer zero, whose scores are known.
  void restart() {
    std::fill(x_.begin(), x_.end(), 0.0);
    std::fill(f_.begin(), f_.end(), 0.0);
    known_.start(width_);
    total_ = 0;
  }

  static const float* make(void* self, std::size_t i, std::size_t g) {
    return static_cast<Problem*>(self)->make_part(i, g);
  }

  // How much a sample violates its conditions, where it has several places at the worst of them.
  float merit_of(std::size_t p, std::size_t own) const {
    const float *up = room_.data(), *down = up + width_;
    float merit = std::max(up[p] - F_[p], down[p] + F_[p]);
    for (std::size_t s = 2 * width_; s < room_.size(); s += 2 * width_)
      merit = std::max({merit, up[s + p] - F_[p], down[s + p] + F_[p]});
    return merit;
  }

  // Part g of row i; and of others of its group that are likely to move soon.
  const float* make_part(std::size_t i, std::size_t g) {
    std::size_t own = 0;
    while (i >= begin_[own + 1]) ++own;
    std::array<std::size_t, kTogether> chosen{i};
    std::array<float, kTogether> merit{};
    std::size_t count = 1;
    const std::size_t last = begin_[own] + counts_[own], id = id_[g];
    for (std::size_t p = begin_[own]; together_ > 1 && p < last; ++p) {
      const float value = merit_of(p, own);
      if (count == together_ && !(value > merit[count - 1])) continue;
      // Looked up for few: the parts of samples lie far apart.
      if (p == i || __atomic_load_n(parts_[p] + id, __ATOMIC_RELAXED) != nullptr) continue;
      std::size_t k = count < together_ ? count++ : count - 1;
      for (; k > 1 && value > merit[k - 1]; --k) chosen[k] = chosen[k - 1], merit[k] = merit[k - 1];
      chosen[k] = p, merit[k] = value;
    }
    std::array<std::size_t, kTogether> samples;
    for (std::size_t r = 0; r < count; ++r)
      samples[r] = kept_.first(id_[own]) + chosen[r] - begin_[own];
    make_parts(samples.data(), count, own, g);
    return __atomic_load_n(parts_[i] + id, __ATOMIC_ACQUIRE);
  }
  // The parts g of some samples; now and then a look whether it is over.
  void make_parts(const std::size_t* samples, std::size_t count, std::size_t own, std::size_t g) {
    kept_.make(samples, count, id_[own], id_[g], gathered_);
    work_ += count * (begin_[g + 1] - begin_[g]) * (samples_.strips.n + kOfValue);
    if (work_ < kLook) return;
    work_ = 0;
    is_over_ = crew_.stopped(is_caller_);
  }

  // All parts of some rows, some rows together. False: it was over before they were there.
  bool make_missing(const std::vector<std::size_t>& rows) {
    std::array<std::size_t, kTogether> some;
    for (std::size_t own = 0, r = 0; own < id_.size(); ++own) {
      const std::size_t first = r;
      while (r < rows.size() && rows[r] < begin_[own + 1]) ++r;
      for (std::size_t g = 0; g < id_.size(); ++g) {
        std::size_t count = 0;
        const auto flush = [&] {
          if (count > 0) make_parts(some.data(), count, own, g);
          count = 0;
        };
        for (std::size_t k = first; k < r; ++k) {
          if (__atomic_load_n(parts_[rows[k]] + id_[g], __ATOMIC_RELAXED) != nullptr) continue;
          if (is_over_) return false;
          some[count++] = kept_.first(id_[own]) + rows[k] - begin_[own];
          if (count == kTogether) flush();
        }
        flush();
      }
    }
    return true;
  }

  // Bytes of the rows that a start needs; where there is none they are not asked for.
  std::size_t start_bytes() const {
    if (!has_mass_ || blocks_) return 0;
    const auto moved = std::count_if(x_.begin(), x_.end(), [](double x) { return x != 0; });
    return static_cast<std::size_t>(moved) * width_ * sizeof(float);
  }

  // The levels that -F of rows that can move ends at are taken off it: float32 has its digits near
  // zero, and pairs see differences alone.
  void come_near() {
    (void)gap();
    for (std::size_t k = 0; k < lines_.size(); ++k)
      for (std::size_t p = 0; p < width_; ++p)
        if (sums_ == 1 || lines_[k].C[p] != 0) near_[p] = margin_ * target_[p] - level_[k];
    if (has_mass_) unit_ = std::max(unit_, std::abs(b_) + std::abs(rho_));
  }

  // About what kernel values in float32 may add to the relative gap: scores are off by a share of
  // |x|, and free variables have a loss where theirs are.
  double noise() const {
    const auto [square, free] = passes_.sizes(objective(), C_.data());
    if (margin_ - 1 > kFarthest * std::sqrt(square)) return 0;
    const double size = size_of_bounds();
    return size > 0 ? kNoise * std::sqrt(square) * free / size : 0.0;
  }

  // From now on scores are made in float64; the gap by them.
  double begin_to_refine(std::int64_t steps) {
    is_refined_ = true;
    narrow_.turn_off();
    if (blocks_) blocks_->round_no_more();
    refresh();
    refreshes_ = 0, since_ = steps;
    (void)gap();
    least_gap_ = primal_ - dual_;
    return relative_gap();
  }

  // Scores in float64 of the rows that count: of those with alpha > 0, a loss, or nearly one.
  void refine() {
    (void)gap();
    std::vector<std::int64_t> support, rows;
    std::vector<std::size_t> at;
    std::vector<double> weight;
    each([&](std::size_t p, std::size_t, std::size_t) {
      if (x_[p] != 0) support.push_back(rows_[p]), weight.push_back(x_[p]);
      if (x_[p] != 0 || (C_[p] > 0 && slack(p) > -kClose * unit_)) at.push_back(p);
    });
    for (const auto p : at) rows.push_back(rows_[p]);
    std::vector<double> sums(rows.size());
    const std::array support_end{static_cast<std::int64_t>(support.size())};
    const std::array row_end{static_cast<std::int64_t>(rows.size())};
    const BatchSums asked{samples_.exact, support, support_end, rows, row_end, {}, weight, sums};
    sum_problem(kernels_, asked, crew_, is_caller_);
    kept_.count(static_cast<std::int64_t>(support.size() * rows.size()));
    if (crew_.stopped(is_caller_)) return;  // parts of sums may be there
    for (std::size_t k = 0; k < at.size(); ++k) f_[at[k]] = sums[k];
  }

  // What the loss is of, by the last intercept.
  double slack(std::size_t p) const {
    if (is_twofold_) return std::abs(target_[p] - f_[p] - b_) - q_[p];
    return q_[p] + rho_ - y_[p] * (f_[p] + b_);
  }

  // The scores K c, by the rows that are kept, in float64; and the gradient by them.
  void refresh() {
    if (blocks_) {
      blocks_->make_scores(x_.data(), width_, f_.data());
      known_.start(width_);
      known_.follow(x_);
    } else {
      add_kept_rows(known_.move_to(x_, !is_flat_ || may_curve_ || is_refined_));
      f_ = known_.scores();
    }
    if (is_refined_) refine();
    take_gradient();
  }

  // Whether scores that working sets have added up are as near as their bounds say.
  bool is_as_bounded() const { return is_flat_ && !known_.is_long(); }

  // Add rows that are kept one by one to the scores that are known.
  void add_kept_rows(const std::vector<std::size_t>& moved) {
    if (!make_missing(moved)) return restart();
    constexpr std::size_t most = 64;
    auto& f = known_.scores();
    for (std::size_t g = 0; g < id_.size(); ++g) {
      const float* base = nullptr;
      std::int64_t place[most];
      double weight[most];
      std::size_t count = 0;
      const auto flush = [&] {
        kernels_.add32(base, place, count, 1, weight, 0, begin_[g + 1] - begin_[g],
                       f.data() + begin_[g]);
        count = 0;
      };
      for (std::size_t k = 0; k < moved.size(); ++k) {
        const std::size_t p = moved[k];
        const float* part = __atomic_load_n(parts_[p] + id_[g], __ATOMIC_ACQUIRE);
        if (part == nullptr) part = make_part(p, g);
        if (count == 0) base = part;
        place[count] = part - base, weight[count] = known_.by()[k];
        if (++count == most) flush();
      }
      if (count > 0) flush();
    }
  }

  // What all variables have by a penalized intercept.
  void add_up() {
    if (shift_ != 0) total_ = std::accumulate(x_.begin(), x_.end(), 0.0);
  }

  // The gradient by the scores.
  void take_gradient() {
    add_up();
    if (!is_plain_ || is_refined_) come_near();
    take_slopes();
  }
  // The same, less the levels that are known.
  void take_slopes() {
    add_up();
    passes_.gradient(objective(), shift_ * total_, near_.data(), F_.data());
  }

  std::size_t padded() const { return (m_ + kStrip - 1) / kStrip * kStrip; }

  BatchEnd run_exactly(const BatchLimits& limits, std::int64_t& steps, std::int64_t& negative) {
    if (!(unit_ > 0)) unit_ = 1;
    Exact exact(*this);
    double stop = kViolation * limits.tol * unit_;
    const std::int64_t chunk = std::max<std::int64_t>(kStepsExactly, static_cast<std::int64_t>(m_));
    const std::size_t patience = kPatientStepsExactly * m_;
    while (true) {
      const double before = dual_;
      const auto done = exact.advance(stop, std::min(chunk, limits.most - steps));
      steps += done.steps, negative += done.negative;
      if (negative > 0 && !may_curve_) return BatchEnd::stuck;
      const bool settled = !(done.violation > stop) || done.steps == 0;
      if (gap() <= kShare * limits.tol) return BatchEnd::solved;
      if (settled && (stop *= kFall) < kDigits * unit_) return BatchEnd::stuck;
      if (steps >= limits.most || !has_fallen(steps, patience) ||
          is_hopeless(before, limits.hopeless))
        return BatchEnd::stuck;
      if (crew_.stopped(is_caller_)) return BatchEnd::stopped;
    }
  }

  // The problem in float64, with all kernel values. Padding is left out.
  class Exact {
   public:
    explicit Exact(Problem& of)
        : of_(of),
          m_(of.m_),
          width_(of.padded()),
          K_(static_cast<double*>(std::aligned_alloc(64, m_ * width_ * sizeof(double))),
             &std::free),
          lower_(m_),
          upper_(m_),
          x_(m_),
          F_(width_),
          diagonal_(width_, 1.0),
          ridge_(width_),
          kink_(width_),
          f_(width_),
          room_((of.sums_ > 1 ? 4 : 2) * width_) {
      if (!K_) throw std::bad_alloc();
      std::vector<std::int64_t> rows;
      of_.each([&](std::size_t p, std::size_t, std::size_t) {
        at_.push_back(p);
        rows.push_back(of_.rows_[p]);
      });
      of_.fill_exact(rows, K_.get(), width_);
      for (std::size_t r = 0; r < m_; ++r) {
        const std::size_t p = at_[r];
        lower_[r] = of_.lower_[p], upper_[r] = of_.upper_[p], x_[r] = of_.x_[p];
        ridge_[r] = of_.all_.squared && of_.C_[p] > 0 ? 0.5 / of_.C_[p] : 0.0;
        diagonal_[r] = K_.get()[r * width_ + r] + ridge_[r] + of_.shift_;
        kink_[r] = of_.q_[p];
      }
      make_scores();
      for (std::size_t r = 0; r < m_; ++r)
        F_[r] = f_[r] + ridge_[r] * x_[r] + of_.shift_ * of_.total_ - of_.target_[at_[r]];
    }

    // Steps until the violation is at most `stop`, or `most` of them; then the scores.
    PairSteps advance(double stop, std::int64_t most) {
      const SmallProblem<double> problem{{K_.get(), width_},
                                         m_,
                                         width_,
                                         diagonal_.data(),
                                         ridge_.data(),
                                         of_.shift_,
                                         lower_.data(),
                                         upper_.data(),
                                         x_.data(),
                                         F_.data(),
                                         room_.data(),
                                         of_.sums_,
                                         of_.is_twofold_ ? kink_.data() : nullptr,
                                         made_};
      const auto done = of_.pairs_.steps64(problem, stop, most);
      made_ += done.steps;
      make_scores();
      for (std::size_t r = 0; r < m_; ++r) of_.x_[at_[r]] = x_[r], of_.f_[at_[r]] = f_[r];
      return done;
    }

   private:
    void make_scores() {
      std::fill(f_.begin(), f_.end(), 0.0);
      of_.total_ = 0;
      for (std::size_t r = 0; r < m_; ++r) {
        of_.total_ += x_[r];
        if (x_[r] != 0)
          for (std::size_t s = 0; s < m_; ++s) f_[s] += x_[r] * K_.get()[r * width_ + s];
      }
    }

    Problem& of_;
    std::size_t m_, width_;
    std::unique_ptr<double, void (*)(void*)> K_;
    std::vector<double> lower_, upper_, x_, F_, diagonal_, ridge_, kink_, f_, room_;
    std::vector<std::size_t> at_;
    std::int64_t made_ = 0;
  };

  // Kernel values of some rows with each other, in float64.
  void fill_exact(const std::vector<std::int64_t>& rows, double* K, std::size_t width) const {
    const auto& exact = samples_.exact;
    const auto row_of = [&](std::size_t r) { return static_cast<std::size_t>(rows[r]); };
    if (samples_.is_given()) {
      for (std::size_t r = 0; r < m_; ++r, K += width) {
        const double* from = exact.given.data() + row_of(r) * samples_.diagonal.size();
        for (std::size_t s = 0; s < m_; ++s) K[s] = from[rows[s]];
        std::fill(K + m_, K + width, 0.0);
      }
      return;
    }
    Packed packed;
    packed.fill(exact.batch, exact.norms, rows);
    Gathered<double> gathered;
    const auto batch = gathered.fill(exact.batch, m_, row_of);
    kernels_.rows64(exact.form, packed.strips(m_, exact.batch.n), batch,
                    {K, nullptr, width, nullptr, nullptr, 0, 0, nullptr, nullptr, false}, 0,
                    width / kStrip);
  }

  // What the passes over the places take.
  Objective objective() const {
    return {x_.data(), f_.data(),     target_.data(), q_.data(),
            y_.data(), lower_.data(), upper_.data(),  all_.squared ? ridge_.data() : nullptr,
            width_,    all_.squared,  is_twofold_};
  }

  // The scores by the gradient as it is.
  void take_scores() {
    add_up();
    passes_.scores(objective(), F_.data(), shift_ * total_, near_.data(), f_.data());
  }

  // Two classes whose sums are given: rho makes an intercept of each, b - rho and b + rho.
  void split(double mass) {
    for (const double sign : {1.0, -1.0}) {
      auto& C = class_C_[sign < 0];
      C = C_;
      for (std::size_t p = 0; p < width_; ++p)
        if (y_[p] != sign) C[p] = 0;
      lines_.push_back({C.data(), sign * 0.5 * mass});
    }
  }

  // Whether the gap may be small: where it is not by far with intercepts in the middle of the
  // violations, their best places are not worth the time to find them.
  bool may_be_near(double share) {
    return (is_plain_ && m_ < kLong) || (rough_gap_ = gap(false)) <= kFar * share;
  }

  // The relative gap by the scores, with the intercept and rho that suit them, or nearly do.
  double gap(bool is_best = true) {
    const auto of = objective();
    const auto [square, linear, squares] = passes_.products(of);
    auto& b = level_;
    b[0] = shift_ * total_;
    losses_ = 0;
    for (std::size_t k = 0; k < lines_.size(); ++k) {
      Intercept intercept(passes_, of, lines_[k], breaks_);
      b[k] = intercept.find(is_best);
      losses_ += intercept.at(b[k]).value;
    }
    if (lines_.empty()) losses_ = passes_.losses(of, C_.data(), b[0]).value;
    b_ = has_mass_ ? (sums_ > 1 ? 0.5 * (b[0] + b[1]) : 0.0) : b[0];
    rho_ = has_mass_ ? (sums_ > 1 ? 0.5 * (b[1] - b[0]) : -b[0]) : 0.0;
    const double rest = 0.5 * (square + shift_ * b_ * b_);
    primal_ = rest + losses_;
    dual_ = linear - rest - 0.5 * squares;
    if (may_be_zero_) primal_ = std::min(primal_, 0.0);  // that of no function
    return relative_gap();
  }

  // Whether there is no margin so far, hardly any is possible, and steps were slow since the bound
  // `before`.
  bool is_hopeless(double before, double share) {
    if (!may_be_zero_ || primal_ < 0 || -dual_ > share * largest_) return false;
    if (dual_ > kQuick * before) return false;
    (void)gap();
    return primal_ == 0;
  }

  // What gaps are relative to, and the one of the last bounds.
  double size_of_bounds() const {
    return std::max({std::abs(primal_), std::abs(dual_), kFloor * zero_});
  }
  double relative_gap() const {
    const double size = size_of_bounds();
    return size > 0 ? (primal_ - dual_) / size : primal_ == dual_ ? 0.0 : 1.0;
  }

  ProblemVectors& vectors_;
  KeptParts& kept_;
  const KernelTable& kernels_;
  const PairTable& pairs_;
  const ObjectiveTable& passes_;
  const BatchSamples& samples_;
  const BatchProblems& all_;
  Narrow& narrow_;
  Crew& crew_;
  const bool is_caller_;
  std::size_t at_ = 0, m_ = 0, width_ = 0, together_ = 1;
  int sums_ = 0;
  bool has_mass_ = false, is_refined_ = false;
  bool is_within_bounds_ =
      false;  // no variable of the start was clipped, of which there are scores
  double shift_ = 0, total_ = 0, b_ = 0, rho_ = 0, primal_ = 0, dual_ = 0, violation_ = 0;
  double losses_ = 0;         // in the primal objective
  double zero_ = 0;           // the objective at zero
  double largest_ = 0;        // the largest |w|^2, where there is a rho
  bool may_be_zero_ = false;  // the optimum: q is 0, and there is a rho
  // What violations are a share of: of q, and of what rho is at the start.
  double unit_ = 1;
  bool is_plain_ = true;  // q is 1, and there is no rho
  // Whether the kernel need not be positive semidefinite. Elsewhere steps along a negative
  // curvature show that float32 can do no more; here they end at a bound.
  bool may_curve_ = false;
  std::optional<Blocks> blocks_;  // none: rows of K are kept
  std::size_t block_size_ = kFirstBlock, largest_block_ = 0;
  double rough_gap_ = 1;           // the gap by the last rough intercepts
  double margin_ = 1;              // y (f + b) that steps end at, between bounds
  std::array<double, 2> level_{};  // intercepts, of each class where these have their own
  double least_gap_ = std::numeric_limits<double>::infinity();
  std::int64_t since_ = 0;
  int refreshes_ = 0;
  std::size_t work_ = 0;  // since the last look whether it is over
  bool is_over_ = false;
  std::array<std::vector<double>, 2> class_C_;
  Gathered<float> gathered_;
};

}  // namespace

std::int64_t solve_batch(const BatchCode& code, const BatchSamples& samples,
                         const BatchProblems& problems, const BatchLimits& limits,
                         std::span<BatchResult> results) {
  KeptParts kept(code.kernels, samples, problems);
  Chains chains(problems, limits, results);
  Crew crew(limits.threads, limits.stop);
  crew.run(chains.tasks(), [&](std::size_t, bool is_caller) {
    BatchLimits mine = limits;
    Narrow narrow;
    ProblemVectors vectors;
    for (auto t = chains.take(crew, is_caller); t >= 0 && !crew.stopped(is_caller);) {
      const auto one = static_cast<std::size_t>(t);
      const double ratio = ratio_of(problems, one);
      mine.most = chains.is_after_stuck(one) ? limits.most / kFewerSteps : limits.most;
      if (!chains.follows(one) || !stays(problems, one, ratio, limits.tol, kShare, results)) {
        const auto scored = chains.begin(one, ratio, crew, is_caller);
        Problem(kept, code, samples, problems, one, narrow, vectors, crew, is_caller)
            .run(mine, scored, results[one]);
      }
      chains.end(one);
      kept.end(problems, one);
      t = chains.next(one);
    }
  });
  return kept.evaluations();
}

}  // namespace widemargin
