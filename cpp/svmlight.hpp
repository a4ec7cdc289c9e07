// svmlight/LIBSVM text: free functions that count, read and write rows. The caller owns every
// array, and a Cursor that it hands back carries a call on where the last one stopped, so that each
// call can be short.
//
// A row is `target [qid:N] index:value index:value ... [# comment]`; spaces and tabs separate; a
// row ends at a line feed (a carriage return may stand before it) or at the end of the text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace widemargin::svmlight {

struct Counts {
  std::int64_t rows = 0;
  std::int64_t entries = 0;
  std::int64_t lines = 0;  // line feeds
};

// What a reader accepts, in indices as they stand in the text.
struct Rules {
  std::int64_t base = 1;   // the index of column 0
  std::int64_t first = 0;  // the smallest index allowed
  std::int64_t last = INT64_MAX;
  bool need_qid = false;
};

template <class Real, class Index>
struct RowsOut {
  std::span<Real> data;
  std::span<Index> indices;
  std::span<Index> indptr;  // its first element is left as it is
  std::span<double> targets;
  std::span<std::int64_t> qid;   // empty: qid tokens are read and dropped
  std::int64_t first_entry = 0;  // added to indptr: entries of earlier slices
};

struct ReadCursor {
  static constexpr std::int64_t kAtLineStart = -2;
  static constexpr std::int64_t kNoIndexYet = -1;

  std::int64_t position = 0;             // the next byte to read; at a fault the byte at fault
  std::int64_t token = 0;                // at a fault where its token starts
  std::int64_t previous = kAtLineStart;  // inside a row its last index, or kNoIndexYet
  std::int64_t row = 0;                  // rows finished or begun
  std::int64_t entry = 0;                // entries stored
  std::int64_t lowest = INT64_MAX;       // smallest and largest index met
  std::int64_t highest = -1;
};

template <class Real, class Index>
struct RowsIn {
  std::span<const Real> data;
  std::span<const Index> indices;
  std::span<const Index> indptr;  // of these rows; may start above 0
  std::span<const double> targets;
  std::span<const std::int64_t> qid;  // empty: none written
};

struct WriteCursor {
  std::int64_t row = 0;
  std::int64_t entry = 0;   // the next entry, counted from indptr[0]
  std::int64_t in_row = 0;  // 1 once the row's target is written
  std::int64_t bytes = 0;   // written by the last call
};

// The first line start at or after `position`, or the end of the text.
std::size_t line_start(std::string_view text, std::size_t position);

// Rows, entries and line feeds of whole lines. Exact where the lines are well formed; never less
// than what `read` stores before it meets a fault.
Counts count(std::string_view lines);

// Reads rows of `text` from cursor.position until the end of the text, or until at least `budget`
// bytes are read. Returns the name of the fault that stopped it, empty if none.
template <class Real, class Index>
std::string_view read(std::string_view text, std::int64_t budget, const Rules& rules,
                      const RowsOut<Real, Index>& out, ReadCursor& cursor);

// Writes rows from the cursor on until all are written or `out` is nearly full (at least 128
// bytes). Returns "finite" at a value that is not finite (cursor.row, cursor.entry), else empty.
template <class Real, class Index>
std::string_view write(const RowsIn<Real, Index>& rows, std::int64_t base, std::span<char> out,
                       WriteCursor& cursor);

}  // namespace widemargin::svmlight
