// How long each of several problems may take that share the time there is.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "crew.hpp"

namespace widemargin {

// What a problem has of a crew: its thread, until when.
struct Turn {
  using Time = std::chrono::steady_clock;
  Crew& crew;
  bool is_caller;
  Time::time_point until = Time::time_point::max();

  bool is_over() const {
    if (crew.stopped(is_caller)) return true;
    return until != Time::time_point::max() && Time::now() >= until;
  }
};

// The time of a fit, of which each problem has as much as its pairs of places are of all that are
// left. What one does not need the later ones have, and then those that had too little.
class Turns {
  // Seconds that are no limit: a clock does not count them.
  static constexpr double kForever = 1e9;

 public:
  Turns(const BatchProblems& problems, const BatchLimits& limits)
      : problems_(problems), threads_(limits.threads), is_shared_(limits.seconds < kForever) {
    if (!is_shared_) return;
    end_ = Turn::Time::now() + std::chrono::duration_cast<Turn::Time::duration>(
                                   std::chrono::duration<double>(limits.seconds));
    for (std::size_t t = 0; t < problems.size(); ++t) left_ += work_of(t);
  }

  // The turn of problem t, which begins now.
  Turn begin(std::size_t t, Crew& crew, bool is_caller) {
    if (!is_shared_) return {crew, is_caller};
    const std::lock_guard guard(lock_);
    const auto now = Turn::Time::now();
    const double share = std::min(1.0, static_cast<double>(threads_) * work_of(t) / left_);
    left_ -= work_of(t);
    const auto time = std::chrono::duration_cast<Turn::Time::duration>(share * (end_ - now));
    return {crew, is_caller, now + time};
  }
  // The turn of problem t was too short.
  void wait(std::size_t t) {
    const std::lock_guard guard(lock_);
    waiting_.push_back(t);
  }
  // Those whose turns were too short, which begin again; none where the time is over.
  std::vector<std::size_t> waiting() {
    if (!is_shared_ || Turn::Time::now() >= end_) return {};
    left_ = 0;
    for (const auto t : waiting_) left_ += work_of(t);
    return std::exchange(waiting_, {});
  }

 private:
  double work_of(std::size_t t) const {
    const auto places = static_cast<double>(problems_.size_of(t));
    return places * places;
  }

  const BatchProblems& problems_;
  const std::size_t threads_;
  const bool is_shared_;
  Turn::Time::time_point end_;
  std::mutex lock_;
  double left_ = 0;  // of the work, of problems that have not begun
  std::vector<std::size_t> waiting_;
};

}  // namespace widemargin
