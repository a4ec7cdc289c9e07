// libFuzzer target for the svmlight reader and writer: see README.md beside this file.
//
// Byte 0 of the input chooses the rules, byte 1 where the text is cut; the rest is the text. No
// input may crash, and what is read must not depend on cuts, agree with strtod, and survive
// writing.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decimal.hpp"
#include "svmlight.hpp"

namespace {

using namespace widemargin::svmlight;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b, std::int64_t n) {
  return n == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(n) * sizeof(T)) == 0;
}

template <class Real, class Index>
struct Table {
  std::vector<Real> data;
  std::vector<Index> indices;
  std::vector<Index> indptr;
  std::vector<double> targets;
  std::vector<std::int64_t> qid;
  std::string fault;
  ReadCursor cursor;

  explicit Table(const Counts& counts)
      : data(static_cast<std::size_t>(counts.entries)),
        indices(data.size()),
        indptr(static_cast<std::size_t>(counts.rows) + 1),
        targets(static_cast<std::size_t>(counts.rows)),
        qid(targets.size()) {}

  void read(std::string_view text, std::int64_t budget, const Rules& rules) {
    const RowsOut<Real, Index> out{data, indices, indptr, targets, qid, 0};
    do {
      const std::int64_t before = cursor.position;
      fault = widemargin::svmlight::read(text, budget, rules, out, cursor);
      check(!fault.empty() || cursor.position > before || text.empty(), "a call gets on");
    } while (fault.empty() && cursor.position < std::ssize(text));
    check(fault != "changed", "count allows for every entry and row");
    if (fault.empty()) {
      check(cursor.row == std::ssize(targets), "count finds the rows of good text");
      check(cursor.entry == std::ssize(data), "count finds the entries of good text");
    }
  }

  // Rows before the fault; entries of the row at fault count too.
  void check_same(const Table& other, std::int64_t rows, std::int64_t entries) const {
    check(same_bits(data, other.data, entries), "data");
    check(same_bits(indices, other.indices, entries), "indices");
    check(same_bits(indptr, other.indptr, rows + 1), "indptr");
    check(same_bits(targets, other.targets, rows), "targets");
    check(same_bits(qid, other.qid, rows), "qid");
  }

  void append(const Table& other) {
    const auto rows = static_cast<std::size_t>(other.cursor.row);
    const auto entries = static_cast<std::size_t>(other.cursor.entry);
    const auto first = static_cast<Index>(data.size());
    for (std::size_t i = 1; i <= rows; ++i) indptr.push_back(first + other.indptr[i]);
    data.insert(data.end(), other.data.begin(), other.data.begin() + entries);
    indices.insert(indices.end(), other.indices.begin(), other.indices.begin() + entries);
    targets.insert(targets.end(), other.targets.begin(), other.targets.begin() + rows);
    qid.insert(qid.end(), other.qid.begin(), other.qid.begin() + rows);
  }
};

// The text alone in its memory, so that a read beyond its end is found.
std::unique_ptr<char[]> alone(std::string_view text) {
  auto copy = std::make_unique<char[]>(text.size());
  std::copy(text.begin(), text.end(), copy.get());
  return copy;
}

// Slices read one by one give the rows, the fault and its place that one read gives.
template <class Real, class Index>
void check_slices(std::string_view text, std::size_t size, const Rules& rules,
                  const Table<Real, Index>& whole) {
  Table<Real, Index> joined{Counts{}};
  std::string fault;
  std::int64_t lines = 0;
  for (std::size_t begin = 0; begin < text.size() && fault.empty();) {
    const std::size_t end = line_start(text, std::min(begin + size, text.size()));
    check(end > begin, "a slice is not empty");
    const auto copy = alone(text.substr(begin, end - begin));
    const std::string_view slice(copy.get(), end - begin);
    const Counts counts = count(slice);
    Table<Real, Index> part(counts);
    part.read(slice, INT64_MAX, rules);
    joined.append(part);
    fault = part.fault;
    lines += counts.lines;
    if (!fault.empty()) {
      check(part.cursor.position + std::ssize(text.substr(0, begin)) == whole.cursor.position,
            "position of the fault");
    }
    begin = end;
  }
  check(fault == whole.fault, "fault of the slices");
  check(!fault.empty() || lines == count(text).lines, "lines of the slices");
  const bool in_row = whole.cursor.previous != ReadCursor::kAtLineStart;
  const std::int64_t rows = whole.cursor.row - in_row;
  joined.check_same(whole, rows, whole.cursor.entry);
}

template <class Real, class Index>
void check_round_trip(const Table<Real, Index>& table, std::int64_t base, std::size_t room) {
  const RowsIn<Real, Index> rows{table.data, table.indices, table.indptr, table.targets, table.qid};
  std::string text;
  std::vector<char> buffer(room);
  WriteCursor cursor;
  while (cursor.row < std::ssize(table.targets)) {
    check(write(rows, base, std::span<char>(buffer), cursor).empty(), "what was read is finite");
    check(cursor.bytes > 0, "a call writes");
    text.append(buffer.data(), static_cast<std::size_t>(cursor.bytes));
  }
  Table<Real, Index> again(count(text));
  again.read(text, INT64_MAX, {base, base, INT64_MAX - 1 + base, false});
  check(again.fault.empty(), "what was written is read");
  again.check_same(table, table.cursor.row, table.cursor.entry);
}

// Every token that may be a number is the number that strtod reads, and only then one.
void check_numbers(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.find_first_of(" \t\r\n:#"), text.size());
    const std::string token(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (token.find_first_not_of("+-.0123456789eE") != token.npos) continue;
    const auto copy = alone(token);
    const auto [end, value] = widemargin::decimal::read_number(copy.get(), copy.get() + size);
    char* after = nullptr;
    const double expected = std::strtod(token.c_str(), &after);
    const bool is_number = after != token.c_str();
    check((end != nullptr) == is_number, "is it a number?");
    if (!is_number) continue;
    check(end - copy.get() == after - token.c_str(), "length of the number");
    check(std::memcmp(&value, &expected, sizeof value) == 0, "value of the number");
  }
}

template <class Real, class Index>
void check_text(std::string_view text, std::uint8_t options, std::uint8_t cut) {
  const std::int64_t base = options & 1 ? 0 : 1;
  const bool automatic = !(options & 1) && (options & 2);
  const std::int64_t columns = options & 8 ? 100 : INT64_MAX;
  const Rules rules{base, automatic ? 0 : base, columns - 1 + base, (options & 4) != 0};
  const Counts counts = count(text);
  Table<Real, Index> whole(counts);
  whole.read(text, INT64_MAX, rules);
  Table<Real, Index> in_steps(counts);
  in_steps.read(text, 1 + cut % 8, rules);
  check(in_steps.fault == whole.fault, "fault in steps");
  check(std::memcmp(&in_steps.cursor, &whole.cursor, sizeof whole.cursor) == 0, "cursor in steps");
  in_steps.check_same(whole, whole.cursor.row - (whole.cursor.previous >= -1), whole.cursor.entry);
  check_slices(text, 1 + cut, rules, whole);
  if (whole.fault.empty() && !automatic) check_round_trip(whole, base, 128u + cut);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view all(reinterpret_cast<const char*>(bytes), size);
  const auto copy = alone(all.substr(2));
  const std::string_view text(copy.get(), size - 2);
  check_numbers(text);
  switch (bytes[0] >> 6) {
    case 0:
      check_text<double, std::int32_t>(text, bytes[0], bytes[1]);
      break;
    case 1:
      check_text<double, std::int64_t>(text, bytes[0], bytes[1]);
      break;
    case 2:
      check_text<float, std::int32_t>(text, bytes[0], bytes[1]);
      break;
    default:
      check_text<float, std::int64_t>(text, bytes[0], bytes[1]);
  }
  return 0;
}
