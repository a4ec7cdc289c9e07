// Compiled once for each instruction set, like row_steps.cpp, and under the same rule: no inline
// functions of the standard library.
#include "kernel_rows.hpp"

#include <type_traits>

#include "kernel_functions.hpp"
#include "kernel_tiles.hpp"
#include "ones.hpp"
#include "strip_sums.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

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
[[gnu::noinline]] void stream_rounded(const Real* line, std::uint16_t* out, float all) {
  alignas(64) std::uint16_t steps[kStrip];
#pragma omp simd
  for (std::size_t s = 0; s < kStrip; ++s)
    steps[s] = static_cast<std::uint16_t>(
        static_cast<std::int32_t>(static_cast<float>(line[s]) * all + 0.5f));
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
  if (target.rounded != nullptr) return stream_rounded(line, target.rounded + at, target.steps);
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
  const Tiles tiles(makes_tiles(X, batch, 0), X.n);
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

// With the roundings of `add_together`.
template <std::size_t together>
inline void add_codes_together(const Picks<kCodes>& values, const std::uint8_t* const* rows,
                               const double* weights, std::size_t begin, std::size_t end,
                               double* sums) {
  float w[together];
  for (std::size_t r = 0; r < together; ++r) w[r] = static_cast<float>(weights[r]);
  for (std::size_t s = begin; s < end; s += kLanes<float>) {
    Vector<float> sum{};
    for (std::size_t r = 0; r < together; ++r) sum += values(rows[r] + s) * w[r];
    float some[kLanes<float>];
    std::memcpy(some, &sum, sizeof(sum));
#pragma omp simd
    for (std::size_t k = 0; k < kLanes<float>; ++k) sums[s + k] += static_cast<double>(some[k]);
  }
}

void add_codes(const float* values, const std::uint8_t* codes, const std::int64_t* place,
               std::size_t count, const double* weights, std::size_t begin, std::size_t end,
               double* sums) {
  const Picks<kCodes> picks(values);
  const std::uint8_t* rows[kTogether];
  for (std::size_t first = begin; first < end; first += kTileSamples) {
    const std::size_t last = end - first < kTileSamples ? end : first + kTileSamples;
    std::size_t r = 0;
    for (; r + kTogether <= count; r += kTogether) {
      for (std::size_t i = 0; i < kTogether; ++i) rows[i] = codes + place[r + i];
      add_codes_together<kTogether>(picks, rows, weights + r, first, last, sums);
    }
    for (; r < count; ++r) {
      rows[0] = codes + place[r];
      add_codes_together<1>(picks, rows, weights + r, first, last, sums);
    }
  }
}

void cut_bytes(const std::uint8_t* bytes, const std::uint8_t* places, const std::uint32_t* to,
               std::size_t blocks, std::uint8_t* out) {
  for (std::size_t s = 0; s < blocks; ++s, bytes += kCutBlock, places += kCutBlock) {
#if defined(__SSSE3__)
    const auto block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const auto chosen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(places));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + to[s]), _mm_shuffle_epi8(block, chosen));
#else
    for (std::size_t k = 0; k < kCutBlock; ++k)
      out[to[s] + k] = places[k] == kNothing ? std::uint8_t{0} : bytes[places[k]];
#endif
  }
}

// `count` is at most the width of a strip.
void values_apart(double gamma, float step, float* values, std::size_t count) {
  alignas(64) float distances[kStrip] = {}, line[kStrip] = {};
  for (std::size_t d = 0; d < count; ++d) distances[d] = step * static_cast<float>(d);
  const Function<float, KernelKind::rbf> f{static_cast<float>(gamma), 0.0f, 0};
  apply(f, distances, 0.0f, kStrip, line);
  for (std::size_t d = 0; d < count; ++d) values[d] = line[d];
}

}  // namespace

KernelTable kernel_table() {
  return {&kernel_rows<float>,
          &kernel_rows<double>,
          &add_rows<float>,
          &add_rows<double>,
          &add_rows<std::uint16_t>,
          &strip_squares<float>,
          &strip_squares<double>,
          kPicks ? &distances_of_ones : nullptr,
          &values_apart,
          &add_codes,
          &cut_bytes};
}

}  // namespace widemargin::WIDEMARGIN_SIMD
