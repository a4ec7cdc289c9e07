// What makes rows of K for a problem of the batch engine, where steps or scores need them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "gathered.hpp"
#include "kept_parts.hpp"
#include "pair_steps.hpp"
#include "problem_data.hpp"
#include "turns.hpp"

namespace widemargin {

// Columns from which rows of K are made together where that is worth it.
constexpr std::size_t kWide = 24;
// Multiplications between two looks whether it is over, a millisecond or so; and what a value takes
// beside those of its columns.
constexpr std::size_t kLook = 1 << 23, kOfValue = 8;
// Where rows of K are foreseen: how many a thread makes at once, so that samples are read once for
// all; the rows of a problem, and the entries of each, that are worth it; the part of all rows that
// is made at most; and the part of that which is worth it. Two threads take 0.6 to 1.05 of the time
// for 2,000 to 3,500 rows of 100 to 800 columns, classifiers of which 0.2 to 0.9 are support
// vectors and regressions, and 0.65 to 1.25 for 1,000 (with one thread, or 20 entries, up to 1.5).
constexpr std::size_t kForeseen = 48, kForeseenRows = 750, kForeseenEntries = 64;
constexpr std::size_t kForeseenPart = 4, kForeseenLeast = 4;

// Rows of K by parts, which are kept for all problems.
class ProblemRows {
 public:
  ProblemRows(ProblemData& of, const KernelTable& kernels, const Turn& turn)
      : of_(of),
        kernels_(kernels),
        turn_(turn),
        together_(of.samples.strips.n >= kWide ? kTogether : 1) {}

  // As it was seen when rows were made.
  const bool& is_over() const { return is_over_; }
  // How many are made at once.
  std::size_t together() const { return is_coded_ ? 1 : together_; }

  // From now on rows are coded.
  void code() { is_coded_ = true; }
  bool are_coded() const { return is_coded_; }

  // For `made32` and `coded32`.
  MadeRows<float> made() {
    return {{of_.parts.data(), of_.group_begin.data(), of_.group.data(), of_.still.data(),
             of_.group.size(), this, &ProblemRows::make<float>, &is_over_}};
  }
  CodedRows<float> coded() {
    return {{of_.codes.data(), of_.group_begin.data(), of_.group.data(), of_.still.data(),
             of_.group.size(), this, &ProblemRows::make<std::uint8_t>, &is_over_},
            of_.kept.values()};
  }

  // Part g of the row of position p, in float32 or coded.
  template <typename Stored>
  const Stored* part(std::size_t p, std::size_t g) {
    const auto at = [&] {
      if constexpr (sizeof(Stored) == 1)
        return of_.codes[p] + of_.group[g];
      else
        return of_.parts[p] + of_.group[g];
    }();
    if (const Stored* known = __atomic_load_n(at, __ATOMIC_ACQUIRE); known != nullptr) return known;
    if constexpr (sizeof(Stored) == 1)
      make_codes(p, g);
    else
      make_part(p, g);
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
  }

  // All parts of some rows, some rows together. False: it was over before they were there.
  bool make_missing(const std::vector<std::size_t>& rows) {
    if (is_coded_) return true;  // they are made when they are added: that takes no time
    const auto& begin = of_.group_begin;
    std::array<std::size_t, kTogether> some;
    for (std::size_t own = 0, r = 0; own < of_.group.size(); ++own) {
      const std::size_t first = r;
      while (r < rows.size() && rows[r] < begin[own + 1]) ++r;
      for (std::size_t g = 0; g < of_.group.size(); ++g) {
        std::size_t count = 0;
        const auto flush = [&] {
          if (count > 0) make_parts(some.data(), count, own, g);
          count = 0;
        };
        for (std::size_t k = first; k < r; ++k) {
          if (is_known(rows[k], of_.group[g])) continue;
          if (is_over_) return false;
          some[count++] = sample_of(rows[k], own);
          if (count == kTogether) flush();
        }
        flush();
      }
    }
    return true;
  }

  // Whether it is worth it to foresee rows of a problem alone. Those of given values are there; it
  // was not tried where the sum of alpha is given.
  bool may_be_foreseen() const {
    return of_.all.size() == 1 && of_.sums <= 1 && !of_.has_mass && !of_.samples.is_given() &&
           of_.m >= kForeseenRows && entries_of_a_row() >= kForeseenEntries;
  }

  // Make rows of those that violate their conditions most, by all threads, where enough do that
  // have none: whether it has. At first all classified rows violate: there half of them have to.
  bool foresee(bool is_first) {
    const std::size_t most = of_.m / kForeseenPart;
    const std::size_t least = is_first && !of_.is_twofold ? of_.m / 2 : most / kForeseenLeast;
    auto rows = violating();
    if (rows.size() < least) return false;
    if (rows.size() > most) {
      const auto nth = rows.begin() + static_cast<std::ptrdiff_t>(most);
      const auto more = [&](const auto& a, const auto& b) { return a.second > b.second; };
      std::nth_element(rows.begin(), nth, rows.end(), more);
      rows.erase(nth, rows.end());
      std::ranges::sort(rows);
    }
    struct Task {
      std::size_t first, last, own;
    };
    std::vector<Task> tasks;
    for (std::size_t own = 0, r = 0; own < of_.group.size(); ++own) {
      const std::size_t first = r;
      while (r < rows.size() && rows[r].first < of_.group_begin[own + 1]) ++r;
      for (std::size_t k = first; k < r; k += kForeseen)
        tasks.push_back({k, std::min(k + kForeseen, r), own});
    }
    turn_.crew.run(tasks.size(), [&](std::size_t t, bool) {
      const auto [first, last, own] = tasks[t];
      std::array<std::size_t, kForeseen> some;
      Gathered<float> gathered;
      for (const std::size_t id : of_.group) {
        const std::size_t room = std::min(kForeseen, of_.kept.at_once(id));
        std::size_t count = 0;
        for (std::size_t k = first; k < last; ++k) {
          if (!is_known(rows[k].first, id)) some[count++] = sample_of(rows[k].first, own);
          if (count == 0 || (count < room && k + 1 < last)) continue;
          of_.kept.make(some.data(), count, of_.group[own], id, gathered);
          count = 0;
        }
      }
    });
    is_over_ = turn_.is_over();
    return true;
  }

  // Add the rows of some positions to f, one by one, so many times as `by` says.
  void add(const std::vector<std::size_t>& rows, const std::vector<double>& by, double* f) {
    if (!is_coded_) return add_parts<float>(rows, by, f, kernels_.add32);
    const auto add = [&](const std::uint8_t* base, const std::int64_t* place, std::size_t count,
                         std::size_t, const double* weights, std::size_t begin, std::size_t end,
                         double* sums) {
      kernels_.add_codes(of_.kept.values(), base, place, count, weights, begin, end, sums);
    };
    add_parts<std::uint8_t>(rows, by, f, add);
  }

 private:
  template <typename Stored, class Add>
  void add_parts(const std::vector<std::size_t>& rows, const std::vector<double>& by, double* f,
                 const Add& add) {
    constexpr std::size_t most = 64;
    for (std::size_t g = 0; g < of_.group.size(); ++g) {
      const std::size_t begin = of_.group_begin[g], end = of_.group_begin[g + 1];
      const Stored* base = nullptr;
      std::int64_t place[most];
      double weight[most];
      std::size_t count = 0;
      const auto flush = [&] {
        add(base, place, count, 1, weight, 0, end - begin, f + begin);
        count = 0;
      };
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const Stored* values = part<Stored>(rows[k], g);
        if (count == 0) base = values;
        place[count] = values - base, weight[count] = by[k];
        if (++count == most) flush();
      }
      if (count > 0) flush();
    }
  }

  template <typename Stored>
  static const Stored* make(void* self, std::size_t p, std::size_t g) {
    return static_cast<ProblemRows*>(self)->part<Stored>(p, g);
  }

  // The group of a position.
  std::size_t group_of(std::size_t p) const {
    std::size_t own = 0;
    while (p >= of_.group_begin[own + 1]) ++own;
    return own;
  }

  // Coded part g of row i.
  void make_codes(std::size_t i, std::size_t g) {
    const std::size_t own = group_of(i);
    of_.kept.make_coded(sample_of(i, own), of_.group[own], of_.group[g]);
  }

  // Part g of row i; and of others of its group that are likely to move soon.
  void make_part(std::size_t i, std::size_t g) {
    const std::size_t own = group_of(i);
    std::array<std::size_t, kTogether> chosen{i};
    std::array<float, kTogether> merit{};
    std::size_t count = 1;
    const std::size_t begin = of_.group_begin[own], id = of_.group[g];
    const std::size_t last = begin + of_.group_count[own];
    for (std::size_t p = begin; together_ > 1 && p < last; ++p) {
      const float value = merit_of(p);
      if (count == together_ && !(value > merit[count - 1])) continue;
      // Looked up for few: the parts of samples lie far apart.
      if (p == i || is_known(p, id)) continue;
      std::size_t k = count < together_ ? count++ : count - 1;
      for (; k > 1 && value > merit[k - 1]; --k) chosen[k] = chosen[k - 1], merit[k] = merit[k - 1];
      chosen[k] = p, merit[k] = value;
    }
    for (std::size_t r = 0; r < count; ++r) chosen[r] = sample_of(chosen[r], own);
    make_parts(chosen.data(), count, own, g);
  }

  // The parts g of some samples; now and then a look whether it is over.
  void make_parts(const std::size_t* samples, std::size_t count, std::size_t own, std::size_t g) {
    of_.kept.make(samples, count, of_.group[own], of_.group[g], gathered_);
    const std::size_t values = count * (of_.group_begin[g + 1] - of_.group_begin[g]);
    work_ += values * (of_.samples.strips.n + kOfValue);
    if (work_ < kLook) return;
    work_ = 0;
    is_over_ = turn_.is_over();
  }

  // Stored ones, on the average.
  std::size_t entries_of_a_row() const {
    const auto& batch = of_.samples.batch;
    if (batch.begin == nullptr) return batch.n;
    std::int64_t entries = 0;
    for (std::size_t r = 0; r < batch.count; ++r) entries += batch.end[r] - batch.begin[r];
    return static_cast<std::size_t>(entries) / batch.count;
  }

  // The positions without a row that violate their conditions, of two that a step would take, and
  // by how much.
  std::vector<std::pair<std::size_t, float>> violating() const {
    const float *up = of_.room.data(), *down = up + of_.width;
    float rise = 0, fall = 0;
    if (of_.sums > 0) {
      rise = fall = -std::numeric_limits<float>::infinity();
      for (std::size_t p = 0; p < of_.width; ++p)
        rise = std::max(rise, up[p] - of_.F[p]), fall = std::max(fall, down[p] + of_.F[p]);
    }
    const float middle = 0.5f * (rise - fall);
    std::vector<std::pair<std::size_t, float>> found;
    for (std::size_t g = 0; g < of_.group.size(); ++g)
      for (std::size_t p = of_.group_begin[g]; p < of_.group_begin[g] + of_.group_count[g]; ++p) {
        const float by = std::max(up[p] - of_.F[p] - middle, down[p] + of_.F[p] + middle);
        if (by > 0 && !is_known(p, of_.group[g])) found.emplace_back(p, by);
      }
    return found;
  }

  bool is_known(std::size_t p, std::size_t id) const {
    return __atomic_load_n(of_.parts[p] + id, __ATOMIC_RELAXED) != nullptr;
  }
  // The sample of a position of group `own`.
  std::size_t sample_of(std::size_t p, std::size_t own) const {
    return of_.kept.first(of_.group[own]) + p - of_.group_begin[own];
  }

  // How much a sample violates its conditions, where it has several places at the worst of them.
  float merit_of(std::size_t p) const {
    const std::size_t width = of_.width;
    const float *up = of_.room.data(), *down = up + width;
    float merit = std::max(up[p] - of_.F[p], down[p] + of_.F[p]);
    for (std::size_t s = 2 * width; s < of_.room.size(); s += 2 * width)
      merit = std::max({merit, up[s + p] - of_.F[p], down[s + p] + of_.F[p]});
    return merit;
  }

  ProblemData& of_;
  const KernelTable& kernels_;
  const Turn& turn_;
  const std::size_t together_;
  std::size_t work_ = 0;  // since the last look whether it is over
  bool is_over_ = false, is_coded_ = false;
  Gathered<float> gathered_;
};

}  // namespace widemargin
