#include "fold_problems.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "crew.hpp"

namespace widemargin {

void lay_out(const FoldProblems& problems, std::size_t threads, const FoldPlaces& out) {
  const std::size_t folds = problems.folds, Cs = problems.Cs.size();
  const std::size_t m = problems.weights.size() / folds;
  const std::function<bool()> never = [] { return false; };
  Crew(threads, never).run(problems.end.size() * folds, [&](std::size_t task, bool) {
    const std::size_t k = task / folds, fold = task % folds;
    const auto first = static_cast<std::size_t>(k > 0 ? problems.end[k - 1] : 0);
    const std::size_t size = static_cast<std::size_t>(problems.end[k]) - first;
    const auto rows = problems.row.subspan(first, size);
    const auto y = problems.y.subspan(first, size);
    std::vector<double> weights(size);
    const double factor = problems.factors[fold * problems.end.size() + k];
    for (std::size_t i = 0; i < size; ++i)
      weights[i] =
          problems.weights[fold * m + static_cast<std::size_t>(rows[i])] * (y[i] > 0 ? factor : 1);
    for (std::size_t c = 0; c < Cs; ++c) {
      const std::size_t begin = (first * folds + size * fold) * Cs + size * c;
      std::ranges::copy(rows, out.row.begin() + static_cast<std::ptrdiff_t>(begin));
      std::ranges::copy(y, out.y.begin() + static_cast<std::ptrdiff_t>(begin));
      for (std::size_t i = 0; i < size; ++i) out.C[begin + i] = weights[i] * problems.Cs[c];
      std::ranges::fill(out.c.subspan(begin, size), 0.0);
    }
  });
}

}  // namespace widemargin
