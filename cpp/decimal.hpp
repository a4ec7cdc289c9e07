// Decimal text to binary numbers and back, exactly and without a locale: every double is the
// nearest one to its text (ties to even), every text the shortest that reads back as the same
// number.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(WIDEMARGIN_WITHOUT_FLOAT_CHARCONV) || !defined(__cpp_lib_to_chars)
#define WIDEMARGIN_FLOAT_BY_C_LOCALE 1
#include <locale.h>
#include <stdlib.h>

#include <cstdio>
#include <string>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace widemargin {
namespace decimal {

using u64 = std::uint64_t;

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

constexpr u64 kZeros = 0x3030303030303030;  // "00000000"

// Eight bytes, the first in the lowest place; zeros stand for what lies beyond the end.
inline u64 load8(const char* p, const char* end) {
  u64 word = 0;
  if (end - p >= 8) [[likely]] {
    std::memcpy(&word, p, 8);
  } else {
    std::memcpy(&word, p, static_cast<std::size_t>(end - p));
  }
  if constexpr (std::endian::native == std::endian::big) {
    u64 swapped = 0;
    for (int i = 0; i < 8; ++i) swapped |= ((word >> (56 - 8 * i)) & 0xff) << (8 * i);
    word = swapped;
  }
  return word;
}

// How many of the eight bytes, '0' taken off each, are digits before the first that is not.
inline int leading_digits(u64 digits) {
  const u64 not_digit = ((digits + 0x7676767676767676) | digits) & 0x8080808080808080;
  return std::countr_zero(not_digit) >> 3;  // 8 if all are
}

// The number that eight digits spell, the first in the lowest byte: pairs, then fours, then eight.
inline u64 eight_digits(u64 digits) {
  digits = digits * 10 + (digits >> 8);
  constexpr u64 kMask = 0x000000FF000000FF;
  return ((digits & kMask) * 0x000F424000000064 + ((digits >> 16) & kMask) * 0x0000271000000001) >>
         32;
}

constexpr std::array<u64, 9> kTens = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

// The first n digits behind those of `number`, modulo 2^64.
inline u64 append_digits(u64 number, u64 digits, int n) {
  const int half = 4 * (8 - n);  // shifted twice: a shift by 64 is undefined
  return number * kTens[static_cast<std::size_t>(n)] + eight_digits(digits << half << half);
}

// Appends the run of digits at p to `number`, modulo 2^64. Returns the byte after it.
inline const char* read_digits(const char* p, const char* end, u64& number) {
  for (;;) {
    const u64 digits = load8(p, end) ^ kZeros;
    const int n = leading_digits(digits);
    number = append_digits(number, digits, n);
    p += n;
    if (n < 8) return p;
  }
}

struct Wide {
  u64 high, low;
};

constexpr Wide multiply(u64 a, u64 b) {
#if defined(__SIZEOF_INT128__)
  __extension__ using u128 = unsigned __int128;
  const u128 product = static_cast<u128>(a) * b;
  return {static_cast<u64>(product >> 64), static_cast<u64>(product)};
#else
  const u64 a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const u64 mid = a1 * b0 + ((a0 * b0) >> 32);
  const u64 cross = a0 * b1 + (mid & 0xffffffff);
  return {a1 * b1 + (mid >> 32) + (cross >> 32), (cross << 32) | ((a0 * b0) & 0xffffffff)};
#endif
}

// 5^k shifted up to fill 64 bits, and its reciprocal floor((2^128 - 1) / divisor) - 2^64.
struct PowerOfFive {
  u64 divisor, reciprocal;
  int shift;
};

constexpr int kMaxPowerOfFive = 27;  // the largest that fits 64 bits

constexpr auto kPowersOfFive = [] {
  std::array<PowerOfFive, kMaxPowerOfFive + 1> table{};
  u64 power = 1;
  for (auto& [divisor, reciprocal, shift] : table) {
    shift = std::countl_zero(power);
    divisor = power << shift;
    u64 rest = ~divisor;  // long division of (2^64 - 1 - divisor) 2^64 + 2^64 - 1, bit by bit
    for (int bit = 0; bit < 64; ++bit) {
      const bool carry = rest >> 63;
      rest = (rest << 1) | 1;
      reciprocal <<= 1;
      if (carry || rest >= divisor) {
        rest -= divisor;
        reciprocal |= 1;
      }
    }
    power *= 5;
  }
  return table;
}();

// number / 10^k, correctly rounded, for number > 0 and 0 <= k <= 27: the 64-bit quotient and the
// remainder are exact (Moeller, Granlund 2011, algorithm 4), so one rounding is left to do.
inline double divide_by_ten_to(u64 number, int k) {
  const auto& [divisor, reciprocal, shift] = kPowersOfFive[static_cast<std::size_t>(k)];
  const int zeros = std::countl_zero(number);
  const u64 high = (number << zeros) >> 1, low = (number << zeros) << 63;
  auto [quotient, fraction] = multiply(reciprocal, high);
  fraction += low;
  quotient += high + (fraction < low) + 1;
  u64 rest = low - quotient * divisor;
  const u64 one_less = u64{0} - u64{rest > fraction};  // half of the time: no branch could guess it
  quotient += one_less;
  rest += one_less & divisor;
  if (rest >= divisor) {
    ++quotient;
    rest -= divisor;
  }
  // quotient has 63 or 64 bits, a double 53: whatever is lost counts only as "not zero" (sticky).
  const u64 sticky = (quotient >> 1) | (quotient & 1) | (rest != 0);
  const int exponent = shift - k - 62 - zeros;
  return static_cast<double>(static_cast<std::int64_t>(sticky)) *
         std::bit_cast<double>(static_cast<u64>(1023 + exponent) << 52);
}

#if defined(WIDEMARGIN_FLOAT_BY_C_LOCALE)
inline locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}
#endif

// Any number of well-formed text, by the standard library.
inline double parse_exactly(const char* begin, const char* end) {
#if defined(WIDEMARGIN_FLOAT_BY_C_LOCALE)
  return strtod_l(std::string(begin, end).c_str(), nullptr, c_locale());
#else
  const bool negative = *begin == '-';
  begin += negative || *begin == '+';
  double value = 0;
  if (std::from_chars(begin, end, value).ec == std::errc::result_out_of_range) {
    // Too large or too small? Not from_chars says it, but the place of the first digit that counts.
    const char* const e = std::find_if(begin, end, [](char c) { return (c | 0x20) == 'e'; });
    const char* const point = std::find(begin, e, '.');
    const char* const first = std::find_if(begin, e, [](char c) { return c > '0'; });
    std::int64_t exponent = 0;
    const bool below = e != end && e[1] == '-';
    for (const char* p = e + (e != end); p != end; ++p) {
      if (is_digit(*p))
        exponent = std::min<std::int64_t>(exponent * 10 + (*p - '0'), INT64_MAX / 20);
    }
    const std::int64_t place = (point - first) + (below ? -exponent : exponent);
    value = place > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  }
  return negative ? -value : value;
#endif
}

constexpr double kSignedTens[2][8] = {{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7},
                                      {-1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7}};

// Reads [e [+-] digits] at p into `exponent`; leaves p where the digits are missing.
inline const char* read_exponent(const char* p, const char* end, std::int64_t& exponent) {
  if (p == end || (*p | 0x20) != 'e') return p;
  const char* q = p + 1;
  const bool negative = q != end && *q == '-';
  if (q != end && (*q == '-' || *q == '+')) ++q;
  if (q == end || !is_digit(*q)) return p;
  std::int64_t value = 0;
  for (; q != end && is_digit(*q); ++q)
    value = std::min<std::int64_t>(value * 10 + (*q - '0'), 99999);
  exponent += negative ? -value : value;
  return q;
}

struct Number {
  const char* end;  // the byte after the number; nullptr if there is none
  double value;
};

// The number whose digits are read: `number` holds them (modulo 2^64), p is the byte after them,
// `significant` how many count and `exponent` the power of ten, but for what follows at p.
inline Number finish_number(const char* begin, const char* p, const char* end, u64 number,
                            std::int64_t significant, std::int64_t exponent) {
  p = read_exponent(p, end, exponent);
  const bool fits = significant <= 19;  // no digit was lost
  if (!fits || number == 0 || exponent > 0 || exponent < -kMaxPowerOfFive) {
    return {p, parse_exactly(begin, p)};
  }
  return {p, divide_by_ten_to(number, static_cast<int>(-exponent)) * kSignedTens[*begin == '-'][0]};
}

// A number with no or more than 7 digits before the point, if it is one.
inline Number read_long_number(const char* begin, const char* end) {
  const char* p = begin;
  p += p != end && (*p == '-' || *p == '+');
  const char* const whole = p;
  u64 number = 0;
  p = read_digits(p, end, number);
  std::int64_t digits = p - whole, exponent = 0;
  if (p != end && *p == '.') {
    const char* const fraction = ++p;
    p = read_digits(p, end, number);
    exponent = fraction - p;
    digits -= exponent;
  }
  if (digits == 0) return {nullptr, 0.0};
  return finish_number(begin, p, end, number, digits, exponent);
}

// The correctly rounded double of `[+-] digits [. digits] [e [+-] digits]` at `begin`, infinite if
// out of range.
inline Number read_number(const char* begin, const char* end) {
  // One digit alone is what files of 0 and 1 hold: a branch is guessed, a load must be waited for.
  if (end - begin >= 2 && static_cast<unsigned char>(begin[1]) <= ' ' && is_digit(*begin)) {
    return {begin + 1, static_cast<double>(*begin - '0')};
  }
  // Up to 7 digits before the point and 7 behind it need no loop, and no branch on what data makes
  // random: the sign and the number of digits. One digit before the point is common again.
  if (FLT_EVAL_METHOD != 0) return read_long_number(begin, end);
  const char* p = begin;
  const char sign = p == end ? '\n' : *p;
  p += (sign == '-') | (sign == '+');
  int n = 1;
  u64 number = 0;
  if (end - p >= 2 && p[1] == '.' && is_digit(*p)) {
    number = static_cast<u64>(*p - '0');
  } else {
    const u64 whole = load8(p, end) ^ kZeros;
    n = leading_digits(whole);
    if (n == 0 || n == 8) return read_long_number(begin, end);
    number = eight_digits(whole << (64 - 8 * n));
  }
  const int significant = n - (number == 0);
  int places = 0;
  p += n;
  if (p != end && *p == '.') {
    const u64 fraction = load8(++p, end) ^ kZeros;
    places = leading_digits(fraction);
    number = append_digits(number, fraction, places);
    p += places;
    if (places == 8) {
      const char* const rest = p;
      p = read_digits(p, end, number);
      const std::int64_t all_places = 8 + (p - rest);
      return finish_number(begin, p, end, number, significant + all_places, -all_places);
    }
  }
  if (p != end && (*p | 0x20) == 'e') {
    return finish_number(begin, p, end, number, n + places, -places);
  }
  // Both are exact doubles, so the division rounds once (Clinger 1990).
  return {p, static_cast<double>(static_cast<std::int64_t>(number)) /
                 kSignedTens[sign == '-'][static_cast<std::size_t>(places)]};
}

// The shortest text that reads back as `value`. At least 32 bytes must be free at p.
template <class Real>
char* write_shortest(char* p, char* end, Real value) {
#if defined(WIDEMARGIN_FLOAT_BY_C_LOCALE)
  const locale_t before = uselocale(c_locale());
  char* last = p;
  for (int digits = 1; last == p || static_cast<Real>(read_number(p, last).value) != value;) {
    last = p + std::snprintf(p, static_cast<std::size_t>(end - p), "%.*g", digits++,
                             static_cast<double>(value));
  }
  uselocale(before);
  return last;
#else
  return std::to_chars(p, end, value).ptr;
#endif
}

// The shortest text that reads back as the same value, if it is read as a double and then rounded.
template <class Real>
char* write_number(char* p, char* end, Real value) {
  const auto whole = static_cast<std::int32_t>(std::abs(value) < Real{10000} ? value : Real{0});
  if (static_cast<Real>(whole) == value && (whole != 0 || !std::signbit(value))) {
    return std::to_chars(p, end, whole).ptr;  // five times as fast
  }
  char* const last = write_shortest(p, end, value);
  if constexpr (sizeof(Real) < sizeof(double)) {
    // Rounding twice misses 7.038531e-26f, and of all floats only that: it needs more digits.
    if (static_cast<Real>(read_number(p, last).value) != value) {
      return write_shortest(p, end, static_cast<double>(value));
    }
  }
  return last;
}

}  // namespace decimal
}  // namespace widemargin
