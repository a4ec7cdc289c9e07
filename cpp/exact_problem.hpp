// Pair steps of a small problem of the batch engine in float64, with all kernel values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "batch.hpp"
#include "exact_face.hpp"
#include "gathered.hpp"
#include "pair_steps.hpp"
#include "problem_data.hpp"

namespace widemargin {

// The problem in float64. Padding is left out.
class ExactProblem {
 public:
  // Rows up to which Newton's steps come between pair steps, and how many of these: as many as
  // there are rows, up to so many. (28 fits of 1,200 to 3,500 rows with C of 1,000 and 10,000:
  // 1.1 times as long with 512, 1.15 with 1,024, 1.3 with as many as rows.)
  static constexpr std::size_t kMostFaced = 4096, kStepsOfFace = 256;

  ExactProblem(ProblemData& of, const BatchCode& code)
      : of_(of),
        code_(code),
        m_(of.m),
        width_(of.kept.all_values().K != nullptr ? in_vectors(m_) : in_strips(m_)),
        ways_(m_) {
    take_memory();
    of_.each([&](std::size_t p, std::size_t, std::size_t) { at_.push_back(p); });
    make_values();
    for (std::size_t r = 0; r < m_; ++r) {
      const std::size_t p = at_[r];
      lower_[r] = of_.lower[p], upper_[r] = of_.upper[p], x_[r] = of_.x[p];
      ridge_[r] = of_.all.squared && of_.C[p] > 0 ? 0.5 / of_.C[p] : 0.0;
      diagonal_[r] = K_[r * width_ + r] + ridge_[r] + of_.shift;
      kink_[r] = of_.q[p];
    }
    make_scores();
    for (std::size_t r = 0; r < m_; ++r)
      F_[r] = f_[r] + ridge_[r] * x_[r] + of_.shift * of_.total - of_.target[at_[r]];
  }

  // Bytes of all kernel values of m rows, and of a factor while it is moved to a larger place.
  static std::size_t bytes(std::size_t m) {
    const std::size_t basis = m <= kMostFaced ? std::min(in_strips(m), ExactFace::kMostBasis) : 0;
    return (m * in_strips(m) + 2 * basis * basis) * sizeof(double);
  }

  // Multiplications of Newton's steps so far.
  double work() const { return face_.work(); }

  static std::int64_t steps_of_face(std::size_t m) {
    return static_cast<std::int64_t>(std::min(m, kStepsOfFace));
  }

  // Pair steps until the violation is at most `stop`, or `most` of them, and Newton's between, of
  // so many multiplications in all; then the scores.
  PairSteps advance(double stop, std::int64_t most,
                    double work = std::numeric_limits<double>::infinity()) {
    const SmallProblem<double> problem{{K_, width_},
                                       m_,
                                       width_,
                                       diagonal_,
                                       ridge_,
                                       of_.shift,
                                       lower_,
                                       upper_,
                                       x_,
                                       F_,
                                       room_,
                                       of_.sums,
                                       of_.is_twofold ? kink_ : nullptr,
                                       &relaxation_};
    PairSteps done{0, 0, 0.0};
    for (;;) {
      const auto left = most - done.steps;
      const auto some = m_ <= kMostFaced ? std::min(left, steps_of_face(m_)) : left;
      const auto part = code_.pairs.steps64(problem, stop, some);
      done = {done.steps + part.steps, done.negative + part.negative, part.violation};
      if (!(done.violation > stop) || done.steps == most || face_.work() > work) break;
      face_.go(problem, work);
    }
    make_scores();
    for (std::size_t r = 0; r < m_; ++r) of_.x[at_[r]] = x_[r], of_.f[at_[r]] = f_[r];
    return done;
  }

 private:
  void make_scores() {
    std::fill_n(f_, width_, 0.0);
    of_.total = 0;
    for (std::size_t r = 0; r < m_; ++r) {
      of_.total += x_[r];
      if (x_[r] != 0)
        for (std::size_t s = 0; s < m_; ++s) f_[s] += x_[r] * K_[r * width_ + s];
    }
  }

  // All at once: small problems are many.
  void take_memory() {
    double** const vectors[] = {&lower_, &upper_, &x_, &F_, &diagonal_, &ridge_, &kink_, &f_};
    const std::size_t in_room = of_.sums > 1 ? 4 : 2, count = std::size(vectors) + in_room;
    memory_.reset(std::aligned_alloc(64, (m_ + count) * width_ * sizeof(double)));
    if (!memory_) throw std::bad_alloc();
    K_ = static_cast<double*>(memory_.get());
    double* next = K_ + m_ * width_;
    std::fill_n(next, count * width_, 0.0);
    for (double** vector : vectors) *vector = next, next += width_;
    room_ = next;
    std::fill_n(diagonal_, width_, 1.0);
  }

  // The kernel values of all rows with each other.
  void make_values() {
    const auto& exact = of_.samples.exact;
    const auto row_of = [&](std::size_t r) { return static_cast<std::size_t>(of_.rows[at_[r]]); };
    if (const auto known = of_.kept.all_values(); known.K != nullptr) {
      for (std::size_t r = 0; r < m_; ++r) {
        const double* from = known.K + row_of(r) * known.width;
        double* K = K_ + r * width_;
        for (std::size_t s = 0; s < m_; ++s) K[s] = from[row_of(s)];
        std::fill(K + m_, K + width_, 0.0);
      }
      return;
    }
    std::vector<std::int64_t> rows;
    for (std::size_t r = 0; r < m_; ++r) rows.push_back(of_.rows[at_[r]]);
    Packed packed;
    packed.fill(exact.batch, exact.norms, rows);
    Gathered<double> gathered;
    const auto batch = gathered.fill(exact.batch, m_, row_of);
    code_.kernels.rows64(exact.form, packed.strips(m_, exact.batch.n), batch,
                         {K_, nullptr, width_, nullptr, nullptr, 0, 0, nullptr, nullptr, false}, 0,
                         width_ / kStrip);
  }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  ProblemData& of_;
  const BatchCode& code_;
  std::size_t m_, width_;
  std::unique_ptr<void, Free> memory_;
  double *K_, *lower_, *upper_, *x_, *F_, *diagonal_, *ridge_, *kink_, *f_, *room_;
  std::vector<std::size_t> at_;
  std::vector<signed char> ways_;
  Relaxation relaxation_{ways_.data()};
  ExactFace face_{code_.factor};
};

}  // namespace widemargin
