// The function of a kernel, of lines of products: stored, or added up at once; and its table where
// samples are of ones. For kernel_rows.cpp.
#pragma once

#include "kernel_rows.hpp"
#include "kernel_tiles.hpp"
#include "ones.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// The sum of the lanes.
template <class V>
inline double total(const V& lanes) {
  double sum = 0;
  for (std::size_t k = 0; k < sizeof(V) / sizeof(lanes[0]); ++k)
    sum += static_cast<double>(lanes[k]);
  return sum;
}

// The kernel function, of vectors of what rows sum.
template <typename Real, KernelKind kind>
struct Function {
  Real gamma, coef0;
  int degree;

  Vector<Real> operator()(Vector<Real> p, Vector<Real> x_norm, Real z_norm) const {
    Vector<Real> some[1] = {argument(p, x_norm, z_norm)};
    finish(some);
    return some[0];
  }

  // Of some vectors of a line of products.
  template <std::size_t count>
  void values(const Real* line, const Real* x_norms, Real z_norm, Vector<Real> (&p)[count]) const {
    constexpr std::size_t lanes = kLanes<Real>;
    for (std::size_t v = 0; v < count; ++v)
      p[v] = argument(load(line + v * lanes), load(x_norms + v * lanes), z_norm);
    finish(p);
  }

 private:
  template <std::size_t count>
  void finish(Vector<Real> (&p)[count]) const {
    if constexpr (term_of(kind) != Term::product)
      decays(p, gamma);
    else
      for (std::size_t v = 0; v < count; ++v) p[v] = kernel_value<kind>(p[v], gamma, coef0, degree);
  }
  static Vector<Real> argument(Vector<Real> p, Vector<Real> x_norm, Real z_norm) {
    if constexpr (kind == KernelKind::rbf)
      p = not_negative((x_norm - p * 2) + z_norm);
    else if constexpr (row_term(kind) == Term::size || row_term(kind) == Term::share)
      p = not_negative((p + x_norm) + z_norm);
    return p;
  }
  // A distance that is a difference of sums may be below zero by rounding.
  static Vector<Real> not_negative(Vector<Real> a) { return a > all<Real>(0) ? a : all<Real>(0); }
};

// Vectors whose values are made together: each step of exp waits for the one before, and few of
// them wait at once. AVX-512 has fewer steps.
constexpr std::size_t kTogetherVectors = kVectorBytes == 32 ? 8 : 1;

// The values of a line of products, some vectors after the others: `use` gets each, and its place.
template <typename Real, KernelKind kind, typename Use>
inline void each_value(const Function<Real, kind>& f, const Real* x_norms, Real z_norm,
                       std::size_t width, const Real* line, const Use& use) {
  const auto some = [&]<std::size_t count>(std::size_t& s) {
    constexpr std::size_t lanes = kLanes<Real>;
    for (; s + count * lanes <= width; s += count * lanes) {
      Vector<Real> p[count];
      f.values(line + s, x_norms + s, z_norm, p);
      for (std::size_t v = 0; v < count; ++v) use(p[v], s + v * lanes);
    }
  };
  std::size_t s = 0;
  some.template operator()<kTogetherVectors>(s);
  some.template operator()<1>(s);
}

// The function of a line of products, in their place. Not inlined: so many vectors leave no
// registers to what is around it.
template <typename Real, KernelKind kind>
[[gnu::noinline]] void apply(const Function<Real, kind>& f, const Real* x_norms, Real z_norm,
                             std::size_t width, Real* line) {
  each_value(f, x_norms, z_norm, width, line,
             [&](const Vector<Real>& value, std::size_t s) { store(line + s, value); });
}

// The same values, which go at once where they are added up: to sums of the samples, times
// `weight`, and to the sum of them times `back`, whichever is asked for. What is asked for is known
// to the compiler: product and sum are fused in one block of code only, as `Sums` fuses them.
template <bool is_sums, bool is_back, typename Real, KernelKind kind>
[[gnu::noinline]] double apply_to_sums(const Function<Real, kind>& f, const Real* x_norms,
                                       Real z_norm, std::size_t width, const Real* line,
                                       Real weight, Real* sums, const Real* back) {
  Vector<Real> some{};
  each_value(f, x_norms, z_norm, width, line, [&](const Vector<Real>& value, std::size_t s) {
    if constexpr (is_sums) store(sums + s, load(sums + s) + value * weight);
    if constexpr (is_back) some = some + value * load(back + s);
  });
  return is_back ? total(some) : 0;
}

// Values of rbf at the distances of the samples of a strip, which are of ones: exp takes longer
// than to choose one. Other kernels have none.
template <typename Real, KernelKind kind>
struct Table {
  static constexpr bool is_there = false;
  void fill(const Function<Real, kind>&, const Real*) {}
  std::size_t lines(const Function<Real, kind>&, const Strips<Real>&, std::size_t,
                    const Batch<Real>&, std::size_t, Real*) const {
    return 0;
  }
};
template <typename Real>
struct Table<Real, KernelKind::rbf> {
  static constexpr bool is_there = true;
  Real values[Choice<Real>::size];
  Bytes norms[kOfStrip];
  std::size_t most = 0;  // of the norms: too large where bytes do not hold them

  void fill(const Function<Real, KernelKind::rbf>& f, const Real* x_norms) {
    Real distances[Choice<Real>::size];
    for (std::size_t d = 0; d < Choice<Real>::size; ++d) {
      distances[d] = static_cast<Real>(d);
      values[d] = 0;
    }
    apply(f, distances, Real(0), Choice<Real>::size, values);
    std::uint8_t bytes[kStrip];
    for (std::size_t s = 0; s < kStrip; ++s) {
      const auto norm = static_cast<std::size_t>(x_norms[s]);
      bytes[s] = static_cast<std::uint8_t>(norm);
      most = norm > most ? norm : most;
    }
    std::memcpy(norms, bytes, kStrip);
  }

  // The values of a row with `own` ones, which bytes count; or false, with its products, where a
  // distance is not in the table.
  bool line(const Choice<Real>& table, const std::uint8_t* strip, const std::int32_t* indices,
            std::size_t own, Real* out) const {
    Bytes both[kOfStrip], apart[kOfStrip], all_bits{};
    count_in_strips<1>(strip, 0, indices, own, both);
    for (std::size_t v = 0; v < kOfStrip; ++v) {
      const Bytes alone = norms[v] - both[v];  // ones of a sample, not of the row
      apart[v] = alone + (static_cast<std::uint8_t>(own) - both[v]);
      all_bits |= apart[v];
    }
    std::uint8_t bytes[kStrip];
    if (largest(all_bits) >= Choice<Real>::size) {
      std::memcpy(bytes, both, kStrip);
      for (std::size_t s = 0; s < kStrip; ++s) out[s] = static_cast<Real>(bytes[s]);
      return false;
    }
    std::memcpy(bytes, apart, kStrip);
    table.choose(bytes, out);
    return true;
  }

  // The values of some rows, in a tile.
  std::size_t lines(const Function<Real, KernelKind::rbf>& f, const Strips<Real>& X,
                    std::size_t strip, const Batch<Real>& batch, std::size_t row,
                    Real* tile) const {
    const std::size_t left = batch.count - row, rows = left < kTileRows ? left : kTileRows;
    const std::uint8_t* ones = X.ones + strip * X.n * kStrip;
    const Choice<Real> table(values);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::int32_t* indices = batch.indices + batch.begin[row + r];
      const auto own = static_cast<std::size_t>(batch.end[row + r] - batch.begin[row + r]);
      Real* out = tile + r * kStrip;
      bool is_made = false;
      if (own + most <= kMostOnes)
        is_made = line(table, ones, indices, own, out);
      else
        ones_tile(ones, indices, own, out);
      if (!is_made) apply(f, X.norms + strip * kStrip, batch.norms[row + r], kStrip, out);
    }
    return rows;
  }
};

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
