#include "chain.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "lane_sums.hpp"

namespace widemargin {
namespace {

// The share of alpha at bounds from which an answer is a start for the next C as it is, but for its
// size: 450,000 steps of 2,250 problems of pendigits become 300,000 with any share of 0.2 to 0.8.
constexpr double kMostlyBound = 0.5;

// Chains of so many rows are cut where there are at most so many: two threads end 5 folds of 5,000
// rows and 10 C after 0.8 to 1.0 of the time (a9a, make_classification). More chains keep threads
// busy to the end as they are.
constexpr std::size_t kLongChain = 1000, kFewChains = 16;

// Between two looks whether a model is solved.
constexpr std::chrono::microseconds kPatience(20);

// Whether most of alpha is at bounds: it is likely to stay there.
bool is_mostly_bound(const BatchProblems& problems, std::size_t from, std::size_t m) {
  const double *const c = &problems.c[from], *const C = &problems.C[from];
  const double at_bound =
      sum_of(m, [&](std::size_t i) { return std::abs(c[i]) >= C[i] ? std::abs(c[i]) : 0.0; });
  const double size = sum_of(m, [&](std::size_t i) { return std::abs(c[i]); });
  return !problems.squared && at_bound > kMostlyBound * size;
}

// What the answer of another problem, for this one, is best multiplied by: between 1 and `most`, as
// the weights are. Without variables at their bounds that is 1; if most of alpha is there, `most`.
double best_share(const BatchProblems& problems, std::size_t from, std::size_t to, std::size_t m,
                  double most) {
  if (is_mostly_bound(problems, from, m)) return most;
  double linear = 0, square = 0, total = 0;
  for (std::size_t i = 0; i < m; ++i) {
    const double c = problems.c[from + i], C = problems.C[to + i];
    linear += problems.q[to + i] * std::abs(c), total += c;
    square += c * problems.scores[from + i];
    if (problems.squared && C > 0) square += 0.5 * c * c / C;
  }
  if (problems.intercept == 2) square += total * total;
  return std::clamp(square > 0 ? linear / square : most, std::min(1.0, most), most);
}

// Of a class: sum alpha of the model, what of it stays, and the rows that have no weight there,
// how much each violates, with the most that their alpha may add up to.
struct OfClass {
  double before = 0, kept = 0, most = 0;
  std::vector<std::pair<double, std::size_t>> fresh;
};

}  // namespace

double ratio_of(const BatchProblems& problems, std::size_t t) {
  if (problems.after[t] < 0) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t to = problems.begin_of(t), m = problems.size_of(t);
  const std::size_t from = problems.begin_of(static_cast<std::size_t>(problems.after[t]));
  const double* const before = problems.C.data() + from;
  const double* const now = problems.C.data() + to;
  const auto first = static_cast<std::size_t>(
      std::find_if(before, before + m, [](double C) { return C > 0; }) - before);
  const double ratio = first < m ? now[first] / before[first] : 0.0;
  const double others = count_of(
      m, [&](std::size_t i) { return !(std::abs(now[i] - ratio * before[i]) <= kSame * now[i]); });
  return others == 0 ? ratio : std::numeric_limits<double>::quiet_NaN();
}

Chains::Chains(const BatchProblems& problems, const BatchLimits& limits,
               std::span<const BatchResult> results)
    : problems_(problems),
      results_(results),
      next_(problems.size(), -1),
      model_(problems.size(), -1),
      is_link_(problems.size()),
      is_done_(problems.size()) {
  std::vector<std::int64_t> first;
  for (std::size_t t = 0; t < problems.size(); ++t) {
    const auto own = static_cast<std::int64_t>(t), before = problems.after[t];
    if (before >= 0)
      next_[static_cast<std::size_t>(before)] = own;
    else
      first.push_back(own);
  }
  if (!limits.exactly && !problems.squared && problems.intercept == 1) find_models(first);
  if (first.size() <= kFewChains) cut(first);
  std::ranges::stable_sort(first, std::ranges::greater(), [&](std::int64_t t) {
    return problems.size_of(static_cast<std::size_t>(t));
  });
  std::vector<std::vector<std::int64_t>> like(problems.size());
  for (const auto t : first)
    if (const auto model = model_[static_cast<std::size_t>(t)]; model >= 0)
      if (!is_link_[static_cast<std::size_t>(t)])
        like[static_cast<std::size_t>(model)].push_back(t);
  std::erase_if(first, [&](std::int64_t t) { return model_[static_cast<std::size_t>(t)] >= 0; });
  for (std::size_t k = 0; k < first.size() + limits.threads; ++k) {
    if (k < first.size()) order_.push_back(first[k]);
    if (k < limits.threads) continue;
    const auto& others = like[static_cast<std::size_t>(first[k - limits.threads])];
    order_.insert(order_.end(), others.begin(), others.end());
  }
}

// Those that are alike come one after the other.
void Chains::find_models(const std::vector<std::int64_t>& first) {
  std::int64_t model = -1;
  for (const auto begin : first) {
    if (model < 0 || !are_like(static_cast<std::size_t>(begin), static_cast<std::size_t>(model))) {
      model = begin;
      continue;
    }
    for (auto t = begin, other = model; t >= 0 && other >= 0;
         t = next(static_cast<std::size_t>(t)), other = next(static_cast<std::size_t>(other)))
      model_[static_cast<std::size_t>(t)] = other;
  }
}

// Into links: of all chains that are like another one.
void Chains::cut(const std::vector<std::int64_t>& first) {
  std::vector<std::pair<std::size_t, std::int64_t>> links;  // place in the chain
  for (const auto begin : first) {
    const auto one = static_cast<std::size_t>(begin);
    if (model_[one] < 0 || problems_.size_of(one) < kLongChain) continue;
    std::size_t place = 0;
    for (auto t = begin; t >= 0; t = next_[static_cast<std::size_t>(t)], ++place)
      links.emplace_back(place, t), is_link_[static_cast<std::size_t>(t)] = true;
  }
  std::ranges::sort(links);
  for (const auto& [place, t] : links) links_.push_back(t);
}

bool Chains::is_ready(std::size_t t) const {
  const auto model = model_[t], before = problems_.after[t];
  return (model < 0 || is_done(model)) && (before < 0 || is_done(before));
}

std::int64_t Chains::take(Crew& crew, bool is_caller) {
  while (!crew.stopped(is_caller)) {
    {
      const std::lock_guard guard(lock_);
      if (taken_ < order_.size()) return order_[taken_++];
      const auto found = std::ranges::find_if(
          links_, [&](std::int64_t t) { return is_ready(static_cast<std::size_t>(t)); });
      if (found != links_.end()) {
        const auto t = *found;
        links_.erase(found);
        return t;
      }
    }
    std::this_thread::sleep_for(kPatience);
  }
  return -1;
}

bool Chains::is_after_stuck(std::size_t t) const {
  const auto before = problems_.after[t];
  return before >= 0 && results_[static_cast<std::size_t>(before)].end == BatchEnd::stuck;
}

// Whether problem t is a classifier as another one is, and starts at zero.
bool Chains::are_like(std::size_t t, std::size_t model) const {
  const auto places = [&](const auto& values, std::size_t k) {
    return values.subspan(problems_.begin_of(k), problems_.size_of(k));
  };
  return std::isnan(problems_.mass[t]) &&
         std::ranges::equal(problems_.groups_of(t), problems_.groups_of(model)) &&
         std::ranges::equal(places(problems_.y, t), places(problems_.y, model)) &&
         std::ranges::all_of(places(problems_.q, t), [](double q) { return q == 1; }) &&
         std::ranges::all_of(places(problems_.c, t), [](double c) { return c == 0; });
}

std::optional<Scored> Chains::begin(std::size_t t, double ratio, Crew& crew, bool is_caller) const {
  if (model_[t] >= 0) {
    const auto model = static_cast<std::size_t>(model_[t]);
    while (!is_done(model_[t]) && !crew.stopped(is_caller)) std::this_thread::sleep_for(kPatience);
    const bool is_there = is_done(model_[t]) && results_[model].end == BatchEnd::solved;
    if (is_there && begin_near(problems_, t, model))
      return Scored{problems_.begin_of(model), results_[model].length};
  }
  if (!follow(problems_, t, ratio)) return std::nullopt;
  return Scored{problems_.begin_of(t),
                results_[static_cast<std::size_t>(problems_.after[t])].length};
}

bool begin_near(const BatchProblems& problems, std::size_t t, std::size_t model) {
  const std::size_t to = problems.begin_of(t), from = problems.begin_of(model);
  const std::size_t m = problems.size_of(t);
  if (problems.after[t] >= 0 && !is_mostly_bound(problems, from, m)) return false;
  std::vector<double> start(m);
  std::array<OfClass, 2> classes;
  for (std::size_t i = 0; i < m; ++i) {
    auto& own = classes[problems.y[to + i] < 0];
    const double C = problems.C[to + i], before = problems.C[from + i];
    if (before > 0) {
      const double c = problems.c[from + i];
      start[i] = C == before ? c : c * (C / before);
      own.before += std::abs(c), own.kept += std::abs(start[i]);
    } else if (C > 0) {
      own.fresh.emplace_back(problems.y[to + i] * problems.scores[from + i], i), own.most += C;
    }
  }
  double sum = std::numeric_limits<double>::infinity();  // of alpha, of each class
  for (const auto& own : classes) sum = std::min({sum, own.before, own.kept + own.most});
  for (auto& own : classes) {
    double left = sum - own.kept;
    if (left < 0) return false;
    std::ranges::sort(own.fresh);
    for (const auto& [value, i] : own.fresh) {
      const double alpha = std::min(left, problems.C[to + i]);
      start[i] = problems.y[to + i] * alpha, left -= alpha;
    }
  }
  std::ranges::copy(start, problems.c.begin() + static_cast<std::ptrdiff_t>(to));
  return true;
}

bool stays(const BatchProblems& problems, std::size_t t, double ratio, double tol, double share,
           std::span<BatchResult> results) {
  if (problems.after[t] < 0 || problems.squared || !std::isnan(problems.mass[t])) return false;
  const auto before = static_cast<std::size_t>(problems.after[t]);
  BatchResult out = results[before];
  if (out.end != BatchEnd::solved || !(ratio >= 1)) return false;
  out.primal += (ratio - 1) * out.losses;
  out.losses *= ratio, out.noise *= ratio, out.steps = 0;
  const double size = std::max(std::abs(out.primal), std::abs(out.dual));
  if (!(out.primal - out.dual <= std::min(share * tol, tol - out.noise) * size)) return false;
  const std::size_t from = problems.begin_of(before), m = problems.size_of(t);
  for (const auto& values : {problems.c, problems.scores})
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), m,
                values.begin() + static_cast<std::ptrdiff_t>(problems.begin_of(t)));
  results[t] = out;
  return true;
}

bool follow(const BatchProblems& problems, std::size_t t, double ratio) {
  if (problems.after[t] < 0) return false;
  const std::size_t to = problems.begin_of(t), m = problems.size_of(t);
  const std::size_t from = problems.begin_of(static_cast<std::size_t>(problems.after[t]));
  const double mass = problems.mass[t];
  const double* const before = problems.C.data() + from;
  const double* const now = problems.C.data() + to;
  const bool is_one = std::isnan(mass) && !std::isnan(ratio);
  std::vector<double> factor(m, is_one ? best_share(problems, from, to, m, ratio) : 0.0);
  for (std::size_t i = 0; !is_one && i < m; ++i)
    factor[i] = before[i] > 0 ? now[i] / before[i] : 0.0;
  const double share = m > 0 ? factor[0] : 0.0;
  double total = 0, size = 0;
  for (std::size_t i = 0; i < m; ++i) {
    factor[i] *= problems.c[from + i];
    total += factor[i], size += std::abs(factor[i]);
  }
  if (problems.intercept == 1 && !(std::abs(total) <= kSame * size)) return false;
  if (!std::isnan(mass) && !(std::abs(size - mass) <= kSame * mass)) return false;
  std::copy(factor.begin(), factor.end(), problems.c.begin() + static_cast<std::ptrdiff_t>(to));
  for (std::size_t i = 0; is_one && i < m; ++i)
    problems.scores[to + i] = share * problems.scores[from + i];
  return is_one;
}

}  // namespace widemargin
