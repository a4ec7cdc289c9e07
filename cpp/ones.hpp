// Samples of ones: what they have in common with sparse rows of ones is counted in bytes, and
// values of rbf are chosen from tables. For kernel_rows.cpp.
#pragma once

#include "kernel_rows.hpp"
#include "picks.hpp"
#include "vectors.hpp"

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

// Bytes that are added at once, and how many ones a byte can count.
#if defined(__AVX512BW__)
constexpr std::size_t kBytes = 64;
#else
constexpr std::size_t kBytes = kVectorBytes < 32 ? kVectorBytes : 32;
#endif
constexpr std::size_t kMostOnes = 255;
typedef std::uint8_t Bytes __attribute__((vector_size(kBytes)));

// Vectors of bytes, one for each sample of a strip.
constexpr std::size_t kOfStrip = kStrip / kBytes;

// An upper bound of bytes that is below 64 (32) where all are: their bits together.
inline std::size_t largest(Bytes bytes) {
  std::uint64_t words[kBytes / 8], bits = 0;
  std::memcpy(words, &bytes, kBytes);
  for (const std::uint64_t word : words) bits |= word;
  bits |= bits >> 32;
  bits |= bits >> 16;
  bits |= bits >> 8;
  return bits & 255;
}

// Strips whose samples are counted together: what is read of a row serves all.
constexpr std::size_t kStripsTogether = 4;

// How many of up to 255 entries of a sparse row of ones each sample of some strips has, too. They
// lie `apart`.
template <std::size_t strips>
inline void count_in_strips(const std::uint8_t* ones, std::size_t apart,
                            const std::int32_t* indices, std::size_t count, Bytes* sums) {
  constexpr std::size_t vectors = kOfStrip;
  for (std::size_t v = 0; v < strips * vectors; ++v) sums[v] = Bytes{};
  for (std::size_t p = 0; p < count; ++p) {
    const std::uint8_t* x = ones + static_cast<std::size_t>(indices[p]) * kStrip;
    for (std::size_t v = 0; v < strips * vectors; ++v) {
      Bytes line;
      std::memcpy(&line, x + v / vectors * apart + v % vectors * kBytes, kBytes);
      sums[v] += line;
    }
  }
}

// The products of samples of ones with a sparse row of ones: counts of the ones that both have.
template <typename Real>
inline void ones_tile(const std::uint8_t* strip, const std::int32_t* indices, std::size_t count,
                      Real* tile) {
  for (std::size_t first = 0; first == 0 || first < count; first += kMostOnes) {
    Bytes sums[kOfStrip];
    count_in_strips<1>(strip, 0, indices + first,
                       count - first < kMostOnes ? count - first : kMostOnes, sums);
    std::uint8_t counts[kStrip];
    std::memcpy(counts, sums, kStrip);
    for (std::size_t s = 0; s < kStrip; ++s)
      tile[s] = first == 0 ? Real(counts[s]) : tile[s] + Real(counts[s]);
  }
}

// |x - z|^2 of the samples of some strips and a sparse row of ones, whose ones are at most 255
// together, in bytes: half of it, where it is even.
template <std::size_t strips>
inline void distances_in_strips(const std::uint8_t* ones, const std::uint8_t* norms, std::size_t n,
                                const std::int32_t* indices, std::size_t count, std::uint8_t shift,
                                std::uint8_t* out) {
  constexpr std::size_t vectors = strips * kOfStrip;
  Bytes own[vectors], apart[vectors];
  std::memcpy(own, norms, sizeof(own));
  count_in_strips<strips>(ones, n * kStrip, indices, count, apart);
  for (std::size_t v = 0; v < vectors; ++v)
    apart[v] = (own[v] + static_cast<std::uint8_t>(count) - (apart[v] + apart[v])) >> shift;
  std::memcpy(out, apart, sizeof(apart));
}
inline void distances_of_ones(const std::uint8_t* ones, const std::uint8_t* norms,
                              std::size_t samples, std::size_t n, const std::int32_t* indices,
                              std::size_t count, bool halved, std::uint8_t* out) {
  constexpr std::size_t some = kStripsTogether;
  const std::uint8_t shift = halved ? 1 : 0;
  for (std::size_t s = 0; s < samples;) {
    const bool are_some = s + some * kStrip <= samples;
    const auto& distances = are_some ? distances_in_strips<some> : distances_in_strips<1>;
    distances(ones + s * n, norms + s, n, indices, count, shift, out + s);
    s += (are_some ? some : 1) * kStrip;
  }
}

// Rows of a batch from which a table is worth being filled for a strip.
constexpr std::size_t kTableRows = 32;

// Values at 64 places of a table, where all places are in it.
template <typename Real>
struct Choice {
  static constexpr std::size_t size = 64;
  const Real* values;

  explicit Choice(const Real* from) : values(from) {}

  void choose(const std::uint8_t* places, Real* out) const {
    for (std::size_t s = 0; s < kStrip; ++s) out[s] = values[places[s]];
  }
};
#if defined(__AVX2__)
// With AVX-512 and 32 values w8a took 1.1 times as long; with AVX2 and tables of the bytes of
// values 1.05 times.
template <>
struct Choice<float> {
  static constexpr std::size_t size = 4 * kLanes<float>;
  Picks<size> values;

  explicit Choice(const float* from) : values(from) {}

  void choose(const std::uint8_t* places, float* out) const {
    for (std::size_t s = 0; s < kStrip; s += kLanes<float>) store(out + s, values(places + s));
  }
};
#endif
#if defined(__AVX512BW__)
template <>
struct Choice<double> {
  static constexpr std::size_t size = 64;
  __m512d values[8];

  explicit Choice(const double* from) {
    for (std::size_t v = 0; v < 8; ++v) values[v] = _mm512_loadu_pd(from + 8 * v);
  }

  void choose(const std::uint8_t* places, double* out) const {
    for (std::size_t s = 0; s < kStrip; s += 8) {
      const __m512i at =
          _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(places + s)));
      const __mmask8 in_16 = _mm512_test_epi64_mask(at, _mm512_set1_epi64(16));
      const __mmask8 in_32 = _mm512_test_epi64_mask(at, _mm512_set1_epi64(32));
      __m512d quarter[4];
      for (std::size_t v = 0; v < 4; ++v)
        quarter[v] = _mm512_permutex2var_pd(values[2 * v], at, values[2 * v + 1]);
      const __m512d low = _mm512_mask_blend_pd(in_16, quarter[0], quarter[1]);
      const __m512d high = _mm512_mask_blend_pd(in_16, quarter[2], quarter[3]);
      _mm512_storeu_pd(out + s, _mm512_mask_blend_pd(in_32, low, high));
    }
  }
};
#endif

// exp, of one number.
inline double exponential_of(double x) { return decay(all<double>(x), -1)[0]; }

// Sums over rows of ones of rbf, exp(-gamma (|x|^2 + |z|^2 - 2 b)) with b ones in common, as three
// factors: that of z is in its weight, that of x comes last, and that of b is chosen of as many
// values as z has ones, and one.
class SumsByFactors {
 public:
  // Rows whose weights wait.
  static constexpr std::size_t kRows = 512;

  SumsByFactors(double gamma, const Strips<float>& X, const Batch<float>& batch)
      : gamma_(gamma), X_(X), batch_(batch) {
    for (std::size_t b = 0; b <= kMostOnes; ++b)
      common_[b] = static_cast<float>(exponential_of(lesser(2 * gamma * static_cast<double>(b))));
  }

  void add(std::size_t first, std::size_t count, const double* weights, double* sums,
           std::size_t begin, std::size_t end) {
    for (std::size_t r = 0; r < count; ++r) {
      const auto own = static_cast<double>(batch_.end[first + r] - batch_.begin[first + r]);
      weights_[r] = static_cast<float>(weights[r] * exponential_of(-gamma_ * own));
    }
    for (std::size_t strip = begin; strip < end;) {
      const bool some = strip + kStripsTogether <= end;
      if (some)
        add_to<kStripsTogether>(first, count, strip, sums);
      else
        add_to<1>(first, count, strip, sums);
      strip += some ? kStripsTogether : 1;
    }
  }

 private:
  // What no row has in common is in range, too.
  static double lesser(double x) { return x < 80 ? x : 80; }

  static constexpr std::size_t kVectors = kStrip / kLanes<float>;
  static constexpr std::size_t kTogether = 8;  // rows whose sum is one of float32

  template <std::size_t strips>
  void add_to(std::size_t first, std::size_t count, std::size_t strip, double* sums) const {
    const std::uint8_t* ones = X_.ones + strip * X_.n * kStrip;
    double totals[strips * kStrip] = {};
    for (std::size_t row = 0; row < count; row += kTogether) {
      Vector<float> some[strips * kVectors] = {};
      const std::size_t last = count - row < kTogether ? count : row + kTogether;
      for (std::size_t r = row; r < last; ++r) {
        const auto begin = batch_.begin[first + r];
        const auto own = static_cast<std::size_t>(batch_.end[first + r] - begin);
        Bytes counts[strips * kOfStrip];
        count_in_strips<strips>(ones, X_.n * kStrip, batch_.indices + begin, own, counts);
        std::uint8_t places[strips * kStrip];
        std::memcpy(places, counts, sizeof(places));
        add_row<strips>(own, places, weights_[r], some);
      }
      float numbers[strips * kStrip];
      std::memcpy(numbers, some, sizeof(numbers));
#pragma omp simd
      for (std::size_t s = 0; s < strips * kStrip; ++s)
        totals[s] += static_cast<double>(numbers[s]);
    }
    for (std::size_t s = 0; s < strips * kStrip; s += kLanes<double>) {
      Vector<double> norms;
      for (std::size_t lane = 0; lane < kLanes<double>; ++lane)
        norms[lane] = static_cast<double>(X_.norms[strip * kStrip + s + lane]);
      double* out = sums + strip * kStrip + s;
      store(out, load(out) + load(totals + s) * decay(norms, gamma_));
    }
  }

  template <std::size_t strips>
  void add_row(std::size_t own, const std::uint8_t* places, float weight,
               Vector<float>* sums) const {
    if (own < 16)
      add_picked<strips>(Picks<16>(common_), places, weight, sums);
    else if (own < 32)
      add_picked<strips>(Picks<32>(common_), places, weight, sums);
    else if (own < 64)
      add_picked<strips>(Picks<64>(common_), places, weight, sums);
    else
      add_found<strips>(places, weight, sums);
  }
  template <std::size_t strips, std::size_t size>
  static void add_picked(const Picks<size>& values, const std::uint8_t* places, float weight,
                         Vector<float>* sums) {
    for (std::size_t v = 0; v < strips * kVectors; ++v)
      sums[v] = sums[v] + values(places + v * kLanes<float>) * weight;
  }
  template <std::size_t strips>
  void add_found(const std::uint8_t* places, float weight, Vector<float>* sums) const {
    for (std::size_t v = 0; v < strips * kVectors; ++v) {
      Vector<float> found;
      for (std::size_t lane = 0; lane < kLanes<float>; ++lane)
        found[lane] = common_[places[v * kLanes<float> + lane]];
      sums[v] = sums[v] + found * weight;
    }
  }

  double gamma_;
  const Strips<float>& X_;
  const Batch<float>& batch_;
  float common_[kMostOnes + 1], weights_[kRows];
};

inline void sums_by_factors(double gamma, const Strips<float>& X, const Batch<float>& batch,
                            const double* weights, double* sums, std::size_t begin,
                            std::size_t end) {
  SumsByFactors all(gamma, X, batch);
  for (std::size_t first = 0; first < batch.count; first += SumsByFactors::kRows) {
    const std::size_t left = batch.count - first;
    all.add(first, left < SumsByFactors::kRows ? left : SumsByFactors::kRows, weights + first, sums,
            begin, end);
  }
}

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
