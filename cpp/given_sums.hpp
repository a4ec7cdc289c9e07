// Dual variables whose sum is given: those of a one-class machine, or of each class of a nu
// machine. See problems/sums.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace widemargin {

// The share of what there is that may be added to a sum, or taken from it, to make it what it has
// to be: that is rounding.
constexpr double kMostRepaired = 0.25;

// What a sum lacks, to its last digit (Shewchuk 1997).
double missing(std::span<const double> alpha, double total);

// Some alpha with such a sum: few of them, most at their bound, if there is one.
void fill(std::span<const double> C, double total, bool bounded, std::span<double> alpha);

// How much of alpha has to change to have a sum; infinite where that is much.
void change(std::span<const double> alpha, std::span<const double> C, double total, bool bounded,
            std::span<double> moved);

// work(places, sum) for each sum that is given among the places begin .. end - 1: of all, or of
// each class.
template <class Work>
void each_sum(std::span<const double> y, std::size_t begin, std::size_t end, double mass,
              bool by_class, const Work& work) {
  std::vector<std::size_t> own;
  for (const double sign : {1.0, -1.0}) {
    own.clear();
    for (std::size_t i = begin; i < end; ++i)
      if (y[i] == sign) own.push_back(i);
    if (by_class || sign > 0) work(own, by_class ? 0.5 * mass : mass);
  }
}

// What some places have, one after the other.
inline std::vector<double> taken(std::span<const double> from,
                                 const std::vector<std::size_t>& places) {
  std::vector<double> out(places.size());
  for (std::size_t k = 0; k < places.size(); ++k) out[k] = from[places[k]];
  return out;
}

}  // namespace widemargin
