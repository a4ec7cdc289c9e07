// The scores f = K x of a problem of the batch engine, and the gradient by them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "batch.hpp"
#include "batch_sums.hpp"
#include "blocks.hpp"
#include "crew.hpp"
#include "problem_bounds.hpp"
#include "problem_data.hpp"
#include "problem_rows.hpp"

namespace widemargin {

// Rows that count for scores in float64: those with alpha > 0, a loss, or so much less than one.
constexpr double kClose = 0.05;

// Scores in float32 that pair steps keep current, and that are made again where rounding has used
// up their digits: by rows that are kept, or by `blocks`, where there are some.
class ProblemScores {
 public:
  ProblemScores(ProblemData& of, ProblemRows& rows, ProblemBounds& bounds, const BatchCode& code,
                const Turn& turn)
      : of_(of),
        rows_(rows),
        bounds_(bounds),
        kernels_(code.kernels),
        passes_(code.passes),
        turn_(turn) {}

  // Whether those of the rows that count are made in float64.
  bool is_refined() const { return is_refined_; }
  void refine_from_now_on() { is_refined_ = true; }
  // Whether scores that working sets have added up are as near as their bounds say.
  bool is_as_bounded() const { return of_.is_flat && !of_.known.is_long(); }

  // Back to the answer zero, whose scores are known.
  void restart() {
    std::fill(of_.x.begin(), of_.x.end(), 0.0);
    std::fill(of_.f.begin(), of_.f.end(), 0.0);
    of_.known.start(of_.width);
    of_.total = 0;
  }

  // Begin without scores.
  void start(Blocks* blocks) {
    of_.known.start(of_.width);
    refresh(blocks);
  }
  // Begin with scores of the start, or with those of coefficients near it.
  void start(const Scored& scored, Blocks* blocks) {
    const auto& all = of_.all;
    const std::size_t at = of_.at;
    std::vector<double> x(of_.width);
    of_.each_group([&](std::size_t p, std::size_t i, std::size_t, std::size_t count) {
      std::copy_n(&all.c[scored.begin + i - at], count, &x[p]);
      std::copy_n(&all.scores[scored.begin + i - at], count, &of_.f[p]);
    });
    of_.known.start(x, of_.f, scored.length);
    if (scored.begin == at)
      take_gradient();
    else
      refresh(blocks);
  }

  // The scores anew, in float64 sums; and the gradient by them.
  void refresh(Blocks* blocks) {
    auto& known = of_.known;
    if (blocks != nullptr) {
      blocks->make_scores(of_.x.data(), of_.width, of_.f.data());
      known.start(of_.width);
      known.follow(of_.x);
    } else {
      const auto& moved = known.move_to(of_.x, !of_.is_flat || of_.may_curve || is_refined_);
      if (rows_.make_missing(moved))
        rows_.add(moved, known.by(), known.scores().data());
      else
        restart();
      of_.f = known.scores();
    }
    if (is_refined_) refine();
    take_gradient();
  }

  // The scores by the gradient as it is.
  void take_scores() {
    of_.add_up();
    passes_.scores(of_.objective(), of_.F.data(), of_.shift * of_.total, of_.near.data(),
                   of_.f.data());
  }
  // The gradient by the scores.
  void take_gradient() {
    of_.add_up();
    if (!of_.is_plain || is_refined_) come_near();
    take_slopes();
  }
  // The same, less the levels that are known.
  void take_slopes() {
    of_.add_up();
    passes_.gradient(of_.objective(), of_.shift * of_.total, of_.near.data(), of_.F.data());
  }

 private:
  // The levels that -F of rows that can move ends at are taken off it: float32 has its digits near
  // zero, and pairs see differences alone.
  void come_near() {
    (void)bounds_.gap();
    for (std::size_t k = 0; k < of_.lines.size(); ++k)
      for (std::size_t p = 0; p < of_.width; ++p)
        if (of_.sums == 1 || of_.lines[k].C[p] != 0)
          of_.near[p] = of_.margin * of_.target[p] - bounds_.level(k);
    if (of_.has_mass)
      of_.unit = std::max(of_.unit, std::abs(bounds_.b()) + std::abs(bounds_.rho()));
  }

  // Scores in float64 of the rows that count.
  void refine() {
    (void)bounds_.gap();
    std::vector<std::int64_t> support, rows;
    std::vector<std::size_t> at;
    std::vector<double> weight;
    of_.each([&](std::size_t p, std::size_t, std::size_t) {
      const double x = of_.x[p];
      if (x != 0) support.push_back(of_.rows[p]), weight.push_back(x);
      if (x != 0 || (of_.C[p] > 0 && bounds_.slack(p) > -kClose * of_.unit)) at.push_back(p);
    });
    for (const auto p : at) rows.push_back(of_.rows[p]);
    std::vector<double> sums(rows.size());
    const std::array support_end{static_cast<std::int64_t>(support.size())};
    const std::array row_end{static_cast<std::int64_t>(rows.size())};
    const BatchSums asked{of_.samples.exact, support, support_end, rows, row_end, {}, weight, sums};
    sum_problem(kernels_, asked, turn_.crew, turn_.is_caller);
    of_.kept.count(static_cast<std::int64_t>(support.size() * rows.size()));
    if (turn_.crew.stopped(turn_.is_caller)) return;  // parts of sums may be there
    for (std::size_t k = 0; k < at.size(); ++k) of_.f[at[k]] = sums[k];
  }

  ProblemData& of_;
  ProblemRows& rows_;
  ProblemBounds& bounds_;
  const KernelTable& kernels_;
  const ObjectiveTable& passes_;
  const Turn& turn_;
  bool is_refined_ = false;
};

}  // namespace widemargin
