// Working sets of one large problem whose rows of K are not kept: the values of a working set with
// itself are made, the pair steps stay in them, and the scores of all follow once for each variable
// that has moved. Where values lie between 0 and 1 the pair steps have rounded ones: the scores do
// not, so that the next set mends what that has done. Threads make kernel values; what comes out
// does not depend on them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "crew.hpp"
#include "gathered.hpp"
#include "kernel_rows.hpp"
#include "large_pages.hpp"
#include "pair_steps.hpp"

namespace widemargin {

// Strips that a thread takes at a time.
constexpr std::size_t kStripsAtOnce = 8;
// The share of a working set that stays. (0.5: as long, 0.7: 1.1 times, on 4,000 and 8,000 rows.)
constexpr double kKept = 0.3;
// Where one factor of all free variables does (batch.hpp): more than a set holds, with a gap from
// which on few come or leave. Gaps fall by a factor each, which tells the visits to come. It takes
// 64 bytes an entry, with what is around it.
constexpr std::size_t kFewFree = 4096, kOfFactor = 64;
constexpr double kNearEnd = 0.02;

// Where positions of a problem lie: runs of whole strips, and the row of each in the batch.
struct Places {
  struct Run {
    std::size_t position, strip, strips;
    std::size_t same;  // the first run of the same strips
  };
  std::vector<Run> runs;
  const std::int64_t* row;  // of each position
  std::size_t strip_of(std::size_t position, std::size_t& lane) const {
    std::size_t k = 0;
    while (k + 1 < runs.size() && runs[k + 1].position <= position) ++k;
    const std::size_t apart = position - runs[k].position;
    lane = apart % kStrip;
    return runs[k].strip + apart / kStrip;
  }
};

class Blocks {
 public:
  Blocks(const KernelTable& kernels, const PairTable& pairs, const KernelForm& form,
         const Strips<float>& strips, const Batch<float>& batch, Places places, std::size_t largest,
         std::size_t threads)
      : kernels_(kernels),
        pairs_(pairs),
        form_(form),
        strips_(strips),
        batch_(batch),
        places_(std::move(places)),
        team_(threads),
        is_rounded_(form.kind == KernelKind::rbf || form.kind == KernelKind::laplacian ||
                    form.kind == KernelKind::chi2) {
    // None of it is there before it is touched, so that small sets take no more time.
    const std::size_t width = in_strips(largest);
    K_ = LargePages(width * width * sizeof(float));
  }

  std::int64_t evaluations() const { return evaluations_; }
  // From now on pair steps have values in float32.
  void round_no_more() { is_rounded_ = false; }
  std::size_t size() const { return set_.size(); }

  // f = K x, anew.
  void make_scores(const double* x, std::size_t width, double* f) {
    std::fill(f, f + width, 0.0);
    std::vector<std::size_t> moved;
    std::vector<double> by;
    for (std::size_t p = 0; p < width; ++p)
      if (x[p] != 0) moved.push_back(p), by.push_back(x[p]);
    add(moved, by, f);
  }

  // How far the conditions of `all` are from holding, at its x and F: the largest violation.
  template <template <typename> class Rows>
  double look(const SmallProblem<float, Rows>& all) {
    constexpr float least = -std::numeric_limits<float>::infinity();
    rise_.resize(all.width), fall_.resize(all.width);
    most_rise_.fill(least), most_fall_.fill(least);
    free_ = 0;
    for (std::size_t p = 0; p < all.width; ++p) {
      const double x = all.x[p];
      const bool can_rise = x<all.upper[p], can_fall = x> all.lower[p];
      const float kink = all.kink != nullptr ? all.kink[p] : 0.0f;
      rise_[p] = can_rise ? (x < 0 ? kink : -kink) - all.F[p] : least;
      fall_[p] = can_fall ? (x > 0 ? kink : -kink) + all.F[p] : least;
      free_ += can_rise && can_fall && (all.kink == nullptr || x != 0);
      const std::size_t g = group_of(all, p);
      most_rise_[g] = std::max(most_rise_[g], rise_[p]);
      most_fall_[g] = std::max(most_fall_[g], fall_[p]);
    }
    float violation = all.sums > 0 ? least : 0.0f;
    for (std::size_t g = 0; g < groups(all); ++g) {
      const float up = most_rise_[g], down = most_fall_[g];
      violation = std::max(violation, all.sums > 0 ? up + down : std::max(up, down));
    }
    return violation;
  }

  // Variables strictly between their bounds, and not at a kink, by the last look.
  std::size_t free() const { return free_; }

  // Whether one factor of these does better than more pair steps, after some of them.
  template <class Limits>
  bool is_for_factor(double gap, const Limits& limits, std::int64_t steps) const {
    const double tol = limits.tol, bytes = static_cast<double>(limits.bytes);
    if (free_ <= kFewFree || free_ > kManyFree || !(kFarOff * tol < gap && gap <= kNearEnd))
      return false;
    const auto f = static_cast<double>(free_), made = static_cast<double>(steps) * kFewFree;
    const double to_come = made * std::log(gap / tol) / -std::log(gap);
    return f * f * kOfFactor <= bytes && f * f * f / 3 <= kOfVisit * to_come;
  }

  // One working set of up to `size` variables, by the last look: pair steps until its violation is
  // at most `stop`, or `most` are made. Then x has moved, and f with it.
  template <template <typename> class Rows, class Stop>
  PairSteps advance(const SmallProblem<float, Rows>& all, std::size_t size, double stop,
                    std::int64_t most, double* f, const Stop& is_over) {
    choose(all, size);
    const std::size_t q = set_.size(), width = in_strips(q);
    make_values(q, width);
    for (auto* vector : {&diagonal_, &ridge_, &F_, &kink_}) vector->assign(width, 0.0f);
    for (auto* vector : {&lower_, &upper_, &x_}) vector->resize(q);
    ways_.assign(q, 0);
    relaxation_ = {ways_.data()};
    room_.resize((all.sums > 1 ? 4 : 2) * width);
    for (std::size_t k = 0; k < q; ++k) {
      const std::size_t p = set_[k];
      diagonal_[k] = all.diagonal[p], ridge_[k] = all.ridge[p], F_[k] = all.F[p];
      lower_[k] = all.lower[p], upper_[k] = all.upper[p], x_[k] = all.x[p];
      if (all.kink != nullptr) kink_[k] = all.kink[p];
    }
    const auto done = is_rounded_ ? steps(small_problem<RoundedRows>(all, {rounded(), width}, q),
                                          pairs_.rounded32, stop, most, is_over)
                                  : steps(small_problem<StoredRows>(all, {values(), width}, q),
                                          pairs_.steps32, stop, most, is_over);
    std::vector<std::size_t> moved;
    std::vector<double> by;
    for (std::size_t k = 0; k < q; ++k) {
      const std::size_t p = set_[k];
      if (x_[k] == all.x[p]) continue;
      moved.push_back(p), by.push_back(x_[k] - all.x[p]);
      all.x[p] = x_[k];
    }
    add(moved, by, f);
    return done;
  }

 private:
  // Steps between two looks at whether it is over.
  static constexpr std::int64_t kSlice = 20'000;

  // The variables of the set, with its values in `rows`.
  template <template <typename> class Rows, template <typename> class AllRows>
  SmallProblem<float, Rows> small_problem(const SmallProblem<float, AllRows>& all,
                                          const Rows<float>& rows, std::size_t q) {
    return {rows,
            q,
            rows.width,
            diagonal_.data(),
            ridge_.data(),
            all.shift,
            lower_.data(),
            upper_.data(),
            x_.data(),
            F_.data(),
            room_.data(),
            all.sums,
            all.kink != nullptr ? kink_.data() : nullptr,
            &relaxation_};
  }
  template <template <typename> class Rows, class Stop>
  static PairSteps steps(const SmallProblem<float, Rows>& small, Descent<float, Rows> descend,
                         double stop, std::int64_t most, const Stop& is_over) {
    PairSteps done{0, 0, 0.0};
    while (done.steps < most) {
      const auto some = descend(small, stop, std::min(kSlice, most - done.steps));
      done.steps += some.steps, done.negative += some.negative, done.violation = some.violation;
      if (!(some.violation > stop) || some.steps == 0 || is_over()) break;
    }
    return done;
  }

  template <template <typename> class Rows>
  static std::size_t groups(const SmallProblem<float, Rows>& all) {
    return all.sums > 1 ? 2 : 1;
  }
  template <template <typename> class Rows>
  static std::size_t group_of(const SmallProblem<float, Rows>& all, std::size_t p) {
    return all.sums > 1 && !(all.upper[p] > 0) ? 1 : 0;
  }

  // A part of the set, that which came last, stays; the largest violators come. The first set has
  // variables from everywhere: of many equal violators it is as good, and extreme ones are few.
  template <template <typename> class Rows>
  void choose(const SmallProblem<float, Rows>& all, std::size_t size) {
    const bool is_first = set_.empty();
    const std::size_t kept =
        std::min(set_.size(), static_cast<std::size_t>(kKept * static_cast<double>(size)));
    set_.erase(set_.begin(), set_.end() - static_cast<std::ptrdiff_t>(kept));
    for (const auto p : set_) leave_out(p);
    const std::size_t each = (size - kept) / groups(all);
    for (std::size_t g = 0; g < groups(all); ++g) {
      const std::size_t some = is_first ? std::min<std::size_t>(each, 2) : each;
      if (is_first) spread(all, g, each - some);
      const float least_rise = all.sums > 0 ? -most_fall_[g] : 0.0f;
      const float least_fall = all.sums > 0 ? -most_rise_[g] : 0.0f;
      std::size_t left = some - take(all, g, rise_, least_rise, (some + 1) / 2);
      left -= take(all, g, fall_, least_fall, left);
      take(all, g, rise_, least_rise, left);
    }
  }
  template <template <typename> class Rows>
  void spread(const SmallProblem<float, Rows>& all, std::size_t g, std::size_t count) {
    std::vector<std::size_t> own;
    for (std::size_t p = 0; p < all.width; ++p)
      if (group_of(all, p) == g && all.lower[p] < all.upper[p]) own.push_back(p);
    const std::size_t most = std::min(count, own.size());
    for (std::size_t k = 0; k < most; ++k) {
      const std::size_t p = own[k * own.size() / most];
      set_.push_back(p), leave_out(p);
    }
  }
  // What is in the set is not taken again.
  void leave_out(std::size_t p) { rise_[p] = fall_[p] = -std::numeric_limits<float>::infinity(); }
  // Up to `count` of the largest merits of a group above `least`, the first ones of equal ones.
  template <template <typename> class Rows>
  std::size_t take(const SmallProblem<float, Rows>& all, std::size_t g,
                   const std::vector<float>& merits, float least, std::size_t count) {
    if (count == 0) return 0;
    found_.resize(all.width);
    std::size_t found = 0;
    const bool has_groups = groups(all) > 1;
    for (std::size_t p = 0; p < all.width; ++p) {
      found_[found] = key(merits[p], p);
      found += merits[p] > least && (!has_groups || group_of(all, p) == g);
    }
    found_.resize(found);
    if (found > count) {
      std::nth_element(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(count),
                       found_.end());
      found_.resize(count);
    }
    for (const auto one : found_) {
      const auto p = static_cast<std::size_t>(one & 0xffffffff);
      set_.push_back(p), leave_out(p);
    }
    return found_.size();
  }
  // Numbers in the order of falling merits, then of places.
  static std::uint64_t key(float merit, std::size_t p) {
    const auto bits = std::bit_cast<std::uint32_t>(merit);
    const std::uint32_t falls = bits >> 31 != 0 ? bits : ~bits & 0x7fffffff;
    return static_cast<std::uint64_t>(falls) << 32 | p;
  }

  // Where the values of the set begin, in float32 or rounded.
  float* values() const { return static_cast<float*>(K_.get()); }
  std::int16_t* rounded() const { return static_cast<std::int16_t*>(K_.get()); }

  // The kernel values of the set with itself.
  void make_values(std::size_t q, std::size_t width) {
    const std::size_t n = strips_.n;
    const auto set = strips_.ones != nullptr
                         ? ones_.fill(batch_, q, [&](std::size_t k) { return row_of(set_[k]); })
                         : copied_set(q, width);
    const auto batch = rows_.fill(batch_, q, [&](std::size_t k) { return row_of(set_[k]); });
    const auto rows_from = [&](std::size_t r) {
      Batch<float> some = batch;
      some.norms += r;
      some.count = std::min(q - r, kStrip);
      if (some.begin != nullptr)
        some.begin += r, some.end += r;
      else
        some.data += r * n;
      return some;
    };
    team_.run(width / kStrip, [&](std::size_t s) {
      const std::size_t first = s * kStrip;
      const auto own = set.part(s, kStrip);
      alignas(64) float tile[kStrip * kStrip];
      Target<float> target{is_rounded_ ? tile : values() + first,
                           nullptr,
                           is_rounded_ ? kStrip : width,
                           nullptr,
                           nullptr,
                           0,
                           0};
      target.past_caches = false;
      if (!is_rounded_) return kernels_.rows32(form_, own, batch, target, 0, 1);
      // Tiles on one side of the diagonal, which stay in cache, serve both.
      for (std::size_t r = first; r < q; r += kStrip) {
        const auto some = rows_from(r);
        std::int16_t* const along = rounded() + r * width + first;
        std::int16_t* const across = r > first ? rounded() + first * width + r : nullptr;
        ask_for(along, some.count, width);
        if (across != nullptr) ask_for(across, kStrip, width);
        kernels_.rows32(form_, own, some, target, 0, 1);
        pairs_.round(tile, some.count, width, along, across);
      }
    });
    const std::size_t spared = is_rounded_ ? width * (width - kStrip) / 2 : 0;
    evaluations_ += static_cast<std::int64_t>(q * width - spared);
  }

  // The set as samples in strips.
  Strips<float> copied_set(std::size_t q, std::size_t width) {
    const std::size_t n = strips_.n;
    columns_.assign(width * n, 0.0f), norms_.assign(width, 0.0f);
    for (std::size_t k = 0; k < q; ++k) {
      std::size_t lane;
      const std::size_t strip = places_.strip_of(set_[k], lane);
      const float* from = strips_.data + strip * kStrip * n + lane;
      float* to = columns_.data() + k / kStrip * kStrip * n + k % kStrip;
      norms_[k] = strips_.norms[strip * kStrip + lane];
      for (std::size_t j = 0; j < n; ++j) to[j * kStrip] = from[j * kStrip];
    }
    return {columns_.data(), norms_.data(), nullptr, nullptr, width, n};
  }

  // Lines of a tile are asked for before its values are made: most of them are in another cache,
  // and a store waits for each. (Regressions of 4,000 rows with C = 1 take 0.93 of the time.)
  static void ask_for(const std::int16_t* tile, std::size_t rows, std::size_t stride) {
    constexpr std::size_t line = 64 / sizeof(*tile);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t s = 0; s < kStrip; s += line) __builtin_prefetch(tile + r * stride + s, 1);
  }

  std::size_t row_of(std::size_t position) const {
    return static_cast<std::size_t>(places_.row[position]);
  }

  // f += K(:, moved) by.
  void add(const std::vector<std::size_t>& moved, const std::vector<double>& by, double* f) {
    if (moved.empty()) return;
    const auto batch =
        rows_.fill(batch_, moved.size(), [&](std::size_t k) { return row_of(moved[k]); });
    for (std::size_t k = 0; k < places_.runs.size(); ++k) {
      const auto& run = places_.runs[k];
      if (run.same < k) {
        std::copy_n(f + places_.runs[run.same].position, run.strips * kStrip, f + run.position);
        continue;
      }
      const auto strips = strips_.part(run.strip, run.strips * kStrip);
      const Target<float> target{
          nullptr, nullptr, 0, by.data(), f + run.position, 1, run.strips * kStrip};
      team_.run((run.strips + kStripsAtOnce - 1) / kStripsAtOnce, [&](std::size_t t) {
        const std::size_t begin = t * kStripsAtOnce;
        kernels_.rows32(form_, strips, batch, target, begin,
                        std::min(begin + kStripsAtOnce, run.strips));
      });
      evaluations_ += static_cast<std::int64_t>(moved.size() * run.strips * kStrip);
    }
  }

  const KernelTable& kernels_;
  const PairTable& pairs_;
  const KernelForm& form_;
  const Strips<float>& strips_;
  const Batch<float>& batch_;
  Places places_;
  Team team_;
  bool is_rounded_;  // the values of a set
  // What a variable can gain by rising and by falling, or minus infinity; the most of each sum.
  std::vector<float> rise_, fall_;
  std::array<float, 2> most_rise_{}, most_fall_{};
  std::vector<std::size_t> set_;  // in the order in which they came
  std::vector<std::uint64_t> found_;
  LargePages K_;
  std::size_t free_ = 0;
  std::vector<float> columns_, norms_, diagonal_, ridge_, F_, kink_, room_;
  PackedOnes ones_;
  std::vector<signed char> ways_;
  Relaxation relaxation_{};
  std::vector<double> lower_, upper_, x_;
  Gathered<float> rows_;
  std::int64_t evaluations_ = 0;
};

}  // namespace widemargin
