// Where problems of the batch engine start that follow another one, or are like one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "batch.hpp"
#include "crew.hpp"

namespace widemargin {

// A share of a number that rounding may change.
inline constexpr double kSame = 1e-12;

// The chains of problems of which each follows the one before. Some chains are like an earlier one,
// their model: they have the same rows and labels, and other weights, as the folds of a search.
//
// A chain is one task. Where there are few long ones, threads would wait for the last: there each
// problem of a chain that is like another one is a task, which waits for the one before it. Where a
// problem starts never depends on which thread is first.
class Chains {
 public:
  Chains(const BatchProblems& problems, const BatchLimits& limits,
         std::span<const BatchResult> results);

  std::size_t tasks() const { return order_.size() + links_.size(); }
  // The first problem of the next task, which can be solved now or soon; -1 if crew stopped.
  std::int64_t take(Crew& crew, bool is_caller);
  // The problem that follows t in its task; or -1.
  std::int64_t next(std::size_t t) const { return is_link_[t] ? -1 : next_[t]; }
  // Whether steps did not suffice for the problem before t.
  bool is_after_stuck(std::size_t t) const;

  // Let problem t, of this `ratio_of`, start near the answer of its model, or of the problem that
  // it follows: whose scores are there; or none.
  std::optional<Scored> begin(std::size_t t, double ratio, Crew& crew, bool is_caller) const;
  // Problem t has ended.
  void end(std::size_t t) { is_done_[t].store(true, std::memory_order_release); }

 private:
  void find_models(const std::vector<std::int64_t>& first);
  void cut(const std::vector<std::int64_t>& first);
  bool are_like(std::size_t t, std::size_t model) const;
  bool is_done(std::int64_t t) const {
    return is_done_[static_cast<std::size_t>(t)].load(std::memory_order_acquire);
  }
  bool is_ready(std::size_t t) const;

  const BatchProblems& problems_;
  std::span<const BatchResult> results_;
  // First problems of chains, the largest first. Models come before those like them, by as many as
  // there are threads: none waits for long.
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> links_;  // that are left of chains that are cut, first ones first
  std::vector<std::int64_t> next_, model_;
  std::vector<bool> is_link_;
  std::vector<std::atomic<bool>> is_done_;
  std::mutex lock_;
  std::size_t taken_ = 0;  // of order_
};

// What all weights of a problem are multiplied by in problem t, which follows it; NaN: by several
// numbers, or it follows none.
double ratio_of(const BatchProblems& problems, std::size_t t);

// Let problem t, of this ratio, start at the answer of the one that it follows, times a number;
// where the weights are not all multiplied by one number, or sum alpha is given, each variable in
// proportion to its weight, so that bounds stay bounds. Where that is not feasible it starts at its
// own start. Whether its scores are there too.
bool follow(const BatchProblems& problems, std::size_t t, double ratio);

// Let problem t start near the answer of its model, and begin with the scores of that: rows that
// have no weight there, those first that violate most, take over the alpha of rows that have none
// here. It starts so if it follows no other problem, or if most of alpha is at bounds; and only
// where that is feasible. Whether it does. Folds of pendigits take 0.64 of the steps: 0.08 with the
// least of 10 C, 0.2, 0.4 and 0.6 with the next ones, then as many.
bool begin_near(const BatchProblems& problems, std::size_t t, std::size_t model);

// Let problem t, of this ratio, have the answer of the one that it follows, where its gap stays
// small enough: with the hinge and larger weights the dual objective is the same, and only the
// losses grow. What bounds say of the gap is `share` of `tol` at most. Whether it has.
bool stays(const BatchProblems& problems, std::size_t t, double ratio, double tol, double share,
           std::span<BatchResult> results);

}  // namespace widemargin
