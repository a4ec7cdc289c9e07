// Sums of kernel values for many problems over the same samples: their scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "batch.hpp"
#include "crew.hpp"
#include "kernel_rows.hpp"

namespace widemargin {

// Into how many blocks the support vectors of a problem are cut at most. Of k of them a block has
// k / 32 + 64 at most, and no score of a problem alone adds up more than k / 32 + 128 numbers one
// after the other: those of a block, what comes of the blocks before it, and what each one makes.
// Bounds of errors go by that (`Grouped.exact_bounds`).
constexpr std::size_t kSumBlocks = 32;

// For problem t: out[r] = sum over its support vectors j of weight[j] k(x_row[r], x_support[j]);
// anything where `stop` says yes before all are made.
struct BatchSums {
  ExactRows rows;
  std::span<const std::int64_t> support, support_end, row, row_end;
  // Problems run_end[k - 1] .. run_end[k] - 1 are over the same samples. Where these are fewer than
  // problems, each kernel value is made once for all of them.
  std::span<const std::int64_t> run_end;
  std::span<const double> weight;
  std::span<double> out;
};

// The sums of the one problem that there is, by this thread of the crew.
void sum_problem(const KernelTable& kernels, const BatchSums& sums, Crew& crew, bool is_caller);

void sum_batch(const KernelTable& kernels, const BatchSums& sums, std::size_t threads,
               const std::function<bool()>& stop);

}  // namespace widemargin
