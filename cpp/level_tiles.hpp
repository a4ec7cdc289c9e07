// Products of bytes by the tiles of AMX: 16 rows of 64 bytes meet 64 bytes of 16 samples in one
// instruction. For levels.hpp.
#pragma once

#include "kernel_rows.hpp"

#if defined(__AVX512BW__) && defined(__x86_64__) && defined(__linux__) && \
    (__has_include(<amxint8intrin.h>) || (defined(__clang__) && __clang_major__ >= 19))
#define WIDEMARGIN_TILES
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace widemargin::WIDEMARGIN_SIMD {
namespace {

#ifdef WIDEMARGIN_TILES

constexpr std::size_t kTileBytes = 64;  // of a row of a tile

// Whether there are tiles. Linux gives a process their room where it asks for it, and from then on
// refuses signal stacks that they would not fit in, below some 12 KB.
inline bool has_tiles() {
  constexpr int ask = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool found = __builtin_cpu_supports("amx-tile") &&
                            __builtin_cpu_supports("amx-int8") &&
                            syscall(SYS_arch_prctl, ask, tile_data) == 0;
  return found;
}

// There are tiles while it lives, where `wanted` (of has_tiles), for rows of n bytes: 0 to 3 are
// sums, 4 and 5 rows and samples, 6 and 7 the last features of both, where these do not fill a
// tile.
class Tiles {
 public:
  Tiles(bool wanted, std::size_t n) : are_there_{wanted} {
    if (are_there_) begin(n);
  }
  ~Tiles() {
    if (are_there_) end();
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  [[gnu::noinline, gnu::target("amx-tile")]] static void begin(std::size_t n) {
    struct alignas(64) {
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shapes;
    const std::size_t left = n % kTileBytes;
    for (std::size_t t = 0; t < (left > 0 ? 8 : 6); ++t)
      shapes.row_bytes[t] = kTileBytes, shapes.rows[t] = kGroup;
    if (left > 0) {
      shapes.row_bytes[6] = static_cast<std::uint16_t>(left);
      shapes.rows[7] = static_cast<std::uint8_t>(left / kLevelsTogether);
    }
    asm volatile("" ::"r"(&shapes) : "memory");  // GCC sees a part of what the next one reads
    _tile_loadconfig(&shapes);
  }
  [[gnu::noinline, gnu::target("amx-tile")]] static void end() { _tile_release(); }

  bool are_there_;
};

// sums[r][s] = sum of x_js z_rj of 16 rows, with Tiles. A strip is four tiles of samples side by
// side as it lies. Numbers of tiles are part of an instruction, so that the last features have
// lines of their own.
[[gnu::noinline, gnu::target("amx-tile,amx-int8")]] void level_products_tiles(
    const std::uint8_t* strip, const std::int8_t* z, std::size_t n, std::int32_t (*sums)[kStrip]) {
  constexpr std::size_t bytes = kTileBytes, line = kLevelsTogether * kStrip;
  const std::size_t left = n % bytes;
  asm volatile("" ::: "memory");
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (const std::uint8_t* end = strip + (n - left) * kStrip; strip < end;
       strip += bytes * kStrip, z += bytes) {
    _tile_loadd(4, z, n);
    _tile_loadd(5, strip, line);
    _tile_dpbsud(0, 4, 5);
    _tile_loadd(5, strip + bytes, line);
    _tile_dpbsud(1, 4, 5);
    _tile_loadd(5, strip + 2 * bytes, line);
    _tile_dpbsud(2, 4, 5);
    _tile_loadd(5, strip + 3 * bytes, line);
    _tile_dpbsud(3, 4, 5);
  }
  if (left > 0) {
    _tile_loadd(6, z, n);
    _tile_loadd(7, strip, line);
    _tile_dpbsud(0, 6, 7);
    _tile_loadd(7, strip + bytes, line);
    _tile_dpbsud(1, 6, 7);
    _tile_loadd(7, strip + 2 * bytes, line);
    _tile_dpbsud(2, 6, 7);
    _tile_loadd(7, strip + 3 * bytes, line);
    _tile_dpbsud(3, 6, 7);
  }
  _tile_stored(0, sums[0], line);
  _tile_stored(1, sums[0] + kGroup, line);
  _tile_stored(2, sums[0] + 2 * kGroup, line);
  _tile_stored(3, sums[0] + 3 * kGroup, line);
  asm volatile("" ::: "memory");
}
#else
inline bool has_tiles() { return false; }
struct Tiles {
  Tiles(bool, std::size_t) {}
};
inline void level_products_tiles(const std::uint8_t*, const std::int8_t*, std::size_t,
                                 std::int32_t (*)[kStrip]) {}
#endif

}  // namespace
}  // namespace widemargin::WIDEMARGIN_SIMD
