#include "given_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace widemargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// What bounds lose to rounding: see numerics/rounding.py.
constexpr double kSlack = 1 + 1e-6;
// What is left of bounds is rounding below this share of a sum.
constexpr double kNear = 1e-9;
// Multiples of it lie evenly, up to whole numbers: a start has rows from everywhere.
const double kGolden = 0.5 * (std::sqrt(5.0) - 1.0);

// A sum of numbers, exactly: as numbers of which each one ends where the next one begins.
class ExactSum {
 public:
  void add(double x) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      double y = parts_[k];
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0) parts_[kept++] = low;
      x = high;
    }
    parts_.resize(kept);
    parts_.push_back(x);
  }

  // The nearest number.
  double rounded() const {
    std::size_t k = parts_.size();
    if (k == 0) return 0;
    double high = parts_[--k], low = 0;
    while (k > 0 && low == 0) {
      const double x = high, y = parts_[--k];
      high = x + y, low = y - (high - x);
    }
    // Half way between two numbers what is left decides.
    if (k > 0 && ((low < 0 && parts_[k - 1] < 0) || (low > 0 && parts_[k - 1] > 0))) {
      const double twice = 2 * low, other = high + twice;
      if (twice == other - high) high = other;
    }
    return high;
  }

 private:
  std::vector<double> parts_;
};

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

double missing(std::span<const double> alpha, double total) {
  ExactSum sum;
  sum.add(total);
  for (const double one : alpha)
    if (one != 0) sum.add(-one);
  return sum.rounded();
}

void fill(std::span<const double> C, double total, bool bounded, std::span<double> alpha) {
  const std::size_t m = C.size();
  const double most = bounded ? 1.0 : 2.0 * total / sum_of(C);
  // In their order each place is one of three steps from the last one (Sos 1958).
  std::size_t low = 0, high = 0;  // those nearest to 0 and to 1
  double least = 1, largest = 0;
  for (std::size_t i = 1; i < m; ++i) {
    const double whole = static_cast<double>(i) * kGolden, place = whole - std::floor(whole);
    if (place < least) least = place, low = i;
    if (place > largest) largest = place, high = i;
  }
  double reached = 0;
  for (std::size_t k = 0, i = 0; k < m; ++k) {
    const double own = bounded ? C[i] : C[i] * most;
    reached += own;
    alpha[i] = std::min(std::max(total - (reached - own), 0.0), own);
    i = i + low < m ? i + low : i < high ? i + low - high : i - high;
  }
}

void change(std::span<const double> alpha, std::span<const double> C, double total, bool bounded,
            std::span<double> moved) {
  const double lack = missing(alpha, total);
  const std::size_t m = alpha.size();
  std::fill(moved.begin(), moved.end(), 0.0);
  if (lack == 0) return;
  // Whether `moved` is as much as it may be, and its share that is needed.
  const auto suffices = [&] {
    const double there = sum_of(moved);
    const double share = there > 0 ? std::abs(lack) / there * kSlack : kInfinity;
    if (!(share <= kMostRepaired)) return false;
    for (auto& one : moved) one *= share;
    return true;
  };
  const bool to_bounds = lack > 0 && bounded;
  if (!to_bounds) {
    std::copy(alpha.begin(), alpha.end(), moved.begin());
    if (suffices()) return;
  } else {
    for (std::size_t i = 0; i < m; ++i) moved[i] = alpha[i] > 0 ? C[i] - alpha[i] : 0.0;
    if (suffices()) return;
    for (std::size_t i = 0; i < m; ++i) moved[i] = C[i] - alpha[i];
    if (suffices()) return;
    // Near the largest sum there is all of it is rounding.
    if (sum_of(moved) <= kNear * total && missing(C, total) <= 0) return;
  }
  std::fill(moved.begin(), moved.end(), kInfinity);
}

}  // namespace widemargin
