// When a problem of the batch engine is solved in float64, and how that ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "batch.hpp"
#include "exact_face.hpp"
#include "exact_problem.hpp"
#include "problem_bounds.hpp"
#include "problem_data.hpp"
#include "turns.hpp"

namespace widemargin {

// The violation at which steps end first, as a share of tol, and how it falls if the gap is larger.
constexpr double kViolation = 0.3, kFall = 0.25;
// Steps in float64 between two looks at the gap; and how many of those that come before each of
// Newton's.
constexpr std::int64_t kStepsExactly = 100, kFacesBetween = 4;

// Rows of problems that are solved to the last digits of float64, for as much time again; where
// values are given, or are products of rows, for less; the violation at which that ends, as a share
// of margins or targets, and the steps a row.
constexpr std::size_t kExactly = 64, kExactlyCheap = 128;
constexpr double kDigits = 1e-13;
constexpr std::int64_t kStepsOfRow = 100;
// The same of cheap problems of more than kExactly rows. Ten pairs of 120 rows and 20 columns, of
// products of rows, take 14, 8.5 and 6.5 ms with 100, 20 and 10, and 4.8 ms without (C = 1; C = 0.1
// 3.1, 3.4, 3.4 and 1.7), and LIBSVM 8 ms; pairs of iris end within 10.
constexpr std::int64_t kStepsOfCheap = 10;
// Columns of which products cost little: 325 pairs of 80 rows and 617 columns take 82 ms, not 35,
// where their last digits are looked for.
constexpr std::size_t kCheapColumns = 128;
// The same of problems that begin in float64. Pairs of 10 and 20 rows take two to four a row. Two
// fits with C = 10,000 that need more took 1.3 and 1.6 times as long with 100, 1.06 and 1.15 with
// 20.
constexpr std::int64_t kStepsAtOnce = 20;
// Steps a row after which few rows go on in float64, with Newton's steps over the free variables,
// where float32 has not solved them: more where there are more than kSome; fewer where two sums are
// given, whose pair steps are slow where classes overlap; and as a share of what a factor of the
// free variables takes. Then the most of them, a row and in all. (120 drawn fits of all forms of
// 400 to 1,000 rows, C to 1e5: 0.98, 0.91, 0.90 and 0.90 of the time without, as geometric means,
// with 5, 10, 20 and 40 in float32; 0.45, 0.42, 0.43 and 0.43 of the sum. 500 of 300 to 1,024 rows:
// 1, 0.99, 0.98 and 0.99 with shares of 0.05, 0.2, 0.5 and 1. 250: as long with 100 a row at most
// as with any number; with 30 a fit that others end takes 20 s, not 1.4.)
constexpr std::size_t kSome = 1024;
constexpr double kStepsInFloat = 10, kStepsOfSome = 30, kStepsOfTwoSums = 2, kShareOfFactor = 0.2;
constexpr std::int64_t kMostOfRow = 100, kMostOfProblem = 100'000;
// There a margin is found where pair steps alone see none: this share of what is hopeless for them.
constexpr double kHopelessFaced = 1e-4;
// Steps a row in which the gap falls or the dual objective rises; else the problem is given up. 30
// problems of 20 to 100 rows, of products of columns of 1e-4 to 1e4, that are not solved to 1e-4
// take 2.7 s, not 4.3 s, with any number from 10 to 100; 30 of 200 rows with C = 1,000, not solved
// to 1e-6, 1.4 s, not 2.1 s. Of 177 others 141 are solved; 100 gives up 4 of these, 30 would 14,
// which working sets solve in as long.
constexpr std::size_t kPatientStepsExactly = 100;

class ExactSteps {
 public:
  // `steps` and those along a `negative` curvature are counted up.
  ExactSteps(ProblemData& of, ProblemBounds& bounds, const BatchCode& code, const Turn& turn,
             std::int64_t& steps, std::int64_t& negative)
      : of_(of), bounds_(bounds), code_(code), turn_(turn), steps_(steps), negative_(negative) {}

  // Whether the problem has so few rows that its last digits take as long as the rest.
  bool are_few() const { return of_.m <= kExactly; }
  // The same, also of problems whose values cost little: there these digits have fewer steps.
  bool are_cheap() const {
    const auto& samples = of_.samples;
    const bool is_linear = samples.form.kind == KernelKind::linear;
    const bool is_cheap = samples.is_given() || (is_linear && samples.strips.n <= kCheapColumns);
    return are_few() || (is_cheap && of_.m <= kExactlyCheap);
  }

  // Steps until the gap is this share of the objective, or no more are worth it.
  BatchEnd run(const BatchLimits& limits, double share) {
    if (!(of_.unit > 0)) of_.unit = 1;
    const double basis = static_cast<double>(rank());
    const double work = limits.work * static_cast<double>(of_.m) * basis * basis;
    ExactProblem exact(of_, code_);
    double stop = kViolation * limits.tol * of_.unit;
    const auto rows = static_cast<std::int64_t>(of_.m);
    const bool is_faced = of_.m <= ExactProblem::kMostFaced;
    const auto between = is_faced ? kFacesBetween * ExactProblem::steps_of_face(of_.m) : rows;
    const auto chunk = std::max(kStepsExactly, between);
    const auto enough = is_faced ? std::min(kMostOfRow * rows, kMostOfProblem) : limits.most;
    const auto most = steps_ + std::min(limits.most, enough);
    const std::size_t patience = kPatientStepsExactly * of_.m;
    double before = -std::numeric_limits<double>::infinity();
    for (;; before = bounds_.dual()) {
      const auto done = exact.advance(stop, std::min(chunk, most - steps_), work);
      count(done);
      if (negative_ > 0 && !of_.may_curve) return BatchEnd::stuck;
      const bool settled = !(done.violation > stop) || done.steps == 0;
      if (bounds_.gap() <= share) return BatchEnd::solved;
      if (settled && (stop *= kFall) < digits()) return BatchEnd::stuck;
      if (steps_ >= most || exact.work() > work || !bounds_.has_fallen(steps_, patience) ||
          bounds_.is_hopeless(before, (is_faced ? kHopelessFaced : 1) * limits.hopeless))
        return BatchEnd::stuck;
      if (turn_.is_over()) return BatchEnd::stopped;
    }
  }

  // Whether Newton's steps are likely to take less time than pair steps that are to come.
  bool are_due() const {
    const double m = static_cast<double>(of_.m), steps = static_cast<double>(steps_);
    const double few = m * (of_.m > kSome  ? kStepsOfSome
                            : of_.sums > 1 ? kStepsOfTwoSums
                                           : kStepsInFloat);
    if (steps < few || !may_be()) return false;
    const double k = static_cast<double>(most_of_basis());
    return steps >= few + kShareOfFactor * k * k * k / m;
  }
  // Whether these may take the problem.
  bool may_be() const {
    return of_.m <= ExactProblem::kMostFaced && !of_.may_curve && negative_ == 0 &&
           most_of_basis() <= ExactFace::kMostBasis;
  }

  // Solve a problem of few rows to the last digits of float64; whether the gap is this share of the
  // objective then.
  bool to_last_digits(double share) {
    const auto rows = static_cast<std::int64_t>(of_.m);
    ExactProblem exact(of_, code_);
    const auto done = exact.advance(digits(), kStepsAtOnce * rows);
    count(done);
    if (!(bounds_.gap() <= share)) return false;
    if (done.steps == kStepsAtOnce * rows) {
      exact.advance(digits(), (kStepsOfRow - kStepsAtOnce) * rows);
      (void)bounds_.gap();
    }
    return true;
  }
  // The last digits of one that is solved.
  void finish() {
    const auto most = are_few() ? kStepsOfRow : kStepsOfCheap;
    ExactProblem(of_, code_).advance(digits(), static_cast<std::int64_t>(of_.m) * most);
  }

 private:
  void count(const PairSteps& done) { steps_ += done.steps, negative_ += done.negative; }

  // How many variables a basis may have, and those that are free now: of products of rows no more
  // than columns, and one.
  std::size_t rank() const {
    const auto& samples = of_.samples;
    const bool is_linear = !samples.is_given() && samples.form.kind == KernelKind::linear;
    const bool is_low = is_linear && of_.sums <= 1 && !of_.all.squared;
    return is_low ? std::min(of_.m, samples.strips.n + 1) : of_.m;
  }
  std::size_t most_of_basis() const { return std::min(of_.free(), rank()); }

  // The violation that is as small as float64 can tell.
  double digits() const { return kDigits * (of_.unit > 0 ? of_.unit : 1.0); }

  ProblemData& of_;
  ProblemBounds& bounds_;
  const BatchCode& code_;
  const Turn& turn_;
  std::int64_t &steps_, &negative_;
};

}  // namespace widemargin
