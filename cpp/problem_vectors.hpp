// What the batch engine has of each sample of a problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "intercept.hpp"
#include "kept_scores.hpp"

namespace widemargin {

// The vectors of a problem, by positions: see batch.cpp. Those that follow it have the same groups,
// and use the memory again.
struct ProblemVectors {
  KeptScores known_;
  std::vector<std::size_t> begin_, id_, counts_;
  std::vector<std::int64_t> rows_;
  std::vector<double> lower_, upper_, x_, y_, q_, C_, f_;
  // y q; the same less the levels. Of rows that are there twice half the difference of their q, and
  // q_ is half of what is missing between them.
  std::vector<double> target_, near_;
  std::vector<Line> lines_;  // none without a free intercept and without rho
  std::vector<float> diagonal_, ridge_, F_, room_, kink_;
  std::vector<const float* const*> parts_;
  std::vector<std::pair<double, double>> breaks_;
};

}  // namespace widemargin
