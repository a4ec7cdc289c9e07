// One large problem of the batch engine by working sets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "batch.hpp"
#include "blocks.hpp"
#include "pair_steps.hpp"
#include "problem_data.hpp"
#include "problem_scores.hpp"

namespace widemargin {

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

// Steps of one working set after the other, and how large these are.
class WorkingSets {
 public:
  // Whether they suit the problem, and there is room for them.
  static bool suit(const ProblemData& of, const BatchLimits& limits) {
    const auto& group = of.group;
    const bool is_twice = of.is_twofold || (group.size() > 1 && group.front() == group.back());
    return of.m >= (is_twice ? kBlockRowsTwice : kBlockRows) && of.all.size() == 1 &&
           !limits.exactly && !of.samples.is_given() && of.samples.strips.n <= kBlockColumns &&
           largest_within(limits.bytes) >= kLeastBlock;
  }

  WorkingSets(ProblemData& of, const BatchCode& code, const BatchLimits& limits)
      : of_(of),
        largest_(largest_within(limits.bytes)),
        blocks_(code.kernels, code.pairs, of.samples.form, of.samples.strips, of.samples.batch,
                places_of(of), std::min(largest_, of.m), limits.threads) {}

  Blocks& blocks() { return blocks_; }
  // The steps of a working set at which it is left as it is.
  std::int64_t most() const { return kStepsOfSet * static_cast<std::int64_t>(size_); }
  // What a step costs, as a share of one over all variables.
  double share_of_step() const {
    return kBlockStep * static_cast<double>(size_) / static_cast<double>(of_.m);
  }

  // Up to `some` steps of one working set, if anything violates more than `stop`, the gap being
  // `gap` and to be `goal`; then the gradient.
  template <class Stop>
  PairSteps advance(const SmallProblem<float, MadeRows>& problem, double stop, double goal,
                    double gap, std::int64_t some, ProblemScores& scores, const Stop& is_over) {
    const double before = blocks_.look(problem);
    if (!(before > stop)) return {0, 0, before};
    const auto free = static_cast<std::size_t>(kFreeRoom * static_cast<double>(blocks_.free()));
    size_ = std::min({std::max(size_, free), largest_, of_.m});
    const double target = before * std::clamp(kAim * goal / gap, kInner, kMostInner);
    auto done = blocks_.advance(problem, size_, std::max(target, 0.5 * stop),
                                std::min(some, most()), of_.f.data(), is_over);
    done.violation = before;  // that of all is not known yet
    of_.known.follow(of_.x);
    scores.take_slopes();
    return done;
  }

 private:
  static std::size_t largest_within(std::size_t bytes) {
    const double values = static_cast<double>(bytes) / sizeof(float);
    const auto most = static_cast<std::size_t>(std::sqrt(values));
    return std::min(kLargestBlock, std::max(most, kStrip) - kStrip);
  }

  static Places places_of(const ProblemData& of) {
    const auto &group = of.group, &begin = of.group_begin;
    Places places{{}, of.rows.data()};
    for (std::size_t g = 0; g < group.size(); ++g) {
      const auto strip = static_cast<std::size_t>(of.samples.groups.strip[group[g]]);
      const auto same = std::find(group.begin(), group.end(), group[g]) - group.begin();
      places.runs.push_back(
          {begin[g], strip, (begin[g + 1] - begin[g]) / kStrip, static_cast<std::size_t>(same)});
    }
    return places;
  }

  ProblemData& of_;
  std::size_t size_ = kFirstBlock, largest_;
  Blocks blocks_;
};

}  // namespace widemargin
