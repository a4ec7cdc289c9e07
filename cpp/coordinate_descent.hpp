// Dual coordinate descent over rows in random order, with shrinking.
// Formulas and their source: src/widemargin/solvers/linear/coordinate_descent.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace widemargin {

// Rows of a dense matrix, one after the other.
template <typename Real>
struct DenseRows {
  const Real* data;
  std::size_t n;
};

// Rows of a sparse matrix: see CsrView. No column repeats in a row.
template <typename Real, typename Index>
struct CsrRows {
  const Index* indptr;
  const Index* indices;
  const Real* data;
  std::size_t n;
};

// All that belongs to one dual variable, in half a cache line.
struct Coordinate {
  double alpha;
  double upper;     // U_i
  double diagonal;  // D_i
  double step;      // y_i / q_i: infinite for a row of zeros, but has a sign; y_i at first
};

// The same of a sample that has two rows, of which one at most has a loss: in regression, where
// errors up to `kink` cost nothing. One variable, which may be negative, stands for both.
struct TubeCoordinate {
  double alpha;
  double upper;  // of |alpha|
  double diagonal;
  double step;    // 1 / q_i; 1 at first
  double target;  // of the prediction
  double kink;
};

template <typename Row>
struct Variables {
  Row* rows;
  std::int64_t* order;  // a permutation: the rows that are visited, then those left out
  std::int64_t m;
  double* v;  // with the intercept behind the n columns, where there is one
  bool intercept;
};

// Where the descent is. Python keeps it between calls, field by field.
struct DescentState {
  std::int64_t position;     // in `order`: rows before it have been visited in this epoch,
  std::int64_t kept;         // and the first of them stay for the next
  std::int64_t size;         // rows of this epoch
  std::int64_t shuffled;     // rows whose turn is settled
  std::int64_t active;       // rows that the last epoch has kept
  std::int64_t visits;       // rows visited since the start
  std::int64_t epoch;        // epochs ended since the start
  std::int64_t measured;     // so many visits at first, of different rows, find their q_i
  std::uint64_t random;      // state of the generator
  double upper, lower;       // rows at a bound whose gradient is beyond them are left out
  double largest, smallest;  // projected gradients of this epoch
  double gap, sum;           // P - D by the gradients of the last epoch, of this one so far
  double fall;               // what the last epoch has left of the gap of the one before: <= 1
  double first;              // gap of the first epoch of this round; infinite: it is to end
  double goal;               // a certificate is due where gap times fall is at most this
  double weight;             // a step t of y_i alpha_i moves the intercept by weight t
};

// Visits rows until an epoch ends at which a certificate is due (true: `mark` visits are passed or
// the gap, as the next epoch is to find it, is at its goal), or `budget` rows have been visited
// (false).
template <typename Rows, typename Row>
using Descend = bool (*)(const Rows& rows, const Variables<Row>& variables, DescentState& state,
                         std::int64_t budget, std::int64_t mark, bool shrinking);

namespace baseline {
template <typename Rows, typename Row>
bool descend(const Rows&, const Variables<Row>&, DescentState&, std::int64_t, std::int64_t, bool);
}
namespace avx2 {
template <typename Rows, typename Row>
bool descend(const Rows&, const Variables<Row>&, DescentState&, std::int64_t, std::int64_t, bool);
}
namespace avx512 {
template <typename Rows, typename Row>
bool descend(const Rows&, const Variables<Row>&, DescentState&, std::int64_t, std::int64_t, bool);
}

}  // namespace widemargin
