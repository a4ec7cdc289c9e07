// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "kernel_rows.hpp"

#include <type_traits>

#include "levels.hpp"
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

// A tile of products: rows of the batch x samples of a strip. As many sums as the registers hold.
constexpr std::size_t kTileRows = 6;
constexpr std::size_t kTileVectors = kVectorBytes == 64 ? 4 : 2;
// A sparse row reads a strip alone: more sums hide their latency.
constexpr std::size_t kSparseVectors = 8;

template <typename Real, std::size_t wanted>
constexpr std::size_t vectors_of_strip() {
  return wanted * kLanes<Real> < kStrip ? wanted : kStrip / kLanes<Real>;
}

// One more term. Where z is sparse, |x - z|_1 begins at |x|_1, and its terms say what differs; so
// does what chi2 sums, whose terms of z = 0 are those of |x|_1, too.
template <typename Real, Term kind, bool is_sparse>
inline Vector<Real> add_term(Vector<Real> sum, Real z, Vector<Real> x) {
  const Vector<Real> term = kernel_term<kind>(x, all<Real>(z));
  if constexpr (is_sparse && (kind == Term::size || kind == Term::share))
    return sum + (term - magnitude(x));
  else
    return sum + term;
}

// Not inlined: beside the constants of a kernel function GCC spills these sums, and it takes twice
// as long. Of the first `width` samples of the strip.
template <typename Real, Term kind, std::size_t rows, std::size_t wanted>
[[gnu::noinline]] void dense_tile(const Real* strip, std::size_t n, const Real* z,
                                  std::size_t width, Real* tile) {
  constexpr std::size_t vectors = vectors_of_strip<Real, wanted>();
  constexpr std::size_t lanes = kLanes<Real>;
  for (std::size_t s = 0; s < width; s += vectors * lanes) {
    for (std::size_t first = 0; first < n; first += kChunk) {
      Vector<Real> sums[rows][vectors] = {};
      const std::size_t last = n - first < kChunk ? n : first + kChunk;
      for (std::size_t j = first; j < last; ++j) {
        Vector<Real> x[vectors];
        for (std::size_t v = 0; v < vectors; ++v) x[v] = load(strip + j * kStrip + s + v * lanes);
        for (std::size_t r = 0; r < rows; ++r) {
          const Real zj = z[r * n + j];
          for (std::size_t v = 0; v < vectors; ++v)
            sums[r][v] = add_term<Real, kind, false>(sums[r][v], zj, x[v]);
        }
      }
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t v = 0; v < vectors; ++v) {
          Real* total = tile + r * kStrip + s + v * lanes;
          store(total, first == 0 ? sums[r][v] : load(total) + sums[r][v]);
        }
    }
  }
}

template <typename Real, Term kind, std::size_t wanted>
inline void sparse_tile(const Real* strip, const Real* z, const std::int32_t* indices,
                        std::size_t count, std::size_t width, Real* tile) {
  constexpr std::size_t vectors = vectors_of_strip<Real, wanted>();
  constexpr std::size_t lanes = kLanes<Real>;
  for (std::size_t s = 0; s < width; s += vectors * lanes) {
    Vector<Real> sums[vectors] = {};
    for (std::size_t p = 0; p < count; ++p) {
      const Real* x = strip + static_cast<std::size_t>(indices[p]) * kStrip + s;
      const Real zj = z[p];
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] = add_term<Real, kind, true>(sums[v], zj, load(x + v * lanes));
    }
    for (std::size_t v = 0; v < vectors; ++v) store(tile + s + v * lanes, sums[v]);
  }
}

// The products of sparse samples with a group of packed rows.
template <typename Real, Term kind>
inline void group_tile(const Strips<Real>& X, std::size_t strip, const Real* group, Real* tile) {
  constexpr std::size_t lanes = kLanes<Real>, vectors = kGroup / lanes;
  const std::size_t first = strip * kStrip;
  const std::size_t count = X.samples - first < kStrip ? X.samples - first : kStrip;
  for (std::size_t s = 0; s < count; ++s) {
    Vector<Real> sums[vectors] = {};
    for (auto p = X.indptr[first + s]; p < X.indptr[first + s + 1]; ++p) {
      const Real* z = group + static_cast<std::size_t>(X.indices[p]) * kGroup;
      for (std::size_t v = 0; v < vectors; ++v)
        sums[v] = add_term<Real, kind, true>(sums[v], X.data[p], load(z + v * lanes));
    }
    Real values[kGroup];
    for (std::size_t v = 0; v < vectors; ++v) store(values + v * lanes, sums[v]);
    for (std::size_t r = 0; r < kGroup; ++r) tile[r * kStrip + s] = values[r];
  }
  for (std::size_t r = 0; r < kGroup; ++r)
    for (std::size_t s = count; s < kStrip; ++s) tile[r * kStrip + s] = 0;
}

// The distance of two sparse rows with sorted columns, by differences: x from entry p on, z from q.
template <typename Real, Term kind>
inline Real apart(const Strips<Real>& X, std::int64_t p, std::int64_t p_end,
                  const Batch<Real>& batch, std::int64_t q, std::int64_t q_end) {
  Real sum = 0;
  while (p < p_end || q < q_end) {
    const bool has_x = p < p_end && (q == q_end || X.indices[p] <= batch.indices[q]);
    const bool has_z = q < q_end && (p == p_end || batch.indices[q] <= X.indices[p]);
    sum += kernel_term<kind>(has_x ? X.data[p] : Real(0), has_z ? batch.data[q] : Real(0));
    p += has_x;
    q += has_z;
  }
  return sum;
}

// The distances of sparse samples from sparse rows.
template <typename Real, Term kind>
inline std::size_t merged_tile(const Strips<Real>& X, std::size_t strip, const Batch<Real>& batch,
                               std::size_t row, Real* tile) {
  const std::size_t first = strip * kStrip;
  const std::size_t count = X.samples - first < kStrip ? X.samples - first : kStrip;
  const std::size_t left = batch.count - row, rows = left < kGroup ? left : kGroup;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t s = 0; s < kStrip; ++s)
      tile[r * kStrip + s] =
          s < count ? apart<Real, kind>(X, X.indptr[first + s], X.indptr[first + s + 1], batch,
                                        batch.begin[row + r], batch.end[row + r])
                    : Real(0);
  return rows;
}

// A tile of rows of the batch x the first `width` samples of a strip: returns how many rows are in
// it. `dense` and `sparse` vectors of sums at a time. Not inlined, as the sums below: each kernel
// would compile its own, in twice the time, and none is faster for it.
template <typename Real, Term kind, std::size_t dense, std::size_t sparse, std::size_t samples>
[[gnu::noinline]] std::size_t products(const Strips<Real>& X, std::size_t strip_number,
                                       const Batch<Real>& batch, std::size_t row, std::size_t some,
                                       Real* tile) {
  const std::size_t width = samples > 0 ? samples : some;
  const std::size_t left = batch.count - row, n = X.n;
  if constexpr (kind != Term::product) {
    if (X.indptr != nullptr && batch.begin != nullptr)
      return merged_tile<Real, kind>(X, strip_number, batch, row, tile);
  }
  if (X.indptr != nullptr) {
    group_tile<Real, kind>(X, strip_number, batch.data + row * n, tile);
    return left < kGroup ? left : kGroup;
  }
  const std::size_t rows = left < kTileRows ? left : kTileRows;
  if (X.levels != nullptr) {
    if (rows == kTileRows) {
      level_tile<kTileRows>(X, strip_number, batch, row, tile);
    } else {
      for (std::size_t r = 0; r < rows; ++r)
        level_tile<1>(X, strip_number, batch, row + r, tile + r * kStrip);
    }
    return rows;
  }
  if (X.ones != nullptr) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = batch.begin[row + r];
      ones_tile<Real>(X.ones + strip_number * n * kStrip, batch.indices + first,
                      static_cast<std::size_t>(batch.end[row + r] - first), tile + r * kStrip);
    }
    return rows;
  }
  const Real* strip = X.data + strip_number * n * kStrip;
  if (batch.begin != nullptr) {
    for (std::size_t r = 0; r < rows; ++r) {
      const auto first = batch.begin[row + r];
      sparse_tile<Real, kind, sparse>(strip, batch.data + first, batch.indices + first,
                                      static_cast<std::size_t>(batch.end[row + r] - first), width,
                                      tile + r * kStrip);
    }
    return rows;
  }
  const Real* z = batch.data + row * n;
  if (rows == kTileRows) {
    dense_tile<Real, kind, kTileRows, dense>(strip, n, z, width, tile);
  } else {
    // A row alone hides the latency of its sums as a sparse one does.
    constexpr std::size_t alone = samples == kStrip ? sparse : dense;
    for (std::size_t r = 0; r < rows; ++r)
      dense_tile<Real, kind, 1, alone>(strip, n, z + r * n, width, tile + r * kStrip);
  }
  return rows;
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
  StripBytes norms;
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
    std::memcpy(&norms, bytes, kStrip);
  }

  // The values of a row with `own` ones, which bytes count; or false, with its products, where a
  // distance is not in the table.
  bool line(const Choice<Real>& table, const std::uint8_t* strip, const std::int32_t* indices,
            std::size_t own, Real* out) const {
    const StripBytes both = count_ones(strip, indices, own);
    StripBytes apart;
    Bytes all_bits{};
    for (std::size_t v = 0; v < StripBytes::kVectors; ++v) {
      const Bytes alone = norms.vectors[v] - both.vectors[v];  // ones of a sample, not of the row
      apart.vectors[v] = alone + (static_cast<std::uint8_t>(own) - both.vectors[v]);
      all_bits |= apart.vectors[v];
    }
    std::uint8_t bytes[kStrip];
    if (largest(all_bits) >= Choice<Real>::size) {
      std::memcpy(bytes, &both, kStrip);
      for (std::size_t s = 0; s < kStrip; ++s) out[s] = static_cast<Real>(bytes[s]);
      return false;
    }
    std::memcpy(bytes, &apart, kStrip);
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

// Sums of one strip for each column of the weights: of a tile in float32, then added to float64.
// Longer float32 sums were the largest error of all. Float64 is added up to the end.
template <typename Real>
struct Sums {
  static constexpr std::size_t kColumns = 64;  // of the weights that one pass serves
  Real values[kColumns][kStrip];

  void clear(std::size_t columns, std::size_t samples) {
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t s = 0; s < samples; ++s) values[c][s] = 0;
  }
  // Some more rows of values; weights[r * stride + c]. Sums of a column stay in registers.
  [[gnu::noinline]] void add(const Real* tile, std::size_t rows, const double* weights,
                             std::size_t stride, std::size_t columns, std::size_t samples) {
    constexpr std::size_t lanes = kLanes<Real>, some = 4 * lanes;
    std::size_t found[kGroup];
    for (std::size_t c = 0; c < columns; ++c) {
      std::size_t count = 0, s = 0;
      for (std::size_t r = 0; r < rows; ++r)
        found[count] = r, count += static_cast<Real>(weights[r * stride + c]) != 0 ? 1 : 0;
      const double* const own = weights + c;
      if (count == 0) continue;
      for (; s + some <= samples; s += some)
        add_vectors<4>(tile + s, found, count, own, stride, values[c] + s);
      for (; s < samples; s += lanes)
        add_vectors<1>(tile + s, found, count, own, stride, values[c] + s);
    }
  }
  template <std::size_t vectors>
  static void add_vectors(const Real* tile, const std::size_t* found, std::size_t count,
                          const double* weights, std::size_t stride, Real* sum) {
    constexpr std::size_t lanes = kLanes<Real>;
    Vector<Real> total[vectors];
    for (std::size_t k = 0; k < vectors; ++k) total[k] = load(sum + k * lanes);
    for (std::size_t i = 0; i < count; ++i) {
      const Real w = static_cast<Real>(weights[found[i] * stride]);
      const Real* const line = tile + found[i] * kStrip;
      for (std::size_t k = 0; k < vectors; ++k) total[k] = total[k] + load(line + k * lanes) * w;
    }
    for (std::size_t k = 0; k < vectors; ++k) store(sum + k * lanes, total[k]);
  }
  [[gnu::noinline]] void flush(double* sums, std::size_t columns, std::size_t samples,
                               std::size_t stride) {
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t s = 0; s < samples; ++s) {
        sums[c * stride + s] += static_cast<double>(values[c][s]);
        values[c][s] = 0;
      }
  }
};

// The sum of weights times the values of a line.
template <typename Real>
[[gnu::noinline]] double weighted(const Real* line, const Real* weights, std::size_t width) {
  Vector<Real> sums{};
  for (std::size_t s = 0; s < width; s += kLanes<Real>)
    sums = sums + load(line + s) * load(weights + s);
  return total(sums);
}

// The same sums, to the bit, where the strip has one sample: lanes are columns of the weights.
template <typename Real>
struct SumsOfOne {
  Real values[Sums<Real>::kColumns];

  void clear(std::size_t columns, std::size_t) {
    for (std::size_t c = 0; c < columns; ++c) values[c] = 0;
  }
  [[gnu::noinline]] void add(const Real* tile, std::size_t rows, const double* weights,
                             std::size_t stride, std::size_t columns, std::size_t) {
    for (std::size_t r = 0; r < rows; ++r, weights += stride) {
      const Real value = tile[r * kStrip];
#pragma omp simd
      for (std::size_t c = 0; c < columns; ++c) {
        const Real w = static_cast<Real>(weights[c]), sum = values[c] + value * w;
        values[c] = w == 0 ? values[c] : sum;
      }
    }
  }
  [[gnu::noinline]] void flush(double* sums, std::size_t columns, std::size_t, std::size_t stride) {
    for (std::size_t c = 0; c < columns; ++c) {
      sums[c * stride] += static_cast<double>(values[c]);
      values[c] = 0;
    }
  }
};

// How many samples of a strip are computed: whole vectors of those that there are, where a strip
// has one row to predict. Values that are stored are all of them: others read whole strips.
template <typename Real>
inline std::size_t width_of(const Strips<Real>& X, const Target<Real>& target, std::size_t strip) {
  const std::size_t left = X.samples - strip * kStrip;
  if (target.stores() || left >= kStrip) return kStrip;
  return (left + kLanes<Real> - 1) / kLanes<Real> * kLanes<Real>;
}

// Values from 0 to 1 in steps, past the caches.
template <typename Real>
[[gnu::noinline]] void stream_rounded(const Real* line, std::uint16_t* out) {
  alignas(64) std::uint16_t steps[kStrip];
#pragma omp simd
  for (std::size_t s = 0; s < kStrip; ++s)
    steps[s] = static_cast<std::uint16_t>(
        static_cast<std::int32_t>(static_cast<float>(line[s]) * kSteps + 0.5f));
  constexpr std::size_t values = kVectorBytes / sizeof(std::uint16_t);
  for (std::size_t s = 0; s < kStrip; s += values) {
    Vector<float> some;
    std::memcpy(&some, steps + s, sizeof(some));
    stream(reinterpret_cast<float*>(out + s), some);
  }
}

// Store the values of a line of a strip in a row of the target.
template <typename Real>
inline void put(const Target<Real>& target, std::size_t row, std::size_t strip, const Real* line) {
  const std::size_t at = row * target.stride + strip * kStrip;
  if (target.rounded != nullptr) return stream_rounded(line, target.rounded + at);
  Real* out = target.out + at;
  for (std::size_t s = 0; s < kStrip; s += kLanes<Real>)
    target.past_caches ? stream(out + s, load(line + s)) : store(out + s, load(line + s));
}

// `samples`: how many a strip has where that is known, so that loops are unrolled, or 0.
template <std::size_t dense, std::size_t sparse, std::size_t samples, typename Real,
          KernelKind kind, typename Total>
void strip_of_rows(const Function<Real, kind>& f, const Strips<Real>& X, const Batch<Real>& batch,
                   const Target<Real>& target, std::size_t strip, std::size_t some,
                   std::size_t first_column, std::size_t columns, Total& sums) {
  const std::size_t width = samples > 0 ? samples : some;
  constexpr Term terms = row_term(kind);
  const Real* norms = X.norms + strip * kStrip;
  double* total = target.sums + first_column * target.width + strip * kStrip;
  alignas(64) Real tile[kGroup * kStrip];
  sums.clear(columns, width);
  Table<Real, kind> table;
  const bool has_table =
      table.is_there && samples == kStrip && X.ones != nullptr && batch.count >= kTableRows;
  if (has_table) table.fill(f, norms);
  const bool at_once =
      samples == kStrip && !has_table && !target.stores() && target.columns * columns <= 1;
  for (std::size_t row = 0; row < batch.count;) {
    const std::size_t rows = has_table ? table.lines(f, X, strip, batch, row, tile)
                                       : products<Real, terms, dense, sparse, samples>(
                                             X, strip, batch, row, width, tile);
    for (std::size_t r = 0; r < rows; ++r) {
      Real* line = tile + r * kStrip;
      if constexpr (samples == kStrip) {
        if (at_once) {
          const Real weight = columns > 0 ? static_cast<Real>(target.weights[row + r]) : Real(0);
          const auto add = [&]<bool is_sums, bool is_back>(const Real* back) {
            return apply_to_sums<is_sums, is_back>(f, norms, batch.norms[row + r], width, line,
                                                   weight, sums.values[0], back);
          };
          if (target.back_weights != nullptr) {
            const Real* back = target.back_weights + strip * kStrip;
            target.back[row + r] += weight != 0 ? add.template operator()<true, true>(back)
                                                : add.template operator()<false, true>(back);
          } else if (weight != 0) {
            add.template operator()<true, false>(nullptr);
          }
          continue;
        }
      }
      if (!has_table) apply(f, norms, batch.norms[row + r], width, line);
      if (target.stores() && first_column == 0) {
        const auto place =
            target.place ? target.place[row + r] : static_cast<std::int64_t>(row + r);
        if (place >= 0) put(target, static_cast<std::size_t>(place), strip, line);
      }
      if (target.back_weights != nullptr && first_column == 0)
        target.back[row + r] += weighted(line, target.back_weights + strip * kStrip, width);
    }
    if (columns > 0 && !at_once)
      sums.add(tile, rows, target.weights + row * target.columns + first_column, target.columns,
               columns, width);
    row += rows;
    if (sizeof(Real) == 4 || row == batch.count) sums.flush(total, columns, width, target.width);
  }
}

template <typename Real, KernelKind kind>
void rows_of_kind(const KernelForm& form, const Strips<Real>& X, const Batch<Real>& batch,
                  const Target<Real>& target, std::size_t begin, std::size_t end) {
  if constexpr (kind == KernelKind::rbf && sizeof(Real) == 4 && kPicks) {
    const bool sums_only = !target.stores() && target.back_weights == nullptr;
    if (X.by_factors && sums_only && target.columns == 1 && target.weights != nullptr)
      return sums_by_factors(form.gamma, X, batch, target.weights, target.sums, begin, end);
  }
  const Function<Real, kind> f{static_cast<Real>(form.gamma), static_cast<Real>(form.coef0),
                               form.degree};
  constexpr std::size_t most = Sums<Real>::kColumns;
  Sums<Real> sums;
  SumsOfOne<Real> of_one;
  const std::size_t columns = target.weights ? target.columns : 0;
  for (std::size_t strip = begin; strip < end; ++strip) {
    const std::size_t width = width_of(X, target, strip);
    for (std::size_t c = 0; c == 0 || c < columns; c += most) {
      const std::size_t some = columns - c < most ? columns - c : most;
      if (X.samples - strip * kStrip == 1)
        strip_of_rows<1, 1, 0>(f, X, batch, target, strip, width, c, some, of_one);
      else if (width == kStrip)
        strip_of_rows<kTileVectors, kSparseVectors, kStrip>(f, X, batch, target, strip, width, c,
                                                            some, sums);
      else if (width > kLanes<Real>)
        strip_of_rows<kTileVectors, kSparseVectors, 0>(f, X, batch, target, strip, width, c, some,
                                                       sums);
      else
        strip_of_rows<1, 1, 0>(f, X, batch, target, strip, width, c, some, sums);
    }
  }
  end_of_stream();
}

template <typename Real>
void kernel_rows(const KernelForm& form, const Strips<Real>& X, const Batch<Real>& batch,
                 const Target<Real>& target, std::size_t begin, std::size_t end) {
  with_kind(form.kind, [&](auto kind) {
    rows_of_kind<Real, decltype(kind)::value>(form, X, batch, target, begin, end);
  });
}

template <typename Real>
void strip_squares(const Real* strip, std::size_t n, Real* squares) {
  for (std::size_t s = 0; s < kStrip; s += kLanes<Real>) {
    for (std::size_t first = 0; first < n; first += kChunk) {
      Vector<Real> sum{};
      const std::size_t last = n - first < kChunk ? n : first + kChunk;
      for (std::size_t j = first; j < last; ++j) {
        const Vector<Real> x = load(strip + j * kStrip + s);
        sum = sum + x * x;
      }
      store(squares + s, first == 0 ? sum : load(squares + s) + sum);
    }
  }
}

// Rows that are added up in float32 before they are added to float64 sums.
constexpr std::size_t kTogether = 8;
// Samples whose sums stay in the first-level cache while rows are added up.
constexpr std::size_t kTileSamples = 1024;

// What a stored value is, but for the steps: those are in its weight.
template <typename Stored>
using Plain = std::conditional_t<sizeof(Stored) == 2, float, Stored>;

template <typename Stored, std::size_t together>
inline void add_together(const Stored* const* rows, const double* weights, std::size_t begin,
                         std::size_t end, double* sums) {
  using Real = Plain<Stored>;
  constexpr Real step = sizeof(Stored) == 2 ? Real(1) / kSteps : Real(1);
  Real w[together];
  for (std::size_t r = 0; r < together; ++r) w[r] = static_cast<Real>(weights[r]) * step;
#pragma omp simd
  for (std::size_t s = begin; s < end; ++s) {
    Real sum = 0;
    for (std::size_t r = 0; r < together; ++r) sum += static_cast<Real>(rows[r][s]) * w[r];
    sums[s] += static_cast<double>(sum);
  }
}

template <typename Stored>
void add_rows(const Stored* data, const std::int64_t* place, std::size_t count, std::size_t stride,
              const double* weights, std::size_t begin, std::size_t end, double* sums) {
  const Stored* rows[kTogether];
  for (std::size_t first = begin; first < end; first += kTileSamples) {
    const std::size_t last = end - first < kTileSamples ? end : first + kTileSamples;
    std::size_t r = 0;
    for (; r + kTogether <= count; r += kTogether) {
      for (std::size_t i = 0; i < kTogether; ++i)
        rows[i] = data + static_cast<std::size_t>(place[r + i]) * stride;
      add_together<Stored, kTogether>(rows, weights + r, first, last, sums);
    }
    for (; r < count; ++r) {
      rows[0] = data + static_cast<std::size_t>(place[r]) * stride;
      add_together<Stored, 1>(rows, weights + r, first, last, sums);
    }
  }
}

}  // namespace

KernelTable kernel_table() {
  return {&kernel_rows<float>,      &kernel_rows<double>,  &add_rows<float>,      &add_rows<double>,
          &add_rows<std::uint16_t>, &strip_squares<float>, &strip_squares<double>};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
