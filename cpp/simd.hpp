// Run-time choice of the instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "coordinate_descent.hpp"
#include "dense.hpp"
#include "factor_steps.hpp"
#include "kernel_rows.hpp"
#include "objective.hpp"
#include "pair_steps.hpp"
#include "row_steps.hpp"
#include "simplex_steps.hpp"
#include "span_steps.hpp"
#include "twofold.hpp"

namespace widemargin {

enum class Simd { baseline = 0, avx2 = 1, avx512 = 2 };

inline constexpr std::array kSimdNames{"baseline", "avx2", "avx512"};

// What this build holds and this processor runs, slowest first.
inline std::vector<Simd> simd_levels() {
  std::vector<Simd> levels{Simd::baseline};
#ifdef WIDEMARGIN_X86_SIMD
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) levels.push_back(Simd::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    levels.push_back(Simd::avx512);
#endif
  return levels;
}

// The one that is used where none is asked for: the best of this processor, or the one that the
// environment variable names.
inline Simd simd_choice() {
  const auto levels = simd_levels();
  const char* wanted = std::getenv("WIDEMARGIN_SIMD");
  if (wanted == nullptr || *wanted == '\0') return levels.back();
  std::string names;
  for (const auto level : levels) {
    const std::string name = kSimdNames[static_cast<std::size_t>(level)];
    if (name == wanted) return level;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw std::invalid_argument(
      "The environment variable WIDEMARGIN_SIMD must be one of the instruction sets of this "
      "processor and build: " +
      names + ". Got '" + wanted + "' instead.");
}

// An instruction set; -1: the one that is used where none is asked for, read once.
inline Simd simd_level(int simd) {
  static const auto levels = simd_levels();
  static const auto choice = simd_choice();
  const auto level = simd < 0 ? choice : static_cast<Simd>(simd);
  if (std::ranges::find(levels, level) == levels.end())
    throw std::invalid_argument("this processor or build has no such instruction set");
  return level;
}

// What is compiled for an instruction set.
struct Compiled {
  RowSteps steps;
  DenseTable dense;
  KernelTable kernels;
  PairTable pairs;
  ObjectiveTable objective;
  SimplexTable simplex;
  TwofoldTable twofold;
  FactorTable factor;
  SpanTable span;
};

inline Compiled compiled(Simd level) {
  switch (level) {
    case Simd::baseline:
      return {baseline::row_steps(),     baseline::dense_table(),     baseline::kernel_table(),
              baseline::pair_table(),    baseline::objective_table(), baseline::simplex_table(),
              baseline::twofold_table(), baseline::factor_table(),    baseline::span_table()};
#ifdef WIDEMARGIN_X86_SIMD
    case Simd::avx2:
      return {avx2::row_steps(),     avx2::dense_table(),     avx2::kernel_table(),
              avx2::pair_table(),    avx2::objective_table(), avx2::simplex_table(),
              avx2::twofold_table(), avx2::factor_table(),    avx2::span_table()};
    case Simd::avx512:
      return {avx512::row_steps(),     avx512::dense_table(),     avx512::kernel_table(),
              avx512::pair_table(),    avx512::objective_table(), avx512::simplex_table(),
              avx512::twofold_table(), avx512::factor_table(),    avx512::span_table()};
#endif
    default:
      throw std::invalid_argument("this build has no code for that instruction set");
  }
}

template <typename Rows, typename Row>
Descend<Rows, Row> descend(Simd level) {
  switch (level) {
    case Simd::baseline:
      return &baseline::descend<Rows, Row>;
#ifdef WIDEMARGIN_X86_SIMD
    case Simd::avx2:
      return &avx2::descend<Rows, Row>;
    case Simd::avx512:
      return &avx512::descend<Rows, Row>;
#endif
    default:
      throw std::invalid_argument("this build has no code for that instruction set");
  }
}

}  // namespace widemargin
