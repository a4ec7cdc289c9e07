#include "batch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "all_values.hpp"
#include "batch_problem.hpp"
#include "chain.hpp"
#include "crew.hpp"
#include "exact_steps.hpp"
#include "kept_moves.hpp"
#include "kept_parts.hpp"
#include "narrow.hpp"
#include "problem_data.hpp"
#include "turns.hpp"

namespace widemargin {
namespace {

// Where steps did not suffice for a problem, the one that follows it has this part of them.
constexpr std::int64_t kFewerSteps = 5;
// Rows of K of problems that wait for another turn stay while all rows take no more bytes. Beyond,
// they are made again: the first use of new memory takes longer.
constexpr std::size_t kFewBytes = std::size_t{256} << 20;
// How often each thread takes problems of few rows: several at a time, which use its memory again.
// (4,950 pairs of 4 rows take 7.5 ms with 8, 8.7 with 32, and 10 one at a time.)
constexpr std::size_t kTakes = 8;

std::size_t largest(const BatchProblems& problems) {
  std::size_t most = 0;
  for (std::size_t t = 0; t < problems.size(); ++t) most = std::max(most, problems.size_of(t));
  return most;
}

// How many chains a thread takes at a time: of problems of few rows so many that each thread takes
// them kTakes times.
std::size_t chains_together(const BatchProblems& problems, std::size_t chains,
                            const BatchLimits& limits) {
  if (largest(problems) > kExactly) return 1;
  return std::max<std::size_t>(chains / (limits.threads * kTakes), 1);
}

// Whether the values of all rows with each other, in float64, are far fewer than those of all
// problems of few rows; and have room.
bool shares_all(const BatchSamples& samples, const BatchProblems& problems,
                const BatchLimits& limits) {
  if (samples.is_given() || largest(problems) > kExactly) return false;
  std::size_t values = 0;
  for (std::size_t t = 0; t < problems.size(); ++t)
    values += problems.size_of(t) * in_strips(problems.size_of(t));
  const std::size_t m = samples.exact.batch.count;
  return AllValues::suit(m, values) && AllValues::bytes(m) <= limits.bytes / 2;
}

}  // namespace

std::int64_t solve_batch(const BatchCode& code, const BatchSamples& samples,
                         const BatchProblems& problems, const BatchLimits& limits,
                         std::span<BatchResult> results) {
  KeptParts kept(code.kernels, samples, problems);
  Chains chains(problems, limits, results);
  Crew crew(limits.threads, limits.stop);
  Turns turns(problems, limits);
  if (shares_all(samples, problems, limits)) kept.make_all(code.kernels, crew);
  std::vector<char> has_rows(problems.size());  // though it waits
  // What a thread has for problems that follow each other.
  struct Room {
    ProblemData of;
    Narrow narrow;
    KeptMoves moves;
  };
  const auto solve = [&](std::size_t t, const std::optional<Scored>& scored, std::int64_t most,
                         Room& room, bool is_caller) {
    BatchLimits mine = limits;
    mine.most = most;
    const auto turn = turns.begin(t, crew, is_caller);
    const auto most_dense = limits.exactly ? problems.size_of(t) : kExactly;
    room.of.take(t, most_dense);
    BatchProblem(room.of, code, room.narrow, room.moves, turn).run(mine, scored, results[t]);
    const bool waits = results[t].end == BatchEnd::stopped && !crew.stopped(is_caller);
    if (waits) turns.wait(t);
    has_rows[t] = waits && kept.bytes() <= std::min(kFewBytes, limits.bytes / 2);
    if (!has_rows[t]) kept.end(problems, t);
  };
  const std::size_t tasks = chains.tasks(), together = chains_together(problems, tasks, limits);
  crew.run((tasks + together - 1) / together, [&](std::size_t task, bool is_caller) {
    Room room{{kept, samples, problems}, {}, {}};
    for (std::size_t k = task * together; k < std::min(tasks, (task + 1) * together); ++k)
      for (auto t = chains.take(crew, is_caller); t >= 0 && !crew.stopped(is_caller);) {
        const auto one = static_cast<std::size_t>(t);
        const double ratio = ratio_of(problems, one);
        const auto most = chains.is_after_stuck(one) ? limits.most / kFewerSteps : limits.most;
        if (stays(problems, one, ratio, limits.tol, kShare, results))
          kept.end(problems, one);
        else
          solve(one, chains.begin(one, ratio, crew, is_caller), most, room, is_caller);
        chains.end(one);
        t = chains.next(one);
      }
  });
  // Those whose turn was over go on from where they are, while there is time.
  for (auto some = turns.waiting(); !some.empty(); some = turns.waiting()) {
    for (const auto t : some)
      if (!has_rows[t]) kept.begin_again(problems, t);
    crew.run(some.size(), [&](std::size_t k, bool is_caller) {
      Room room{{kept, samples, problems}, {}, {}};
      auto& result = results[some[k]];
      const auto before = result;
      const Scored scored{problems.begin_of(some[k]), before.length};
      const auto most = std::max(limits.most - before.steps, limits.most / kFewerSteps);
      solve(some[k], scored, most, room, is_caller);
      result.steps += before.steps, result.negative += before.negative;
    });
  }
  return kept.evaluations();
}

}  // namespace widemargin
