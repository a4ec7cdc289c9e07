// A problem of pair steps without the variables that are settled at their bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel_rows.hpp"
#include "large_pages.hpp"
#include "pair_steps.hpp"

namespace widemargin {

// Some variables of a problem, their rows of K cut to them, each when it is asked for first. Room
// is used again for other variables.
class Narrow {
 public:
  // The part of a whole row from `begin` on.
  template <typename Stored>
  struct Part {
    const Stored* values;
    std::size_t begin, end;
  };

  bool is_on() const { return !at_.empty(); }
  const std::vector<std::size_t>& at() const { return at_; }
  void turn_off() { at_.clear(); }
  std::size_t held() const { return rows_.bytes(); }
  static std::size_t bytes(std::size_t variables, bool coded) {
    const std::size_t width = wide(variables);
    return variables * (coded ? width + kCutBlock : width * sizeof(float));
  }

  // Take the variables `at`, which rise, of a problem: of those that it has, if it is on; else with
  // room for so many, which serves the next problem, too. Their rows are `coded` or not: coded ones
  // are cut from whole ones again, which take a quarter of the memory.
  void take(std::vector<std::size_t> at, std::size_t most, bool coded,
            const SmallProblem<float, MadeRows>& all) {
    const std::size_t q = at.size(), width = wide(q);
    if (is_on() && !coded) {
      keep(at, width);
    } else {
      cut_.forget(coded ? 0 : q), coded_.forget(coded ? q : 0);
      if (held() < bytes(q, coded)) rows_ = LargePages(bytes(most, coded));
    }
    at_ = std::move(at);
    for (auto* vector : {&diagonal_, &ridge_, &F_}) vector->assign(width, 0.0f);
    for (auto* vector : {&lower_, &upper_, &x_}) vector->assign(width, 0.0);
    room_.resize(2 * width);
    ends_ = {0, width}, still_ = {0, 0, width};
    ways_.resize(q);
    if (coded) find_places(all.width);
    for (std::size_t k = 0; k < q; ++k) {
      const std::size_t p = at_[k];
      diagonal_[k] = all.diagonal[p], ridge_[k] = all.ridge[p], F_[k] = all.F[p];
      lower_[k] = all.lower[p], upper_[k] = all.upper[p], x_[k] = all.x[p];
      ways_[k] = all.relaxation->ways[p];
    }
  }

  // For `made32` and `coded32`; `make` of the maker gives rows that `cut` has made.
  SmallProblem<float, MadeRows> problem(void* maker,
                                        const float* (*make)(void*, std::size_t, std::size_t),
                                        const bool& is_over, const Relaxation& before) {
    return with<MadeRows>({parts(cut_, maker, make, is_over)}, before);
  }
  SmallProblem<float, CodedRows> problem(
      void* maker, const std::uint8_t* (*make)(void*, std::size_t, std::size_t),
      const bool& is_over, const Relaxation& before, const float* values) {
    return with<CodedRows>({parts(coded_, maker, make, is_over), values}, before);
  }

  // Row k, of the parts of the whole row; part_of(g) says where it is.
  template <class F>
  const float* cut(std::size_t k, std::size_t parts, const F& part_of) {
    float* const row = row_at(k, ends_[1]);
    std::size_t s = 0;
    for (std::size_t g = 0; g < parts; ++g) {
      const Part<float> part = part_of(g);
      for (; s < at_.size() && at_[s] < part.end; ++s) row[s] = part.values[at_[s] - part.begin];
    }
    std::fill(row + s, row + ends_[1], 0.0f);
    return cut_.known[k] = row;
  }
  // The same of a coded row, with room for a block behind it.
  template <class F>
  const std::uint8_t* cut(std::size_t k, std::size_t parts, const F& part_of, CutBytes cut_bytes) {
    std::uint8_t* const row = static_cast<std::uint8_t*>(rows_.get()) + k * (ends_[1] + kCutBlock);
    for (std::size_t g = 0; g < parts; ++g) {
      const Part<std::uint8_t> part = part_of(g);
      const std::size_t first = part.begin / kCutBlock, last = part.end / kCutBlock;
      cut_bytes(part.values, &places_[part.begin], &to_[first], last - first, row);
    }
    std::fill(row + at_.size(), row + ends_[1], std::uint8_t{0});
    return coded_.known[k] = row;
  }

  void give_back(double* x, float* F, Relaxation& relaxation) const {
    relaxation.factor = relaxation_.factor;
    for (std::size_t k = 0; k < at_.size(); ++k) {
      x[at_[k]] = x_[k], F[at_[k]] = F_[k];
      relaxation.ways[at_[k]] = ways_[k];
    }
  }

 private:
  // The rows that there are, as steps ask for them.
  template <typename Stored>
  struct Known {
    std::vector<const Stored*> known;
    std::vector<const Stored* const*> parts;

    void forget(std::size_t q) { known.assign(q, nullptr), point(); }
    void point() {
      parts.resize(known.size());
      for (std::size_t k = 0; k < known.size(); ++k) parts[k] = &known[k];
    }
  };
  template <typename Stored>
  RowParts<Stored> parts(const Known<Stored>& rows, void* maker,
                         const Stored* (*make)(void*, std::size_t, std::size_t),
                         const bool& is_over) const {
    return {rows.parts.data(), ends_.data(), &zero_, still_.data(), 1, maker, make, &is_over};
  }
  template <template <typename> class Rows>
  SmallProblem<float, Rows> with(const Rows<float>& K, const Relaxation& before) {
    relaxation_ = {ways_.data(), before.factor};
    return {K,
            at_.size(),
            ends_[1],
            diagonal_.data(),
            ridge_.data(),
            0.0f,
            lower_.data(),
            upper_.data(),
            x_.data(),
            F_.data(),
            room_.data(),
            1,
            nullptr,
            &relaxation_};
  }

  // Where the bytes of a whole row go.
  void find_places(std::size_t width) {
    places_.assign(width, kNothing), to_.resize(width / kCutBlock);
    std::size_t k = 0;
    for (std::size_t s = 0; s < to_.size(); ++s) {
      to_[s] = static_cast<std::uint32_t>(k);
      for (const std::size_t end = (s + 1) * kCutBlock; k < at_.size() && at_[k] < end; ++k)
        places_[s * kCutBlock + k - to_[s]] = static_cast<std::uint8_t>(at_[k] % kCutBlock);
    }
  }

  // Rows that are known, cut to some of the variables, each before where it was.
  void keep(const std::vector<std::size_t>& at, std::size_t width) {
    std::vector<std::size_t> before(at.size());
    for (std::size_t k = 0, old = 0; k < at.size(); ++k, ++old) {
      while (at_[old] != at[k]) ++old;
      before[k] = old;
    }
    for (std::size_t k = 0; k < at.size(); ++k) {
      const float* from = cut_.known[before[k]];
      float* const row = row_at(k, width);
      cut_.known[k] = from != nullptr ? row : nullptr;
      if (from == nullptr) continue;
      for (std::size_t s = 0; s < at.size(); ++s) row[s] = from[before[s]];
      std::fill(row + at.size(), row + width, 0.0f);
    }
    cut_.known.resize(at.size()), cut_.point();
  }

  float* row_at(std::size_t k, std::size_t width) const {
    return static_cast<float*>(rows_.get()) + k * width;
  }
  static std::size_t wide(std::size_t variables) { return (variables + 15) / 16 * 16; }
  std::vector<std::size_t> at_, ends_, still_;
  const std::size_t zero_ = 0;
  std::vector<float> diagonal_, ridge_, F_, room_;
  std::vector<double> lower_, upper_, x_;
  std::vector<signed char> ways_;
  Relaxation relaxation_{};
  LargePages rows_;
  Known<float> cut_;
  Known<std::uint8_t> coded_;
  std::vector<std::uint8_t> places_;  // see `CutBytes`
  std::vector<std::uint32_t> to_;
};

}  // namespace widemargin
