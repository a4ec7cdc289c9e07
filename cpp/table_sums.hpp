// Sums of kernel values by a table of weights: many functions of the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "batch.hpp"
#include "kernel_rows.hpp"

namespace widemargin {

// Row j has the weights weight[j * columns] ..: of functions, of `steps` columns each. Group g has
// the rows order[group_end[g - 1]] .. order[group_end[g] - 1]. Of the sums at row[r] only those of
// the first wanted[r] steps need be there.
//
//   out[(g * columns + c) * width + r] = sum over j in group g of w_jc k(x_row[r], x_j)
//
// where `width` is the number of these rows in whole strips.
struct TableSums {
  ExactRows rows;
  std::span<const double> weight;
  std::size_t columns, steps;
  std::span<const std::int64_t> order, group_end, row, wanted;
  std::span<double> out;  // zeros before
};

// Anything where `stop` says yes before all are made.
void sum_batch(const KernelTable& kernels, const TableSums& sums, std::size_t threads,
               const std::function<bool()>& stop);

}  // namespace widemargin
