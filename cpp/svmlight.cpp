#include "svmlight.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "decimal.hpp"

namespace widemargin::svmlight {
namespace {

using decimal::is_digit;
using decimal::read_digits;
using decimal::read_number;
using decimal::write_number;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool ends_token(const char* p, const char* end) {
  return p == end || is_blank(*p) || *p == '\n' || *p == '\r' || *p == '#';
}

const char* skip_blanks(const char* p, const char* end) {
  while (p != end && is_blank(*p)) ++p;
  return p;
}

const char* find(char c, const char* p, const char* end) {
  const void* hit = p == end ? nullptr : std::memchr(p, c, static_cast<std::size_t>(end - p));
  return hit ? static_cast<const char*>(hit) : end;
}

// -------------------------------------------------------------------------------------- counts

bool starts_row(const char* line, const char* end) {
  const char* const p = skip_blanks(line, end);
  return p != end && *p != '\n' && *p != '\r' && *p != '#';
}

// A colon ends an index unless it ends "qid".
bool ends_index(const char* lines, const char* colon) { return colon == lines || colon[-1] != 'd'; }

Counts count_line_by_line(std::string_view lines) {
  Counts counts;
  const char* const end = lines.data() + lines.size();
  for (const char* line = lines.data(); line != end;) {
    const char* const next = find('\n', line, end);
    const char* const comment = find('#', line, next);
    counts.rows += starts_row(line, next);
    for (const char* p = find(':', line, comment); p != comment; p = find(':', p + 1, comment)) {
      counts.entries += ends_index(lines.data(), p);
    }
    counts.lines += next != end;
    line = next + (next != end);
  }
  return counts;
}

constexpr std::int64_t kLongestPiece = 128;  // more than a target and a qid, or an entry

// ---------------------------------------------------------------------------------------- rows

// Reads the rows of one call. Each step returns the name of a fault, or nullptr if all is well.
template <class Real, class Index>
class Reader {
 public:
  Reader(std::string_view text, const Rules& rules, const RowsOut<Real, Index>& out,
         ReadCursor& cursor)
      : begin_(text.data()),
        end_(begin_ + text.size()),
        p_(begin_ + cursor.position),
        token_(p_),
        rules_(rules),
        out_(out),
        cursor_(cursor),
        last_(std::min(rules.last, kLastIndex + rules.base)) {}

  std::string_view run(std::int64_t budget) {
    const char* const stop = p_ + std::min<std::int64_t>(budget, end_ - p_);
    const char* fault = nullptr;
    while (p_ < stop && !fault) {
      fault = in_row() ? read_entries(stop) : begin_line();
    }
    if (!fault && p_ == end_ && in_row()) fault = end_line();  // no line feed after the last row
    cursor_.position = p_ - begin_;
    if (fault) cursor_.token = token_ - begin_;
    return fault ? fault : "";
  }

 private:
  // One less than the largest Index: the number of columns must fit it too.
  static constexpr std::int64_t kLastIndex = std::numeric_limits<Index>::max() - 1;

  bool in_row() const { return cursor_.previous != ReadCursor::kAtLineStart; }

  const char* begin_line() {
    p_ = skip_blanks(p_, end_);
    if (at_line_end()) return end_line();
    token_ = p_;
    if (cursor_.row == std::ssize(out_.targets)) return "changed";
    if (const char* fault = read_target()) return fault;
    ++cursor_.row;
    cursor_.previous = ReadCursor::kNoIndexYet;
    p_ = skip_blanks(p_, end_);
    return read_qid();
  }

  const char* read_target() {
    const auto [after, target] = read_number(p_, end_);
    if (!after) return "target";
    if (after != end_ && *after == ',') return "labels";
    if (after != end_ && *after == ':') return "no target";
    if (!ends_token(after, end_)) return "target";
    if (!std::isfinite(target)) return "target range";
    out_.targets[static_cast<std::size_t>(cursor_.row)] = target;
    p_ = after;
    return nullptr;
  }

  const char* read_qid() {
    if (end_ - p_ < 4 || std::memcmp(p_, "qid:", 4) != 0) {
      return rules_.need_qid ? "no qid" : nullptr;
    }
    token_ = p_;
    p_ += 4;
    std::int64_t qid = 0;
    const auto [after, error] = std::from_chars(p_, end_, qid);
    if (error != std::errc() || !ends_token(after, end_)) return "qid";
    p_ = after;
    if (!out_.qid.empty()) out_.qid[static_cast<std::size_t>(cursor_.row - 1)] = qid;
    return nullptr;
  }

  const char* read_entries(const char* stop) {
    do {
      p_ = skip_blanks(p_, end_);
      if (at_line_end()) return end_line();
      if (const char* fault = read_entry()) return fault;
    } while (p_ < stop);
    return nullptr;
  }

  const char* read_entry() {
    token_ = p_;
    std::uint64_t index = 0;
    const char* const colon = read_digits(p_, end_, index);
    if (colon == p_ || colon == end_ || *colon != ':' || colon - p_ > 18 ||
        static_cast<std::int64_t>(index) <= cursor_.previous ||
        static_cast<std::int64_t>(index) > last_ || static_cast<std::int64_t>(index) < rules_.first)
        [[unlikely]] {
      if (const char* fault = check_index(colon, index)) return fault;
    }
    p_ = colon + 1;
    const auto [after, value] = read_number(p_, end_);
    if (!after || !ends_token(after, end_)) return "value";
    const auto real = static_cast<Real>(value);
    if (!std::isfinite(real)) return "value range";
    if (cursor_.entry == std::ssize(out_.data)) return "changed";
    if (cursor_.previous < 0) {
      cursor_.lowest = std::min(cursor_.lowest, static_cast<std::int64_t>(index));
    }
    cursor_.previous = static_cast<std::int64_t>(index);
    out_.data[static_cast<std::size_t>(cursor_.entry)] = real;
    out_.indices[static_cast<std::size_t>(cursor_.entry)] =
        static_cast<Index>(cursor_.previous - rules_.base);
    ++cursor_.entry;
    p_ = after;
    return nullptr;
  }

  // Names what is wrong with the index that stands before `colon`; none if it only has many zeros.
  const char* check_index(const char* colon, std::uint64_t& index) {
    if (colon == p_) return name_token();
    std::int64_t exact = 0;
    const bool fits = std::from_chars(p_, colon, exact).ec == std::errc();
    index = static_cast<std::uint64_t>(exact);
    if (colon == end_ || *colon != ':') {
      p_ = colon;
      return "colon";
    }
    if (!fits || exact > rules_.last) return "index limit";
    if (exact < rules_.first) return "index zero";
    if (exact <= cursor_.previous) return "index order";
    return exact > last_ ? "wide index" : nullptr;
  }

  // What stands where an index should.
  const char* name_token() const {
    if (*p_ == '-' && end_ - p_ > 1 && is_digit(p_[1])) return "index negative";
    return end_ - p_ >= 4 && std::memcmp(p_, "qid:", 4) == 0 ? "qid place" : "index";
  }

  bool at_line_end() const { return p_ == end_ || *p_ == '\n' || *p_ == '\r' || *p_ == '#'; }

  const char* end_line() {
    if (p_ != end_ && *p_ == '#') p_ = find('\n', p_, end_);
    if (p_ != end_ && *p_ == '\r') {
      token_ = p_;
      if (end_ - p_ > 1 && p_[1] != '\n') return "return";
      ++p_;
    }
    if (p_ != end_) ++p_;
    if (in_row()) {
      out_.indptr[static_cast<std::size_t>(cursor_.row)] =
          static_cast<Index>(out_.first_entry + cursor_.entry);
      cursor_.highest = std::max(cursor_.highest, cursor_.previous);
      cursor_.previous = ReadCursor::kAtLineStart;
    }
    return nullptr;
  }

  const char* begin_;
  const char* end_;
  const char* p_;
  const char* token_;
  const Rules& rules_;
  const RowsOut<Real, Index>& out_;
  ReadCursor& cursor_;
  std::int64_t last_;
};

}  // namespace

std::size_t line_start(std::string_view text, std::size_t position) {
  if (position == 0) return 0;
  const std::size_t feed = text.find('\n', position - 1);
  return feed == std::string_view::npos ? text.size() : feed + 1;
}

Counts count(std::string_view lines) {
  Counts counts;
  const char* const text = lines.data();
  const std::size_t size = lines.size();
  if (size == 0) return counts;
  counts.rows = starts_row(text, text + size);
  counts.entries = text[0] == ':';
  counts.lines = text[0] == '\n';
  for (std::size_t begin = 1; begin < size;) {
    // At most 255 steps fit the byte-wide sums, which the compiler turns into vector instructions.
    const std::size_t stop = std::min(size, begin + 240);
    std::uint8_t entries = 0, feeds = 0, starts = 0, rows = 0, comments = 0;
    for (std::size_t i = begin; i < stop; ++i) {
      const auto before = static_cast<unsigned char>(text[i - 1]);
      const auto here = static_cast<unsigned char>(text[i]);
      entries += (here == ':') & (before != 'd');
      feeds += here == '\n';
      starts += before == '\n';
      rows += (before == '\n') & (here > ' ');
      comments += here == '#';
    }
    if (comments || (begin == 1 && text[0] == '#')) return count_line_by_line(lines);
    counts.entries += entries;
    counts.lines += feeds;
    counts.rows += rows;
    for (std::size_t i = begin; rows != starts && i < stop; ++i) {
      const bool unclear = text[i - 1] == '\n' && static_cast<unsigned char>(text[i]) <= ' ';
      counts.rows += unclear && starts_row(text + i, text + size);
    }
    begin = stop;
  }
  return counts;
}

template <class Real, class Index>
std::string_view read(std::string_view text, std::int64_t budget, const Rules& rules,
                      const RowsOut<Real, Index>& out, ReadCursor& cursor) {
  return Reader<Real, Index>(text, rules, out, cursor).run(budget);
}

template <class Real, class Index>
std::string_view write(const RowsIn<Real, Index>& rows, std::int64_t base, std::span<char> out,
                       WriteCursor& cursor) {
  char* p = out.data();
  char* const end = p + out.size();
  const auto at = [](auto span, std::int64_t i) { return span[static_cast<std::size_t>(i)]; };
  while (cursor.row < std::ssize(rows.targets) && end - p >= kLongestPiece) {
    if (!cursor.in_row) {
      p = write_number(p, end, at(rows.targets, cursor.row));
      if (!rows.qid.empty()) {
        p = std::copy_n(" qid:", 5, p);
        p = std::to_chars(p, end, at(rows.qid, cursor.row)).ptr;
      }
      cursor.in_row = 1;
    }
    const std::int64_t row_end = std::min<std::int64_t>(
        at(rows.indptr, cursor.row + 1) - at(rows.indptr, 0), std::ssize(rows.data));
    for (; cursor.entry < row_end && end - p >= kLongestPiece; ++cursor.entry) {
      const Real value = at(rows.data, cursor.entry);
      if (!std::isfinite(value)) return "finite";
      *p++ = ' ';
      p = std::to_chars(p, end, at(rows.indices, cursor.entry) + base).ptr;
      *p++ = ':';
      p = write_number(p, end, value);
    }
    if (cursor.entry < row_end || end - p < kLongestPiece) break;
    *p++ = '\n';
    cursor.in_row = 0;
    ++cursor.row;
  }
  cursor.bytes = p - out.data();
  return "";
}

#define WIDEMARGIN_INSTANTIATE(Real, Index)                                                  \
  template std::string_view read(std::string_view, std::int64_t, const Rules&,               \
                                 const RowsOut<Real, Index>&, ReadCursor&);                  \
  template std::string_view write(const RowsIn<Real, Index>&, std::int64_t, std::span<char>, \
                                  WriteCursor&);
WIDEMARGIN_INSTANTIATE(double, std::int32_t)
WIDEMARGIN_INSTANTIATE(double, std::int64_t)
WIDEMARGIN_INSTANTIATE(float, std::int32_t)
WIDEMARGIN_INSTANTIATE(float, std::int64_t)
#undef WIDEMARGIN_INSTANTIATE

}  // namespace widemargin::svmlight
