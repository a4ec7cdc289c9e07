// Scores K x that follow x: where few coefficients have moved, only their rows are added.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lane_sums.hpp"

namespace widemargin {

// Coefficients, their scores, and how long the sums were that made these: what rounding does to
// float32 sums grows with it. Bounds of errors allow for kLongest times the sum of |x|, and for as
// many times the terms, of kernels whose values k(x, x) are all the same (`KEPT_TERMS`).
class KeptScores {
 public:
  // Of the rows with a coefficient 2,250 problems of pendigits add 0.38 with 3, 0.37 with 2 and
  // 0.39 with 4, in as many steps.
  static constexpr double kLongest = 3;

  void start(std::size_t width) {
    x_.assign(width, 0.0), f_.assign(width, 0.0);
    size_ = {}, weight_ = terms_ = 0;
  }
  // Scores are there, by sums so many times as long as those of the coefficients.
  void start(const std::vector<double>& x, const std::vector<double>& f, double length) {
    x_ = x, f_ = f, size_ = size_of(x);
    weight_ = length * size_.weight, terms_ = length * size_.terms;
  }

  // The places whose rows have to be added to the scores, so many times as `by` says; from zero on
  // where sums would be too long, or if `anew`.
  const std::vector<std::size_t>& move_to(const std::vector<double>& x, bool anew) {
    list(x);
    note(x);
    if (anew || is_long()) {
      start(x.size());
      list(x);
      note(x);
    }
    x_ = x;
    return moved_;
  }
  // Scores have followed to x already.
  void follow(const std::vector<double>& x) {
    list(x);
    note(x);
    x_ = x;
  }
  // Whether sums are longer than bounds of errors allow for.
  bool is_long() const {
    return weight_ > kLongest * size_.weight || terms_ > kLongest * size_.terms;
  }
  const std::vector<double>& by() const { return by_; }
  std::vector<double>& scores() { return f_; }
  // How many times as long the sums were as those of these coefficients; at least 1.
  double length() const {
    if (size_.terms == 0) return 1.0;
    return std::max({1.0, weight_ / size_.weight, terms_ / size_.terms});
  }

 private:
  struct Size {
    double weight = 0, terms = 0;
  };
  static Size size_of(const std::vector<double>& x) {
    return {sum_of(x.size(), [&](std::size_t p) { return std::abs(x[p]); }),
            count_of(x.size(), [&](std::size_t p) { return x[p] != 0; })};
  }
  void note(const std::vector<double>& x) {
    const auto more = size_of(by_);
    size_ = size_of(x), weight_ += more.weight, terms_ += more.terms;
  }
  void list(const std::vector<double>& x) {
    moved_.resize(x.size());
    std::size_t count = 0;
    for (std::size_t p = 0; p < x.size(); ++p) moved_[count] = p, count += x[p] != x_[p] ? 1 : 0;
    moved_.resize(count), by_.clear();
    for (const auto p : moved_) by_.push_back(x[p] - x_[p]);
  }

  std::vector<double> x_, f_, by_;
  std::vector<std::size_t> moved_;
  Size size_;  // of x
  double weight_ = 0, terms_ = 0;
};

}  // namespace widemargin
