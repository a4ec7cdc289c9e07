// One problem of the batch engine: pair steps in float32 over all that is not settled, and in
// float64 where that is too rough.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "blocks.hpp"
#include "exact_problem.hpp"
#include "exact_steps.hpp"
#include "kept_moves.hpp"
#include "kept_parts.hpp"
#include "narrow.hpp"
#include "problem_bounds.hpp"
#include "problem_data.hpp"
#include "problem_rows.hpp"
#include "problem_scores.hpp"
#include "turns.hpp"
#include "working_sets.hpp"

namespace widemargin {

// Steps between two looks at the gap. SVCCV on 5,000 rows of pendigits, pairs of 1,000, takes 0.93
// of the time in this engine with 250 as with 125, and 1.1 and 1.3 times with 62 and 33.
constexpr std::int64_t kStepsToLook = 250;
// The same where the memory for rows of K comes to its end.
constexpr std::int64_t kFewSteps = 10;

// The least violation that is asked for of scores in float32; and in float64. These are made where
// float32 is too rough: where what it may add to the gap leaves less than kLeastGoal of it, and
// where steps in float32 end above it. With C = 1,000 the pairs of letter, pendigits and digits
// take 0.11, 0.13 and 0.3 times as long to a gap of 1e-4 as where working sets went on after
// float32, to 1e-5 0.09, 0.1 and 0.45 times; SVCCV on 5,000, 8,000 and 15,000 rows of a9a takes
// 0.87, 0.85 and 0.8 times as long.
constexpr double kLeast = 1e-7, kLeastRefined = 1e-11, kLeastGoal = 0.3;
// Where this noise is below this share of tol, scores that working sets have added up as variables
// moved are not made again: 4,000 rows take 0.9 times as long.
constexpr double kNegligible = 0.01;

// Steps of classifiers with the hinge end at margins of 1 and this share of tol more: then scores
// that float32, or a step that is not made, leaves a little off are no losses. The gap has at most
// twice as much of it, as sum alpha is at most 2 P. With C = 1,000 the pairs of digits and
// pendigits take 0.6 of the steps; of 2,250 problems of a path of pendigits with a large gamma 0
// are not solved, not 260. (0.1 and 0.3: as many steps, up to a fifth more with C = 1,000.)
constexpr double kMargin = 0.2;

// Steps a row in which the gap falls or the dual objective rises (`has_fallen`), or else the
// gradient is made again, whose digits many steps have used up; so often, then it is given up:
// float32 can do no more. Never takes up to 1.3 times as long on eight problems of 1,200 to 4,000
// rows, once or four times 0.95 to 1.17 times. All rows count, though steps may be over a few that
// are left and end sooner: by those few, 17 of 300 problems of four clusters in 8 columns are given
// up with C = 1,000, and SVCCV on these 5,000 rows takes 1.7 s, not 1.1.
constexpr std::size_t kPatientSteps = 5;
constexpr int kRefreshes = 2;
constexpr std::size_t kLeastPatience = 2000;
// The part of the rows of a problem after as many steps of which it is looked whether rows of K are
// to be foreseen; and the steps after which it is looked again, while the gap is not looked at. A
// first look after 64 steps takes 1.05 to 1.2 times as long where few are support vectors.
constexpr std::size_t kForeseenFirst = 16;
constexpr std::int64_t kForeseenSteps = 64;

// The part of the rows of a problem after as many steps of which it is looked how many have moved,
// where that decides. (Problems of which others take over take 1.5 times as long as by these alone,
// with 4 twice.)
constexpr std::int64_t kCountedAfter = 8;

// Rows from which settled variables are left out, from so many parts of the steps on; and the share
// of the others that is worth it: 4,000 rows of a9a with C = 100 take 110 ms with 0.5, 90 with 0.4,
// 240 with 0.7; with 0.3 float32 does not solve them, with 0.4 not all chains of 1,100 rows. The
// path of SVCCV on 5,000 rows takes 1.6 s with 0.3, 0.5 and 0.7, not 2.5 s. With 0.7, eight
// problems of 1,200 to 4,000 rows took 0.95 to 1.4 times as long from 500 or 2,000 rows on, and
// 0.94 to 1.2 times from the first part on. Then the same for those that are left: with 0.7, not
// 0.5, and 0.6 and 0.8 alike, that path takes 0.9 of the processor time. Moves begin after as many
// steps: from the first one on that path takes 1.05 times as long.
constexpr std::size_t kLong = 1000;
constexpr std::int64_t kFirst = 2;
constexpr double kNarrower = 0.5, kNarrowerAgain = 0.7;
// How often the gap of a long problem may be larger than its gradient said: float32 can do no more.
constexpr int kMistaken = 2;

// Of tol: what rounding may add to the gap comes on top.
constexpr double kShare = 0.9;
// Of the gap that is asked for: above it with rough intercepts, no better ones are looked for.
constexpr double kFar = 5;

// One problem, from its start to its end.
class BatchProblem {
 public:
  BatchProblem(ProblemData& of, const BatchCode& code, Narrow& narrow, KeptMoves& moves,
               const Turn& turn)
      : code_(code),
        narrow_(narrow),
        moves_(moves),
        turn_(turn),
        of_(of),
        bounds_(of_, code.passes),
        rows_(of_, code.kernels, turn),
        scores_(of_, rows_, bounds_, code, turn),
        exact_(of_, bounds_, code, turn, steps_, negative_) {}

  void run(const BatchLimits& limits, const std::optional<Scored>& scored, BatchResult& out) {
    begin(limits, scored);
    while (end_ == BatchEnd::waiting) {
      const bool was_narrow = narrow_.is_on();
      const auto done = advance(limits);
      if (rows_.is_over()) end_ = BatchEnd::stopped;
      if (rows_.is_over()) break;
      const double before = bounds_.dual();
      const bool settled = !(done.violation > stop_) || done.steps == 0;
      if (settled || (may_be_near() && bounds_.gap() <= goal_))
        judge(limits, settled, was_narrow);
      else if (spans_ && scores_.is_refined() && !narrow_.is_on() && bounds_.dual() < before)
        end_moves();
      if (sets_ && end_ == BatchEnd::waiting) watch_rounding(limits, before);
      const bool is_last = may_be_last(limits, before);
      const bool unsolved = sets_ && done.steps >= sets_->most();
      if (end_ == BatchEnd::waiting && (is_last || !goes_on(unsolved))) end_ = BatchEnd::stuck;
      if (end_ == BatchEnd::stuck && !is_last) go_on(limits);
      if (end_ != BatchEnd::waiting) break;
      if (bytes(limits) > limits.bytes) end_ = BatchEnd::no_room;
      if (turn_.is_over()) end_ = BatchEnd::stopped;
      if (end_ == BatchEnd::waiting && exact_.are_due() && has_room(limits)) run_exactly(limits);
      // Where those that are left are settled, the others have their turn.
      const bool may_look = may_narrow_ && steps_ >= kFirst * chunk_ && !(settled && was_narrow);
      if (may_look && end_ == BatchEnd::waiting) look_closer(limits);
    }
    finish(limits, out);
  }

 private:
  void begin(const BatchLimits& limits, const std::optional<Scored>& scored) {
    if (of_.is_plain && !of_.all.squared) of_.aim_at(1 + kMargin * limits.tol);
    share_ = goal_ = kShare * limits.tol;
    chunk_ = std::max<std::int64_t>(kStepsToLook, static_cast<std::int64_t>(of_.m / 8));
    const bool counts = limits.moved < 1;
    if (counts) chunk_ = static_cast<std::int64_t>(of_.m) / kCountedAfter + 1;
    narrow_.turn_off();
    moves_.clear();
    if (WorkingSets::suit(of_, limits)) sets_.emplace(of_, code_, limits);
    if (!sets_ && of_.kept.are_coded() && of_.sums == 1 && !of_.is_twofold && !of_.has_mass)
      rows_.code();
    foresees_ =
        limits.threads > 1 && !sets_ && !counts && !rows_.are_coded() && rows_.may_be_foreseen();
    may_narrow_ = !sets_ && of_.is_plain && of_.sums == 1 && !of_.all.squared && of_.m >= kLong;
    const std::size_t needed = limits.exactly ? exact_bytes(limits) : start_bytes();
    if (bytes(limits) + needed > limits.bytes) {
      scores_.restart();
      end_ = BatchEnd::no_room;
    } else if (limits.exactly) {
      run_exactly(limits);
    } else if (exact_.are_few() && (is_finished_ = exact_.to_last_digits(share_))) {
      end_ = BatchEnd::solved;
    } else {
      begin_steps(scored);
    }
    if (!(of_.unit > 0)) of_.unit = 1;  // no score differs from zero
    stop_ = kViolation * limits.tol * of_.unit;
  }
  void begin_steps(const std::optional<Scored>& scored) {
    if (of_.is_dense) of_.lay_out(false);
    of_.ways.assign(of_.width, 0);
    relaxation_.ways = of_.ways.data();
    if (scored && of_.is_within_bounds) {
      scores_.start(*scored, blocks());
    } else {
      scores_.start(blocks());
    }
  }

  void run_exactly(const BatchLimits& limits) {
    is_exact_ = true;
    narrow_.turn_off();
    end_ = exact_.run(limits, share_);
  }

  // Some pair steps; then the scores.
  PairSteps advance(const BatchLimits& limits) {
    const double each = share_of_step();
    const double left = std::ceil((static_cast<double>(limits.most) - spent_) / each);
    const auto some = static_cast<std::int64_t>(left), few = std::min(within(limits), some);
    PairSteps done;
    if (sets_) {
      done = sets_->advance(small_problem(rows_.made()), stop_, share_, rough_gap_, some, scores_,
                            [this] { return turn_.is_over(); });
    } else {
      spans_ = may_span_ && steps_ >= kFirst * chunk_;
      foresees_ = foresees_ && !spans_;  // moves are not divided
      done = narrow_.is_on() ? narrow_steps(few) : made_steps(few, limits);
      scores_.take_scores();
    }
    steps_ += done.steps, negative_ += done.negative;
    spent_ += each * static_cast<double>(done.steps);
    return done;
  }

  // Steps whose rows are made where they are needed. Rows that violate after some of them are
  // likely to move: all threads make these first, until they are few.
  PairSteps made_steps(std::int64_t some, const BatchLimits& limits) {
    PairSteps all{0, 0, std::numeric_limits<double>::infinity()};
    while (some > 0 && !rows_.is_over()) {
      const bool is_first = steps_ + all.steps == 0;
      const auto first = static_cast<std::int64_t>(of_.m / kForeseenFirst);
      const auto few = foresees_ ? std::min(some, is_first ? first : kForeseenSteps) : some;
      relaxation_.goes_on = all.steps > 0;
      const auto done = rows_.are_coded() ? pairs_and_span(code_.pairs.coded32, code_.span.coded,
                                                           small_problem(rows_.coded()), few)
                                          : pairs_and_span(code_.pairs.made32, code_.span.made,
                                                           small_problem(rows_.made()), few);
      all = {all.steps + done.steps, all.negative + done.negative, done.violation};
      if (done.steps < few) break;
      some -= few;
      foresees_ = foresees_ && some > 0 && foresee(limits, is_first);
    }
    relaxation_.goes_on = false;
    return all;
  }
  // The same, and after many of them one in the span of what they did.
  template <template <typename> class Rows>
  PairSteps pairs_and_span(Descent<float, Rows> pairs, SpanStep<Rows> span,
                           const SmallProblem<float, Rows>& problem, std::int64_t some) {
    if (!spans_) return pairs(problem, stop_, some);
    return moves_.descend(pairs, span, problem, stop_, some);
  }
  // Whether there is room for all rows of K, twice as much as they take, as memory is handed out in
  // pieces: a limit ends the problem at the same step, whatever was foreseen; and some were made.
  bool foresee(const BatchLimits& limits, bool is_first) {
    const std::size_t used = bytes(limits), left = limits.bytes - std::min(limits.bytes, used);
    const std::size_t all = of_.width * of_.width * sizeof(float);
    return left >= 2 * all && rows_.foresee(is_first);
  }

  template <template <typename> class Rows>
  SmallProblem<float, Rows> small_problem(const Rows<float>& rows) {
    return {rows,
            of_.width,
            of_.width,
            of_.diagonal.data(),
            of_.ridge.data(),
            static_cast<float>(of_.shift),
            of_.lower.data(),
            of_.upper.data(),
            of_.x.data(),
            of_.F.data(),
            of_.room.data(),
            of_.sums,
            of_.is_twofold ? of_.kink.data() : nullptr,
            &relaxation_};
  }

  // Whether the gap may be small: where it is not by far with intercepts in the middle of the
  // violations, their best places are not worth the time to find them.
  bool may_be_near() {
    return (of_.is_plain && of_.m < kLong) || (rough_gap_ = bounds_.gap(false)) <= kFar * goal_;
  }

  // Whether the problem is solved, by scores that are made again; or what its steps go on to.
  void judge(const BatchLimits& limits, bool settled, bool was_narrow) {
    const bool is_refined = scores_.is_refined();
    if (sets_ && !is_refined && scores_.is_as_bounded() &&
        bounds_.noise() < kNegligible * limits.tol)
      scores_.take_gradient();
    else
      refresh();
    narrow_.turn_off();
    double now = bounds_.gap();
    if (!is_refined) {
      goal_ = std::min(share_, limits.tol - bounds_.noise());
      if (goal_ < kLeastGoal * limits.tol) now = begin_to_refine();
    }
    if (now <= goal_)
      end_ = BatchEnd::solved;
    else if (settled && !was_narrow && (stop_ *= kFall) < least_stop())
      end_ = BatchEnd::stuck;
    else if (!settled && (may_narrow_ || sets_) && ++mistaken_ == kMistaken)
      end_ = BatchEnd::stuck;
  }
  double least_stop() const { return (scores_.is_refined() ? kLeastRefined : kLeast) * of_.unit; }

  // Steps in the span of others go further than these, and so does what rounding did to them: the
  // dual objective has fallen. None from now on, and scores without that. (SVR on 1,400 rows of 30
  // columns takes 7,900 steps without such steps, 7,000 with them, and 37,000 if they never end.)
  void end_moves() {
    may_span_ = false;
    refresh();
    (void)bounds_.gap();
  }

  // After the steps of a working set: whether they have to be less rough.
  void watch_rounding(const BatchLimits& limits, double before) {
    if (bounds_.dual() < before) blocks()->round_no_more();  // rounding did that
    const double off = bounds_.noise();
    if (!scores_.is_refined() && limits.tol - off < kLeastGoal * limits.tol &&
        rough_gap_ < kFar * off)
      (void)begin_to_refine();
  }

  // Whether other solvers do better than more steps, whatever these have done.
  bool may_be_last(const BatchLimits& limits, double before) {
    const bool is_over = spent_ >= static_cast<double>(limits.most);
    return is_over || (negative_ > 0 && !of_.may_curve) || have_many_moved(limits) ||
           bounds_.is_hopeless(before, limits.hopeless) ||
           (!of_.may_curve && sets_ && blocks()->is_for_factor(rough_gap_, limits, steps_));
  }

  // Whether more than that share of the rows has a coefficient, when first it is looked.
  bool have_many_moved(const BatchLimits& limits) {
    if (has_counted_ || !(limits.moved < 1)) return false;
    has_counted_ = true;
    const auto moved = std::ranges::count_if(of_.x, [](double x) { return x != 0; });
    return static_cast<double>(moved) > limits.moved * static_cast<double>(of_.m);
  }

  // Whether the gap has fallen of late, or may fall by a gradient that is made again: soon, where
  // float32 was too rough, and a working set is `unsolved`.
  bool goes_on(bool unsolved) {
    const std::size_t patient = sets_ ? kPatientBlocks : kPatientSteps;
    const bool waits = bounds_.has_fallen(steps_, std::max(patient * of_.m, kLeastPatience));
    if (waits && (!unsolved || bounds_.has_just_fallen(steps_))) return true;
    if (refreshes_++ == kRefreshes) return false;
    narrow_.turn_off();
    refresh();
    (void)bounds_.gap();
    bounds_.count_from(steps_);
    return true;
  }

  // From now on scores are made in float64; the gap by them.
  double begin_to_refine() {
    scores_.refine_from_now_on();
    narrow_.turn_off();
    if (sets_) blocks()->round_no_more();
    refresh();
    refreshes_ = 0, goal_ = share_;
    (void)bounds_.gap();
    bounds_.count_from(steps_);
    return bounds_.relative_gap();
  }
  // Where float32 can do no more: with scores in float64, or if they were, with all.
  void go_on(const BatchLimits& limits) {
    if (!scores_.is_refined())
      go_on_refined(limits);
    else if (exact_.may_be() && has_room(limits))
      run_exactly(limits);
  }
  void go_on_refined(const BatchLimits& limits) {
    end_ = begin_to_refine() <= share_ ? BatchEnd::solved : BatchEnd::waiting;
    stop_ = kViolation * limits.tol * of_.unit;
    mistaken_ = 0;
  }

  // Leave variables out that are at a bound, and whose slope says that no pair takes them: their
  // part in the gap is zero. Of the gradient they keep what was known when they were left out.
  void look_closer(const BatchLimits& limits) {
    auto at = of_.unsettled(narrow_.at());
    const bool again = narrow_.is_on();
    const double now = static_cast<double>(again ? narrow_.at().size() : of_.width);
    const auto most = static_cast<std::size_t>((again ? kNarrowerAgain : kNarrower) * now);
    if (at.empty() || at.size() > most) return;
    const std::size_t more = std::max(narrow_.held(), Narrow::bytes(most, rows_.are_coded()));
    if (of_.kept.bytes() + at_once(limits) * more > limits.bytes) return;
    narrow_.take(std::move(at), most, rows_.are_coded(), small_problem(rows_.made()));
    moves_.clear();
  }
  // Steps of the variables that are not settled.
  PairSteps narrow_steps(std::int64_t some) {
    PairSteps done;
    if (rows_.are_coded()) {
      const auto problem = narrow_.problem(this, &BatchProblem::make_narrow<std::uint8_t>,
                                           rows_.is_over(), relaxation_, of_.kept.values());
      done = pairs_and_span(code_.pairs.coded32, code_.span.coded, problem, some);
    } else {
      const auto problem =
          narrow_.problem(this, &BatchProblem::make_narrow<float>, rows_.is_over(), relaxation_);
      done = pairs_and_span(code_.pairs.made32, code_.span.made, problem, some);
    }
    narrow_.give_back(of_.x.data(), of_.F.data(), relaxation_);
    return done;
  }
  template <typename Stored>
  static const Stored* make_narrow(void* self, std::size_t k, std::size_t) {
    auto& own = *static_cast<BatchProblem*>(self);
    const auto& of = own.of_;
    const std::size_t p = own.narrow_.at()[k];
    const auto part_of = [&](std::size_t g) {
      const auto* const values = own.rows_.template part<Stored>(p, g);
      return Narrow::Part<Stored>{values, of.group_begin[g], of.group_begin[g + 1]};
    };
    if constexpr (sizeof(Stored) == 1)
      return own.narrow_.cut(k, of.group.size(), part_of, own.code_.kernels.cut_bytes);
    else
      return own.narrow_.cut(k, of.group.size(), part_of);
  }

  // The last digits of a small problem, or the gap as it is; and what comes out.
  void finish(const BatchLimits& limits, BatchResult& out) {
    narrow_.turn_off();
    const bool is_small = exact_.are_cheap();
    const bool may_finish = end_ == BatchEnd::solved || (end_ == BatchEnd::stuck && !of_.is_plain);
    const bool is_exact = is_exact_ || (may_finish && is_small);
    if (may_finish && is_small && !is_finished_)
      exact_.finish();
    else if (end_ != BatchEnd::solved && steps_ > 0 && !is_exact_)
      refresh();
    if (end_ != BatchEnd::solved || (is_small && !is_finished_)) (void)bounds_.gap();  // else known
    if (!bounds_.are_finite() || !of_.are_finite()) {
      scores_.restart();
      (void)bounds_.gap();
      end_ = BatchEnd::stuck;
    }
    if (sets_) of_.kept.count(blocks()->evaluations());
    const double off = is_exact_ || scores_.is_refined() ? 0.0 : bounds_.noise();
    const double losses = is_small ? std::numeric_limits<double>::quiet_NaN() : bounds_.losses();
    const double length = is_exact ? 1.0 : of_.known.length();
    out = {bounds_.b(),   bounds_.primal(), bounds_.dual(),
           bounds_.rho(), steps_,           negative_,
           end_,          losses,           off,
           length};
    of_.write();
  }

  // None: rows of K are kept.
  Blocks* blocks() { return sets_ ? &sets_->blocks() : nullptr; }
  void refresh() { scores_.refresh(blocks()); }

  // How many variables there are now; and what a step costs, as a share of one over all of them.
  std::size_t variables() const { return narrow_.is_on() ? narrow_.at().size() : of_.m; }
  double share_of_step() const {
    if (sets_) return sets_->share_of_step();
    return static_cast<double>(variables()) / static_cast<double>(of_.m);
  }

  // Bytes of rows of K, with those of other threads that leave out as many variables.
  std::size_t bytes(const BatchLimits& limits) const {
    return of_.kept.bytes() + at_once(limits) * narrow_.held();
  }
  std::size_t exact_bytes(const BatchLimits& limits) const {
    return at_once(limits) * ExactProblem::bytes(of_.m);
  }
  // Whether there is room for all kernel values in float64.
  bool has_room(const BatchLimits& limits) const {
    return bytes(limits) + exact_bytes(limits) <= limits.bytes;
  }
  // How many problems threads may have at once.
  std::size_t at_once(const BatchLimits& limits) const {
    return std::min(limits.threads, of_.all.size());
  }
  // Bytes of the rows that a start needs; where there is none they are not asked for.
  std::size_t start_bytes() const {
    if (!of_.has_mass || sets_) return 0;
    const auto moved = std::ranges::count_if(of_.x, [](double x) { return x != 0; });
    return static_cast<std::size_t>(moved) * of_.width * sizeof(float);
  }
  // How many steps there are until rows of K may need more than these bytes: each step may make
  // rows for two variables, and steps in a span, which are few, for more that have moved. A few
  // there are always.
  std::int64_t within(const BatchLimits& limits) const {
    const std::size_t each = rows_.are_coded() ? sizeof(std::uint8_t) : sizeof(float);
    const std::size_t row = of_.width * each, used = bytes(limits);
    const std::size_t left = limits.bytes > used ? limits.bytes - used : 0;
    if (left / of_.width >= row) return chunk_;
    const auto some = static_cast<std::int64_t>(left / (2 * rows_.together() * row));
    return std::clamp(some, kFewSteps, chunk_);
  }

  const BatchCode& code_;
  Narrow& narrow_;
  KeptMoves& moves_;
  const Turn& turn_;
  ProblemData& of_;
  ProblemBounds bounds_;
  ProblemRows rows_;
  ProblemScores scores_;
  ExactSteps exact_;
  std::optional<WorkingSets> sets_;
  Relaxation relaxation_{};
  bool may_narrow_ = false;
  // The gap that is asked for, less what float32 may add in the end; the gap that scores in float32
  // are to show; and the violation at which steps end.
  double share_ = 0, goal_ = 0, stop_ = 0;
  double rough_gap_ = 1;  // the gap by the last rough intercepts
  double spent_ = 0;      // steps, in steps of all variables
  std::int64_t chunk_ = 0, steps_ = 0, negative_ = 0;
  int mistaken_ = 0, refreshes_ = 0;
  bool has_counted_ = false;              // the rows that have moved
  bool is_exact_ = false;                 // steps in float64
  bool is_finished_ = false;              // to the last digits
  bool foresees_ = false;                 // rows
  bool may_span_ = true, spans_ = false;  // what steps did
  BatchEnd end_ = BatchEnd::waiting;
};

}  // namespace widemargin
