#include "batch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace widemargin {
namespace {

// Rows of K that are made together where that is worth it, and the columns from which it is.
constexpr std::size_t kTogether = 6, kWide = 24;
// Steps between two looks at the gap.
constexpr std::int64_t kSteps = 100;
// Seconds between two questions whether to stop.
constexpr double kPatience = 0.02;
// The violation at which steps end first, as a share of tol, and how it falls if the gap is larger.
constexpr double kViolation = 0.3, kFall = 0.25, kLeast = 1e-7;

// Of tol: what rounding may add to the gap comes on top.
constexpr double kShare = 0.9;

using Time = std::chrono::steady_clock;

// Tasks that threads take one after the other; only the caller's thread asks whether to stop.
class Crew {
 public:
  Crew(std::size_t threads, const std::function<bool()>& stop) : threads_(threads), ask_(stop) {}

  bool stopped(bool is_caller) {
    if (is_caller && std::chrono::duration<double>(Time::now() - asked_).count() > kPatience) {
      if (ask_()) stop_ = true;
      asked_ = Time::now();
    }
    return stop_.load(std::memory_order_relaxed);
  }

  // work(task, is_caller) for all tasks.
  template <class Work>
  void run(std::size_t tasks, const Work& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::mutex lock;
    const auto loop = [&](bool is_caller) {
      try {
        for (std::size_t t; (t = next++) < tasks && !stopped(is_caller);) work(t, is_caller);
      } catch (...) {
        const std::lock_guard guard(lock);
        if (!error) error = std::current_exception();
        stop_ = true;
      }
    };
    std::vector<std::thread> others;
    std::atomic<std::size_t> at_work{0};
    const std::size_t wanted = std::min(threads_, tasks);
    try {
      for (std::size_t k = 1; k < wanted; ++k) {
        ++at_work;
        others.emplace_back([&] {
          loop(false);
          --at_work;
        });
      }
    } catch (const std::system_error&) {  // no more threads: fewer do it
      --at_work;
    }
    loop(true);
    while (at_work > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      try {
        stopped(true);
      } catch (...) {
        const std::lock_guard guard(lock);
        if (!error) error = std::current_exception();
        stop_ = true;
      }
    }
    for (auto& other : others) other.join();
    if (error) std::rethrow_exception(error);
  }

 private:
  std::size_t threads_;
  const std::function<bool()>& ask_;
  std::atomic<bool> stop_{false};
  Time::time_point asked_ = Time::now();
};

// Memory for parts of rows, given back all at once.
class Arena {
 public:
  float* take(std::size_t floats, std::atomic<std::size_t>& bytes) {
    const std::lock_guard guard(lock_);
    if (floats > left_) {
      const std::size_t size = std::max(floats, std::clamp<std::size_t>(taken_, 1 << 13, 1 << 20));
      void* raw = std::aligned_alloc(64, size * sizeof(float));
      if (raw == nullptr) throw std::bad_alloc();
      blocks_.emplace_back(static_cast<float*>(raw));
      next_ = blocks_.back().get(), left_ = size;
      taken_ += size;
      bytes += size * sizeof(float);
    }
    float* out = next_;
    next_ += floats, left_ -= floats;
    return out;
  }
  void clear(std::atomic<std::size_t>& bytes) {
    blocks_.clear();
    bytes -= taken_ * sizeof(float);
    next_ = nullptr, left_ = taken_ = 0;
  }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::mutex lock_;
  std::vector<std::unique_ptr<float, Free>> blocks_;
  float* next_ = nullptr;
  std::size_t left_ = 0, taken_ = 0;
};

// The parts of rows of K that problems have made.
class KeptParts {
 public:
  KeptParts(const KernelTable& kernels, const BatchSamples& samples, const BatchProblems& problems)
      : run_(kernels.rows32),
        samples_(samples),
        groups_(samples.groups.size()),
        parts_(samples.groups.rows.size() * groups_),
        first_(groups_ + 1),
        arenas_(groups_ * (groups_ + 1) / 2),
        users_(arenas_.size()) {
    for (std::size_t g = 0; g < groups_; ++g)
      first_[g + 1] = first_[g] + static_cast<std::size_t>(samples.groups.count[g]);
    for (std::size_t t = 0; t < problems.size(); ++t)
      each_pair(problems, t, [&](std::size_t k) { ++users_[k]; });
  }

  const float** of_sample(std::size_t s) { return &parts_[s * groups_]; }
  std::size_t first(std::size_t group) const { return first_[group]; }
  std::size_t bytes() const { return bytes_; }
  std::int64_t evaluations() const { return evaluations_; }

  // The parts `group` of some samples, all of one group.
  void make(const std::size_t* samples, std::size_t count, std::size_t own, std::size_t group,
            std::vector<float>& dense, std::vector<std::int64_t>& ends) {
    const std::size_t begin = static_cast<std::size_t>(samples_.groups.strip[group]);
    const std::size_t strips = static_cast<std::size_t>(samples_.groups.strip[group + 1]) - begin;
    const std::size_t width = strips * kStrip, n = samples_.strips.n;
    float* out = arenas_[pair(own, group)].take(count * width, bytes_);
    const Strips<float> strip{samples_.strips.data + begin * kStrip * n,
                              samples_.strips.norms + begin * kStrip,
                              nullptr,
                              nullptr,
                              width,
                              n};
    float norms[kTogether];
    Target<float> target{out, nullptr, width, nullptr, nullptr, 0, 0};
    target.past_caches = false;
    run_(samples_.form, strip, gather(samples, count, norms, dense, ends), target, 0, strips);
    for (std::size_t r = 0; r < count; ++r)
      __atomic_store_n(of_sample(samples[r]) + group, out + r * width, __ATOMIC_RELEASE);
    evaluations_ += static_cast<std::int64_t>(count * width);
  }

  // A problem has ended: what no other one will need is given back.
  void end(const BatchProblems& problems, std::size_t t) {
    each_pair(problems, t, [&](std::size_t k) {
      if (--users_[k] == 0) arenas_[k].clear(bytes_);
    });
  }

 private:
  static std::size_t pair(std::size_t a, std::size_t b) {
    return a < b ? b * (b + 1) / 2 + a : a * (a + 1) / 2 + b;
  }
  template <class F>
  static void each_pair(const BatchProblems& problems, std::size_t t, const F& f) {
    const auto begin = t > 0 ? problems.group_end[t - 1] : 0, end = problems.group_end[t];
    for (auto i = begin; i < end; ++i)
      for (auto j = begin; j <= i; ++j)
        f(pair(static_cast<std::size_t>(problems.group[i]),
               static_cast<std::size_t>(problems.group[j])));
  }
  Batch<float> gather(const std::size_t* samples, std::size_t count, float* norms,
                      std::vector<float>& dense, std::vector<std::int64_t>& ends) const {
    const auto& all = samples_.batch;
    const auto row = [&](std::size_t r) {
      return static_cast<std::size_t>(samples_.groups.rows[samples[r]]);
    };
    for (std::size_t r = 0; r < count; ++r) norms[r] = all.norms[row(r)];
    if (all.begin != nullptr) {
      ends.resize(2 * count);
      for (std::size_t r = 0; r < count; ++r)
        ends[r] = all.begin[row(r)], ends[count + r] = all.end[row(r)];
      return {all.data, norms, ends.data(), ends.data() + count, all.indices, count, all.n, false};
    }
    if (count == 1) return {all.data + row(0) * all.n, norms, nullptr, nullptr, nullptr, 1, all.n,
                            false};
    dense.resize(count * all.n);
    for (std::size_t r = 0; r < count; ++r)
      std::copy_n(all.data + row(r) * all.n, all.n, dense.data() + r * all.n);
    return {dense.data(), norms, nullptr, nullptr, nullptr, count, all.n, false};
  }

  KernelRows<float> run_;
  const BatchSamples& samples_;
  std::size_t groups_;
  std::vector<const float*> parts_;
  std::vector<std::size_t> first_;
  std::vector<Arena> arenas_;
  std::vector<std::atomic<std::size_t>> users_;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::int64_t> evaluations_{0};
};

// One problem, from its start to its end. Positions count the samples with what pads their groups.
class Problem {
 public:
  Problem(KeptParts& kept, const KernelTable& kernels, const PairTable& pairs,
          const BatchSamples& samples, const BatchProblems& problems, std::size_t t)
      : kept_(kept), add_(kernels.add32), steps_(pairs.made32), all_(problems) {
    const auto first = t > 0 ? problems.group_end[t - 1] : 0;
    at_ = static_cast<std::size_t>(t > 0 ? problems.end[t - 1] : 0);
    m_ = static_cast<std::size_t>(problems.end[t]) - at_;
    begin_.push_back(0);
    for (auto k = first; k < problems.group_end[t]; ++k) {
      const auto g = static_cast<std::size_t>(problems.group[k]);
      id_.push_back(g);
      counts_.push_back(static_cast<std::size_t>(samples.groups.count[g]));
      const auto strips = samples.groups.strip[g + 1] - samples.groups.strip[g];
      begin_.push_back(begin_.back() + static_cast<std::size_t>(strips) * kStrip);
    }
    width_ = begin_.back();
    const bool equality = problems.intercept == 1;
    shift_ = problems.intercept == 2 ? 1.0 : 0.0;
    lower_.resize(width_), upper_.resize(width_), x_.resize(width_), y_.resize(width_);
    C_.resize(width_), f_.resize(width_);
    diagonal_.resize(width_), ridge_.resize(width_), F_.resize(width_), room_.resize(2 * width_);
    parts_.resize(width_);
    together_ = samples.strips.n >= kWide ? kTogether : 2;
    each([&](std::size_t p, std::size_t i, std::size_t s) {
      const double y = problems.y[i], C = problems.C[i];
      const double most = problems.squared && C > 0 ? std::numeric_limits<double>::infinity() : C;
      y_[p] = y, C_[p] = C;
      lower_[p] = y > 0 ? 0 : -most;
      upper_[p] = y > 0 ? most : 0;
      x_[p] = std::clamp(problems.c[i], lower_[p], upper_[p]);
      const auto row = static_cast<std::size_t>(samples.groups.rows[s]);
      ridge_[p] = problems.squared && C > 0 ? static_cast<float>(0.5 / C) : 0.0f;
      diagonal_[p] = samples.diagonal[row] + ridge_[p] + static_cast<float>(shift_);
      parts_[p] = kept_.of_sample(s);
    });
    sums_ = equality ? 1 : 0;
  }

  void run(const BatchLimits& limits, Crew& crew, bool is_caller, BatchResult& out) {
    const std::size_t q = width_;
    const SmallProblem<float, MadeRows> problem{
        {parts_.data(), begin_.data(), id_.data(), id_.size(), this, &Problem::make},
        q,
        width_,
        diagonal_.data(),
        ridge_.data(),
        static_cast<float>(shift_),
        lower_.data(),
        upper_.data(),
        x_.data(),
        F_.data(),
        room_.data(),
        sums_};
    const double share = kShare * limits.tol;
    double stop = kViolation * limits.tol;
    BatchEnd end = BatchEnd::waiting;
    refresh();
    const std::int64_t chunk = std::max<std::int64_t>(kSteps, static_cast<std::int64_t>(m_ / 8));
    std::int64_t steps = 0, negative = 0;
    while (end == BatchEnd::waiting) {
      const auto done = steps_(problem, stop, std::min(chunk, limits.most - steps));
      steps += done.steps, negative += done.negative;
      violation_ = done.violation;
      const bool settled = !(done.violation > stop) || done.steps == 0;
      if (settled || (take_scores(), gap() <= share)) {
        refresh();
        if (gap() <= share)
          end = BatchEnd::solved;
        else if (settled && (stop *= kFall) < kLeast)
          end = BatchEnd::stuck;
      }
      if (end != BatchEnd::waiting) break;
      if (steps >= limits.most || negative > 0) end = BatchEnd::stuck;
      if (kept_.bytes() > limits.bytes) end = BatchEnd::no_room;
      if (crew.stopped(is_caller)) end = BatchEnd::stopped;
    }
    if (end != BatchEnd::solved) refresh();
    (void)gap();
    out = {b_, primal_, dual_, steps, negative, end};
    each([&](std::size_t p, std::size_t i, std::size_t) {
      all_.c[i] = x_[p];
      all_.scores[i] = f_[p];
    });
  }

 private:
  // f(position, place in the arrays of all problems, sample).
  template <class F>
  void each(const F& f) const {
    std::size_t i = at_;
    for (std::size_t g = 0; g < id_.size(); ++g)
      for (std::size_t s = 0; s < counts_[g]; ++s, ++i)
        f(begin_[g] + s, i, kept_.first(id_[g]) + s);
  }

  static const float* make(void* self, std::size_t i, std::size_t g) {
    return static_cast<Problem*>(self)->make_part(i, g);
  }

  // Part g of row i; and of others of its group that are likely to move soon.
  const float* make_part(std::size_t i, std::size_t g) {
    std::size_t own = 0;
    while (i >= begin_[own + 1]) ++own;
    std::array<std::size_t, kTogether> chosen{i};
    std::array<float, kTogether> merit{};
    std::size_t count = 1;
    const std::size_t last = begin_[own] + counts_[own], id = id_[g];
    const float *up = room_.data(), *down = up + width_;
    for (std::size_t p = begin_[own]; together_ > 1 && p < last; ++p) {
      if (p == i || __atomic_load_n(parts_[p] + id, __ATOMIC_RELAXED) != nullptr) continue;
      const float value = std::max(up[p] - F_[p], down[p] + F_[p]);
      if (count == together_ && !(value > merit[count - 1])) continue;
      std::size_t k = count < together_ ? count++ : count - 1;
      for (; k > 1 && value > merit[k - 1]; --k) chosen[k] = chosen[k - 1], merit[k] = merit[k - 1];
      chosen[k] = p, merit[k] = value;
    }
    std::array<std::size_t, kTogether> samples;
    for (std::size_t r = 0; r < count; ++r)
      samples[r] = kept_.first(id_[own]) + chosen[r] - begin_[own];
    kept_.make(samples.data(), count, id_[own], id, dense_, ends_);
    return __atomic_load_n(parts_[i] + id, __ATOMIC_ACQUIRE);
  }

  // The scores K c, by the rows that are kept, in float64; and the gradient by them.
  void refresh() {
    std::fill(f_.begin(), f_.end(), 0.0);
    std::vector<std::size_t> moved;
    for (std::size_t p = 0; p < width_; ++p)
      if (x_[p] != 0) moved.push_back(p);
    constexpr std::size_t most = 64;
    for (std::size_t g = 0; g < id_.size(); ++g) {
      const float* base = nullptr;
      std::int64_t place[most];
      double weight[most];
      std::size_t count = 0;
      const auto flush = [&] {
        add_(base, place, count, 1, weight, 0, begin_[g + 1] - begin_[g], f_.data() + begin_[g]);
        count = 0;
      };
      for (const auto p : moved) {
        const float* part = __atomic_load_n(parts_[p] + id_[g], __ATOMIC_ACQUIRE);
        if (part == nullptr) part = make_part(p, g);
        if (count == 0) base = part;
        place[count] = part - base, weight[count] = x_[p];
        if (++count == most) flush();
      }
      if (count > 0) flush();
    }
    double total = 0;
    for (const auto p : moved) total += x_[p];
    total_ = total;
    for (std::size_t p = 0; p < width_; ++p)
      F_[p] = static_cast<float>(f_[p] + ridge_[p] * x_[p] + shift_ * total - y_[p]);
  }

  // The scores by the gradient as it is.
  void take_scores() {
    double total = 0;
    for (std::size_t p = 0; p < width_; ++p) total += x_[p];
    total_ = total;
    for (std::size_t p = 0; p < width_; ++p)
      f_[p] = static_cast<double>(F_[p]) - ridge_[p] * x_[p] - shift_ * total + y_[p];
  }

  // The relative gap by the scores, with the intercept that suits them.
  double gap() {
    double square = 0, linear = 0, squares = 0;
    for (std::size_t p = 0; p < width_; ++p) {
      square += x_[p] * f_[p];
      linear += y_[p] * x_[p];
      squares += x_[p] * x_[p] * ridge_[p];
    }
    b_ = sums_ == 1 ? best_intercept() : shift_ * total_;
    double slope;
    const double rest = 0.5 * (square + shift_ * b_ * b_);
    primal_ = rest + losses(b_, slope);
    dual_ = linear - rest - 0.5 * squares;
    return primal_ > 0 ? (primal_ - dual_) / primal_ : 1.0;
  }

  // The losses at an intercept, and their slope in it.
  double losses(double b, double& slope) const {
    double total = 0, rise = 0;
    if (all_.squared) {
      for (std::size_t p = 0; p < width_; ++p) {
        const double t = std::max(0.0, 1.0 - y_[p] * (f_[p] + b));
        total += C_[p] * t * t;
        rise -= 2 * C_[p] * y_[p] * t;
      }
    } else {
      for (std::size_t p = 0; p < width_; ++p) {
        const double t = 1.0 - y_[p] * (f_[p] + b);
        total += C_[p] * std::max(0.0, t);
        rise -= t > 0 ? C_[p] * y_[p] : 0.0;
      }
    }
    slope = rise;
    return total;
  }

  // The free intercept with the least losses: within a bracket about the middle of the violation.
  double best_intercept() {
    double low = -std::numeric_limits<double>::infinity(), high = -low;
    for (std::size_t p = 0; p < width_; ++p) {
      if (C_[p] == 0) continue;
      const double level = y_[p] - f_[p] - ridge_[p] * x_[p];
      if (x_[p] < upper_[p]) low = std::max(low, level);
      if (x_[p] > lower_[p]) high = std::min(high, level);
    }
    if (!std::isfinite(low)) low = high;
    if (!std::isfinite(high)) high = low;
    if (!std::isfinite(low)) return 0;
    const double middle = 0.5 * (low + high);
    double apart = 0.5 * std::abs(low - high) + 1e-9;
    double slope;
    for (int k = 0; k < 60; ++k, apart *= 4) {
      losses(middle - apart, slope);
      if (slope > 0) continue;
      losses(middle + apart, slope);
      if (slope >= 0) return least(middle - apart, middle + apart);
    }
    return middle;
  }

  // Where the slope of the losses changes its sign, between two numbers.
  double least(double low, double high) {
    if (all_.squared) {
      double b = 0.5 * (low + high), slope;
      for (int k = 0; k < 60 && low < high; ++k) {
        losses(b, slope);
        (slope > 0 ? high : low) = b;
        double curvature = 0;
        for (std::size_t p = 0; p < width_; ++p)
          curvature += y_[p] * (f_[p] + b) < 1 ? 2 * C_[p] : 0;
        double next = b - slope / curvature;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (std::abs(next - b) <= 1e-15 * (1 + std::abs(b))) break;
        b = next;
      }
      return b;
    }
    double slope;
    losses(low, slope);
    breaks_.clear();
    for (std::size_t p = 0; p < width_; ++p)
      if (const double at = y_[p] - f_[p]; C_[p] > 0 && low < at && at <= high)
        breaks_.push_back({at, C_[p]});
    std::sort(breaks_.begin(), breaks_.end());
    for (const auto& [at, C] : breaks_)
      if ((slope += C) >= 0) return at;
    return high;
  }

  KeptParts& kept_;
  AddRows<float> add_;
  Descent<float, MadeRows> steps_;
  const BatchProblems& all_;
  std::size_t at_ = 0, m_ = 0, width_ = 0, together_ = 1;
  int sums_ = 0;
  double shift_ = 0, total_ = 0, b_ = 0, primal_ = 0, dual_ = 0, violation_ = 0;
  std::vector<std::size_t> begin_, id_, counts_;
  std::vector<double> lower_, upper_, x_, y_, C_, f_;
  std::vector<float> diagonal_, ridge_, F_, room_, dense_;
  std::vector<std::int64_t> ends_;
  std::vector<const float* const*> parts_;
  std::vector<std::pair<double, double>> breaks_;
};

// Samples of a problem in strips: the support vectors, taken from a batch of all rows.
void pack_rows(const Batch<double>& batch, std::span<const double> norms,
               std::span<const std::int64_t> index, std::vector<double>& data,
               std::vector<double>& lengths) {
  const std::size_t strips = (index.size() + kStrip - 1) / kStrip, n = batch.n;
  data.assign(strips * kStrip * n, 0.0);
  lengths.assign(strips * kStrip, 0.0);
  for (std::size_t s = 0; s < index.size(); ++s) {
    const auto row = static_cast<std::size_t>(index[s]);
    double* strip = data.data() + s / kStrip * kStrip * n + s % kStrip;
    lengths[s] = norms[row];
    if (batch.begin == nullptr)
      for (std::size_t j = 0; j < n; ++j) strip[j * kStrip] = batch.data[row * n + j];
    else
      for (auto p = batch.begin[row]; p < batch.end[row]; ++p)
        strip[static_cast<std::size_t>(batch.indices[p]) * kStrip] += batch.data[p];
  }
}

}  // namespace

std::int64_t solve_batch(const KernelTable& kernels, const PairTable& pairs,
                         const BatchSamples& samples, const BatchProblems& problems,
                         const BatchLimits& limits, std::span<BatchResult> results) {
  KeptParts kept(kernels, samples, problems);
  std::vector<std::size_t> order(problems.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rows = [&](std::size_t t) {
    return problems.end[t] - (t > 0 ? problems.end[t - 1] : 0);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows(a) > rows(b); });
  Crew crew(limits.threads, limits.stop);
  crew.run(order.size(), [&](std::size_t k, bool is_caller) {
    const std::size_t t = order[k];
    Problem(kept, kernels, pairs, samples, problems, t).run(limits, crew, is_caller, results[t]);
    kept.end(problems, t);
  });
  return kept.evaluations();
}

void sum_batch(const KernelTable& kernels, const BatchSums& sums, std::size_t threads,
               const std::function<bool()>& stop) {
  constexpr std::size_t kRows = 192;  // that are taken together
  Crew crew(threads, stop);
  crew.run(sums.row_end.size(), [&](std::size_t t, bool is_caller) {
    const auto begin = [t](std::span<const std::int64_t> end) {
      return static_cast<std::size_t>(t > 0 ? end[t - 1] : 0);
    };
    const std::size_t s0 = begin(sums.support_end), r0 = begin(sums.row_end);
    const std::size_t k = static_cast<std::size_t>(sums.support_end[t]) - s0;
    const std::size_t m = static_cast<std::size_t>(sums.row_end[t]) - r0;
    const auto& all = sums.batch;
    const std::size_t n = all.n;
    std::vector<double> data, lengths, norms, dense, weights;
    std::vector<std::int64_t> ends;
    pack_rows(all, sums.norms, sums.support.subspan(s0, k), data, lengths);
    const std::size_t strips = lengths.size() / kStrip;
    weights.assign(lengths.size(), 0.0);
    std::copy_n(sums.weight.begin() + static_cast<std::ptrdiff_t>(s0), k, weights.begin());
    const Strips<double> X{data.data(), lengths.data(), nullptr, nullptr, k, n};
    for (std::size_t first = 0; first < m && !crew.stopped(is_caller); first += kRows) {
      const std::size_t count = std::min(m - first, kRows);
      const auto row = [&](std::size_t r) {
        return static_cast<std::size_t>(sums.row[r0 + first + r]);
      };
      norms.resize(count);
      for (std::size_t r = 0; r < count; ++r) norms[r] = all.norms[row(r)];
      Batch<double> batch{nullptr, norms.data(), nullptr, nullptr, all.indices, count, n, false};
      if (all.begin != nullptr) {
        ends.resize(2 * count);
        for (std::size_t r = 0; r < count; ++r)
          ends[r] = all.begin[row(r)], ends[count + r] = all.end[row(r)];
        batch.data = all.data, batch.begin = ends.data(), batch.end = ends.data() + count;
      } else {
        dense.resize(count * n);
        for (std::size_t r = 0; r < count; ++r)
          std::copy_n(all.data + row(r) * n, n, dense.data() + r * n);
        batch.data = dense.data();
      }
      double* out = sums.out.data() + r0 + first;
      std::fill_n(out, count, 0.0);
      Target<double> target{nullptr, nullptr, 0, nullptr, nullptr, 0, 0};
      target.back_weights = weights.data(), target.back = out;
      kernels.rows64(sums.form, X, batch, target, 0, strips);
    }
  });
}

}  // namespace widemargin
