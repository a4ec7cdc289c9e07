#include "batch_sums.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "all_values.hpp"
#include "gathered.hpp"
#include "lane_sums.hpp"

namespace widemargin {
namespace {

std::size_t begin_at(std::span<const std::int64_t> end, std::size_t t) {
  return static_cast<std::size_t>(t > 0 ? end[t - 1] : 0);
}

// The sums of the rows first .. last - 1, of values that are known.
void sum_known(const BatchSums& sums, const StoredRows<double>& K, std::size_t first,
               std::size_t last, Crew& crew, bool is_caller) {
  auto t = static_cast<std::size_t>(
      std::ranges::upper_bound(sums.row_end, static_cast<std::int64_t>(first)) -
      sums.row_end.begin());
  for (std::size_t r = first; r < last && !crew.stopped(is_caller); ++r) {
    while (static_cast<std::size_t>(sums.row_end[t]) <= r) ++t;
    const std::size_t s = begin_at(sums.support_end, t);
    const std::size_t k = static_cast<std::size_t>(sums.support_end[t]) - s;
    const std::int64_t* const support = sums.support.data() + s;
    const double* const weight = sums.weight.data() + s;
    const double* row = K.K + static_cast<std::size_t>(sums.row[r]) * K.width;
    std::array<double, 4> part{};  // independent sums
    std::size_t j = 0;
    for (; j + 4 <= k; j += 4)
      for (std::size_t l = 0; l < 4; ++l) part[l] += weight[j + l] * row[support[j + l]];
    for (; j < k; ++j) part[0] += weight[j] * row[support[j]];
    sums.out[r] = (part[0] + part[1]) + (part[2] + part[3]);
  }
}

// Rows that are scored together; bytes of support vectors that are packed at a time.
constexpr std::size_t kRows = 192, kPackedBytes = 4 << 20;
// Support vectors that are taken together where many problems share their kernel values.
constexpr std::size_t kVectors = 64;

// Some rows of a problem, whose k support vectors begin at s0: sums of those of each strip.
void sum_rows(const KernelTable& kernels, const BatchSums& sums, std::size_t s0, std::size_t k,
              std::span<const std::size_t> rows, Crew& crew, bool is_caller) {
  const auto& all = sums.rows;
  std::vector<double> found(kRows);
  const std::size_t n = all.batch.n, some = kPackedBytes / (sizeof(double) * (n + 1));
  const std::size_t size = std::max(some / kStrip * kStrip, kStrip);
  Packed packed;
  Gathered<double> gathered;
  std::vector<double> weights;
  for (std::size_t first = 0; first < k || first == 0; first += size) {
    const std::size_t vectors = std::min(k - first, size);
    packed.fill(all.batch, all.norms, sums.support.subspan(s0 + first, vectors));
    weights.assign(packed.norms.size(), 0.0);
    const auto from = static_cast<std::ptrdiff_t>(s0 + first);
    std::copy_n(sums.weight.begin() + from, vectors, weights.begin());
    const auto X = packed.strips(vectors, n);
    for (std::size_t r = 0; r < rows.size() && !crew.stopped(is_caller); r += kRows) {
      const std::size_t count = std::min(rows.size() - r, kRows);
      const auto batch = gathered.fill(all.batch, count, [&](std::size_t i) {
        return static_cast<std::size_t>(sums.row[rows[r + i]]);
      });
      for (std::size_t i = 0; i < count; ++i) found[i] = first == 0 ? 0.0 : sums.out[rows[r + i]];
      Target<double> target{nullptr, nullptr, 0, nullptr, nullptr, 0, 0};
      target.back_weights = weights.data(), target.back = found.data();
      kernels.rows64(all.form, X, batch, target, 0, weights.size() / kStrip);
      for (std::size_t i = 0; i < count; ++i) sums.out[rows[r + i]] = found[i];
    }
  }
}

// One problem whose support vectors are among its rows: of two of them the value is made once, for
// both. Tasks have a block of them, with itself and those before it, or a part of the other rows;
// what comes out does not depend on their order.
class OwnSums {
 public:
  // `place` is to work in: -1 for each sample.
  OwnSums(const BatchSums& sums, std::size_t t, std::size_t cut, std::vector<std::int64_t>& place)
      : sums_(sums), s0_(begin_at(sums.support_end, t)), cut_(cut) {
    const std::size_t r0 = begin_at(sums.row_end, t);
    const auto r1 = static_cast<std::size_t>(sums.row_end[t]);
    k_ = static_cast<std::size_t>(sums.support_end[t]) - s0_;
    const auto& all = sums.rows;
    const std::size_t most = std::max(kPackedBytes / (sizeof(double) * (all.batch.n + 1)), kStrip);
    block_ = (k_ / kSumBlocks + kStrip) / kStrip * kStrip;
    const auto place_of = [&](std::int64_t row) -> std::int64_t& {
      return place[static_cast<std::size_t>(row)];
    };
    const bool may_own = k_ >= kLeastOwn && block_ <= most;
    const auto support = sums.support.subspan(s0_, may_own ? k_ : 0);
    for (std::size_t s = 0; s < support.size(); ++s)
      place_of(support[s]) = static_cast<std::int64_t>(s);
    for (std::size_t r = r0; r < r1; ++r) {
      const auto own = may_own ? place_of(sums.row[r]) : -1;
      if (own < 0)
        others_.push_back(r);
      else
        own_.push_back({r, static_cast<std::size_t>(own)});
    }
    bool is_each_once = may_own;
    for (std::size_t s = 0; s < support.size(); ++s)
      is_each_once = is_each_once && place_of(support[s]) == static_cast<std::int64_t>(s);
    for (const auto row : support) place_of(row) = -1;
    if (is_each_once && own_.size() >= k_) {
      blocks_ = (k_ + block_ - 1) / block_;
      parts_.resize(blocks_ * k_);
    } else {
      for (const auto& [r, s] : own_) others_.push_back(r);
      own_.clear();
    }
  }

  std::size_t tasks() const { return blocks_ + cut_; }

  void run(const KernelTable& kernels, std::size_t task, Crew& crew, bool is_caller) {
    if (task >= blocks_) {
      task -= blocks_;
      const std::size_t m = others_.size(), first = m * task / cut_, last = m * (task + 1) / cut_;
      sum_rows(kernels, sums_, s0_, k_, std::span(others_).subspan(first, last - first), crew,
               is_caller);
      return;
    }
    const std::size_t J = blocks_ - 1 - task;  // the longest first
    const auto& all = sums_.rows;
    const std::size_t n = all.batch.n, begin = J * block_, count = std::min(block_, k_ - begin);
    double* const out = parts_.data() + J * k_;
    const double* const weight = sums_.weight.data() + s0_;
    Packed packed;
    packed.fill(all.batch, all.norms, sums_.support.subspan(s0_ + begin, count));
    const std::size_t width = packed.norms.size();
    std::vector<double> weights(width), forth(width);
    std::copy_n(weight + begin, count, weights.begin());
    Gathered<double> gathered;
    for (std::size_t first = 0; first <= begin; first += block_) {
      if (crew.stopped(is_caller)) return;
      const auto batch = gathered.fill(all.batch, std::min(block_, k_ - first), [&](std::size_t i) {
        return static_cast<std::size_t>(sums_.support[s0_ + first + i]);
      });
      const bool is_apart = first < begin;
      Target<double> target{nullptr,      nullptr, 0,    is_apart ? weight + first : nullptr,
                            forth.data(), 1,       width};
      target.back_weights = weights.data(), target.back = out + first;
      kernels.rows64(all.form, packed.strips(count, n), batch, target, 0, width / kStrip);
    }
    for (std::size_t s = 0; s < count; ++s) out[begin + s] += forth[s];
  }

  // After all tasks.
  void finish() {
    for (const auto& [r, s] : own_) {
      double sum = 0;
      for (std::size_t J = s / block_; J < blocks_; ++J) sum += parts_[J * k_ + s];
      sums_.out[r] = sum;
    }
  }

 private:
  // Support vectors from which this pays.
  static constexpr std::size_t kLeastOwn = 2 * kStrip;

  const BatchSums& sums_;
  std::size_t s0_, k_ = 0, cut_, block_ = 0, blocks_ = 0;
  std::vector<std::size_t> others_;  // rows
  std::vector<std::pair<std::size_t, std::size_t>>
      own_;                    // rows, and which support vectors they are
  std::vector<double> parts_;  // sums of each block
};

// The problems first .. last - 1 over the same samples: each kernel value is made once for all. Of
// their rows a part may be scored alone; what comes out does not depend on it.
class SharedSums {
 public:
  SharedSums(const BatchSums& sums, std::size_t first, std::size_t last)
      : sums_(sums), first_(first), last_(last), place_(sums.rows.batch.count, -1) {
    const std::size_t r0 = begin_at(sums.row_end, first), r1 = begin_at(sums.row_end, last);
    for (std::size_t r = r0; r < r1; ++r) number(sums.row[r], rows_);
    row_place_ = place_;
    std::fill(place_.begin(), place_.end(), -1);
    const std::size_t s0 = begin_at(sums.support_end, first);
    const std::size_t s1 = begin_at(sums.support_end, last);
    for (std::size_t s = s0; s < s1; ++s) number(sums.support[s], vectors_);
    const auto vector_of = [&](std::size_t s) {
      return static_cast<std::size_t>(place_[static_cast<std::size_t>(sums.support[s])]);
    };
    begin_.assign(vectors_.size() + 2, 0);  // two on: where uses are put next
    for (std::size_t s = s0; s < s1; ++s) ++begin_[vector_of(s) + 2];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    uses_.resize(s1 - s0);
    for (std::size_t t = first; t < last; ++t)
      for (std::size_t s = begin_at(sums.support_end, t); s < begin_at(sums.support_end, t + 1);
           ++s)
        uses_[begin_[vector_of(s) + 1]++] = {t - first, sums.weight[s]};
    order_.resize(vectors_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Those with a weight in few problems come together: columns of zeros are left out.
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return uses_of(a).size() > uses_of(b).size();
    });
  }

  void run(const KernelTable& kernels, std::size_t part, std::size_t cut, Crew& crew,
           bool is_caller) {
    const auto& all = sums_.rows;
    const std::size_t begin = rows_.size() * part / cut, end = rows_.size() * (part + 1) / cut;
    if (begin == end) return;
    const std::size_t problems = last_ - first_, n = all.batch.n;
    Packed packed;
    packed.fill(all.batch, all.norms,
                std::span<const std::int64_t>(rows_).subspan(begin, end - begin));
    const auto X = packed.strips(end - begin, n);
    const std::size_t width = packed.norms.size();
    std::vector<double> totals(problems * width), some, weights;
    std::vector<std::size_t> columns;
    std::vector<std::ptrdiff_t> column(problems);
    Gathered<double> gathered;
    for (std::size_t v = 0; v < order_.size(); v += kVectors) {
      if (crew.stopped(is_caller)) return;
      const std::size_t count = std::min(order_.size() - v, kVectors);
      columns.clear();
      std::fill(column.begin(), column.end(), -1);
      for (std::size_t k = 0; k < count; ++k)
        for (const auto& [t, weight] : uses_of(order_[v + k]))
          if (column[t] < 0) {
            column[t] = static_cast<std::ptrdiff_t>(columns.size());
            columns.push_back(t);
          }
      const std::size_t wide = columns.size();
      weights.assign(count * wide, 0.0);
      for (std::size_t k = 0; k < count; ++k)
        for (const auto& [t, weight] : uses_of(order_[v + k]))
          weights[k * wide + static_cast<std::size_t>(column[t])] += weight;
      some.assign(wide * width, 0.0);
      const auto batch = gathered.fill(all.batch, count, [&](std::size_t k) {
        return static_cast<std::size_t>(vectors_[order_[v + k]]);
      });
      kernels.rows64(all.form, X, batch,
                     {nullptr, nullptr, 0, weights.data(), some.data(), wide, width}, 0,
                     width / kStrip);
      for (std::size_t j = 0; j < wide; ++j)
        for (std::size_t i = 0; i < width; ++i)
          totals[columns[j] * width + i] += some[j * width + i];
    }
    for (std::size_t t = first_; t < last_; ++t)
      for (std::size_t r = begin_at(sums_.row_end, t); r < begin_at(sums_.row_end, t + 1); ++r) {
        const auto row = static_cast<std::size_t>(sums_.row[r]);
        const auto place = static_cast<std::size_t>(row_place_[row]);
        if (begin <= place && place < end)
          sums_.out[r] = totals[(t - first_) * width + place - begin];
      }
  }

 private:
  struct Use {
    std::size_t t;
    double weight;
  };

  std::span<const Use> uses_of(std::size_t vector) const {
    return std::span(uses_).subspan(begin_[vector], begin_[vector + 1] - begin_[vector]);
  }
  void number(std::int64_t row, std::vector<std::int64_t>& found) {
    auto& place = place_[static_cast<std::size_t>(row)];
    if (place >= 0) return;
    place = static_cast<std::int64_t>(found.size());
    found.push_back(row);
  }

  const BatchSums& sums_;
  std::size_t first_, last_;
  std::vector<std::int64_t> place_, row_place_, rows_, vectors_;
  std::vector<Use> uses_;  // by vectors
  std::vector<std::size_t> begin_, order_;
};

// The one problem where a kernel value is the product of rows: by the weights of the columns, each
// row is read once, and not once for each support vector.
void sum_by_weights(const BatchSums& sums, Crew& crew, bool is_caller) {
  const auto& all = sums.rows.batch;
  std::vector<double> w(all.n, 0.0);
  const auto reads = [&](std::int64_t row, const auto& dense, const auto& sparse) {
    const auto i = static_cast<std::size_t>(row);
    if (all.begin == nullptr)
      dense(all.data + i * all.n);
    else
      sparse(static_cast<std::size_t>(all.begin[i]), static_cast<std::size_t>(all.end[i]));
  };
  const auto column = [&](std::size_t p) { return static_cast<std::size_t>(all.indices[p]); };
  for (std::size_t s = 0; s < sums.support.size(); ++s) {
    if (s % kRows == 0 && crew.stopped(is_caller)) return;
    const double weight = sums.weight[s];
    reads(
        sums.support[s],
        [&](const double* x) {
          for (std::size_t j = 0; j < all.n; ++j) w[j] += weight * x[j];
        },
        [&](std::size_t begin, std::size_t end) {
          for (std::size_t p = begin; p < end; ++p) w[column(p)] += weight * all.data[p];
        });
  }
  for (std::size_t r = 0; r < sums.row.size(); ++r) {
    if (r % kRows == 0 && crew.stopped(is_caller)) return;
    reads(
        sums.row[r],
        [&](const double* x) {
          sums.out[r] = sum_of(all.n, [&](std::size_t j) { return x[j] * w[j]; });
        },
        [&](std::size_t begin, std::size_t end) {
          double sum = 0;
          for (std::size_t p = begin; p < end; ++p) sum += all.data[p] * w[column(p)];
          sums.out[r] = sum;
        });
  }
}

StoredRows<double> given_values(const BatchSums& sums) {
  return {sums.rows.given.data(), sums.rows.norms.size()};
}

// Whether the values of all rows with each other are far fewer than those of all problems, which do
// not share them: of problems whose support vectors fill a strip at most. (A hundred classes of 2
// and 10 rows have their scores after 0.1 and 0.7 of the time.)
bool suit_all(const BatchSums& sums) {
  const std::size_t problems = sums.row_end.size();
  if (!sums.rows.given.empty() || sums.run_end.size() < problems) return false;
  std::size_t values = 0, most = 0;
  for (std::size_t t = 0; t < problems; ++t) {
    const auto k = static_cast<std::size_t>(sums.support_end[t]) - begin_at(sums.support_end, t);
    const auto rows = static_cast<std::size_t>(sums.row_end[t]) - begin_at(sums.row_end, t);
    values += in_strips(k) * rows;
    most = std::max(most, k);
  }
  return most <= kStrip && AllValues::suit(sums.rows.batch.count, values);
}

}  // namespace

void sum_problem(const KernelTable& kernels, const BatchSums& sums, Crew& crew, bool is_caller) {
  if (!sums.rows.given.empty()) {
    sum_known(sums, given_values(sums), 0, sums.row.size(), crew, is_caller);
    return;
  }
  if (sums.rows.form.kind == KernelKind::linear) {
    sum_by_weights(sums, crew, is_caller);
    return;
  }
  std::vector<std::int64_t> place(sums.rows.norms.size(), -1);
  OwnSums own(sums, 0, 1, place);
  for (std::size_t task = 0; task < own.tasks(); ++task) own.run(kernels, task, crew, is_caller);
  own.finish();
}

void sum_batch(const KernelTable& kernels, const BatchSums& sums, std::size_t threads,
               const std::function<bool()>& stop) {
  Crew crew(threads, stop);
  const std::size_t problems = sums.row_end.size(), runs = sums.run_end.size();
  AllValues all;
  if (suit_all(sums)) all.make(kernels, sums.rows.form, sums.rows.batch, sums.rows.norms, crew);
  const auto known = sums.rows.given.empty() ? all.rows() : given_values(sums);
  if (known.K != nullptr) {
    const std::size_t rows = sums.row.size();
    crew.run((rows + kRows - 1) / kRows, [&](std::size_t task, bool is_caller) {
      const std::size_t first = task * kRows;
      sum_known(sums, known, first, std::min(rows, first + kRows), crew, is_caller);
    });
    return;
  }
  if (runs < problems) {
    const std::size_t cut = runs > 0 ? (threads + runs - 1) / runs : 1;
    crew.run(runs * cut, [&](std::size_t task, bool is_caller) {
      const std::size_t k = task / cut, last = static_cast<std::size_t>(sums.run_end[k]);
      SharedSums(sums, begin_at(sums.run_end, k), last)
          .run(kernels, task % cut, cut, crew, is_caller);
    });
    return;
  }
  // Few problems are cut, so that all threads have work; what comes out does not depend on it.
  const std::size_t cut = problems > 0 ? (threads + problems - 1) / problems : 1;
  std::vector<std::int64_t> place(sums.rows.norms.size(), -1);
  std::vector<OwnSums> own;
  std::vector<std::pair<std::size_t, std::size_t>> tasks;
  for (std::size_t t = 0; t < problems; ++t) {
    own.emplace_back(sums, t, cut, place);
    for (std::size_t task = 0; task < own[t].tasks(); ++task) tasks.push_back({t, task});
  }
  crew.run(tasks.size(), [&](std::size_t k, bool is_caller) {
    own[tasks[k].first].run(kernels, tasks[k].second, crew, is_caller);
  });
  for (auto& one : own) one.finish();
}

}  // namespace widemargin
