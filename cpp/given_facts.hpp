// What has to be known of a given kernel matrix before it is solved with.
#pragma once

#include <cstddef>
#include <span>

namespace widemargin {

// What is known of given kernel values, (m x m): the largest absolute one; the largest one as a
// share of s_i s_j; the largest difference of k_ij and k_ji, and where that is.
struct GivenFacts {
  double largest, share, apart;
  std::size_t i, j;
};

GivenFacts facts_of(std::span<const double> values, std::span<const double> s);

}  // namespace widemargin
