// Many binary problems over the same samples, solved by pair steps, each in one loop. The samples
// lie in groups (classes) of whole strips; a problem has the samples of some groups, perhaps of one
// group twice, with other labels. A row of K falls into parts, one a group: parts that several
// problems need are made once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "factor_steps.hpp"
#include "kernel_rows.hpp"
#include "objective.hpp"
#include "pair_steps.hpp"
#include "span_steps.hpp"

namespace widemargin {

// One factor of all free variables (free_rows.py) may end a problem sooner: of up to so many, while
// the gap is so many times what is asked for, and where so many multiplications for each visit of a
// variable by pair steps that is to come are more than it takes.
constexpr std::size_t kManyFree = 8192;
constexpr double kFarOff = 10, kOfVisit = 20;

// Group g has the samples first[g] .. first[g] + count[g] - 1 of `rows`, in this order, and begins
// with the strip strip[g]; strip.back() is the number of all strips.
struct Groups {
  std::span<const std::int64_t> strip, count;
  std::span<const std::int64_t> rows;  // of the batch: one for each sample, without what pads
  std::size_t size() const { return count.size(); }
};

// All rows in float64, and their norms where they are samples; or, where the kernel values of all
// pairs are given, these: (rows x rows).
struct ExactRows {
  KernelForm form;
  Batch<double> batch;
  std::span<const double> norms;
  std::span<const double> given = {};
};

struct BatchSamples {
  KernelForm form;  // not where values are given, as are strips and batch
  Strips<float> strips;
  Batch<float> batch;
  Groups groups;
  std::span<const double> diagonal;  // of K, one for each row of the batch
  ExactRows exact;                   // the same rows
  bool is_given() const { return !exact.given.empty(); }
};

// The problems, one after the other: problem t has the groups group[group_end[t - 1]] .. and, for
// the samples of these, the numbers from end[t - 1] on.
struct BatchProblems {
  std::span<const std::int64_t> group, group_end, end;
  // The problem whose answer, scaled by the weights, problem t starts at; or -1: at its c, or near
  // an answer that `Chains` finds. It has the same groups, comes earlier, and no other one follows.
  std::span<const std::int64_t> after;
  std::span<const double> y, C;  // labels +1 and -1; weights
  std::span<const double> q;     // the linear term: a row has the loss L(q + rho - y (f + b))
  std::span<const double> mass;  // of each problem: what sum alpha is; NaN: without rho
  std::span<double> c;           // y alpha, in, where sums that are given are met, and out
  std::span<double> scores;      // K c, out
  bool squared;                  // the loss
  int intercept;                 // 0: none, 1: free, 2: penalized
  std::size_t size() const { return end.size(); }
  std::size_t begin_of(std::size_t t) const {
    return static_cast<std::size_t>(t > 0 ? end[t - 1] : 0);
  }
  std::size_t size_of(std::size_t t) const {
    return static_cast<std::size_t>(end[t]) - begin_of(t);
  }
  std::span<const std::int64_t> groups_of(std::size_t t) const {
    const auto begin = t > 0 ? group_end[t - 1] : 0;
    return group.subspan(static_cast<std::size_t>(begin),
                         static_cast<std::size_t>(group_end[t] - begin));
  }
  // Whether each row is there twice, as in regression: all with +1, then all with -1, of which one
  // at most has a loss. Then one variable stands for both, with a kink at zero:
  //   q alpha + q' alpha' = target x - q |x|,  x = alpha - alpha'.
  bool is_twofold(std::size_t t) const {
    const auto own = groups_of(t);
    const std::size_t half = own.size() / 2, begin = begin_of(t), m = size_of(t) / 2;
    if (own.size() % 2 != 0 || !std::isnan(mass[t])) return false;
    if (!std::ranges::equal(own.first(half), own.last(half))) return false;
    for (std::size_t i = begin; i < begin + m; ++i)
      if (!(y[i] > 0 && y[i + m] < 0 && C[i] == C[i + m] && q[i] + q[i + m] <= 0)) return false;
    return true;
  }
};

enum class BatchEnd : std::int64_t { waiting = 0, solved = 1, stopped = 2, stuck = 3, no_room = 4 };

// What is known of a problem at the end, by its own arithmetic: no proof.
struct BatchResult {
  double intercept, primal, dual, rho;
  std::int64_t steps, negative;
  BatchEnd end;
  // The losses in the primal objective, and what float32 may add to the relative gap; NaN where the
  // next problem of a chain is to be solved in any case.
  double losses, noise;
  double length = 1;  // of the sums that made the scores: see `KeptScores`
};

// Where scores of a start are those of other coefficients: the first place of these in the arrays
// of all problems, and how long the sums were.
struct Scored {
  std::size_t begin;
  double length;
};

struct BatchLimits {
  double tol;                  // relative gap (P - D) / max(|P|, |D|, floor)
  std::int64_t most;           // steps of a problem
  std::size_t bytes;           // of rows of K
  std::size_t threads;         // the caller's among them
  bool exactly;                // in float64, with all kernel values of a problem at once
  double hopeless;             // share of the largest objective below which no margin is likely
  double seconds;              // that problems share; infinite: none ends for the others
  double work;                 // of Newton's steps: multiplications a row and pair of a basis
  double moved;                // share of the rows: where more move soon, others take over
  std::function<bool()> stop;  // asked by the caller's thread now and then
};

// What is compiled for an instruction set, of what problems need.
struct BatchCode {
  KernelTable kernels;
  PairTable pairs;
  ObjectiveTable passes;
  FactorTable factor;
  SpanTable span;
};

// Returns how many kernel values were made.
std::int64_t solve_batch(const BatchCode& code, const BatchSamples& samples,
                         const BatchProblems& problems, const BatchLimits& limits,
                         std::span<BatchResult> results);

}  // namespace widemargin
