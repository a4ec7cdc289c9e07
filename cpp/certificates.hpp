// Bounds of the optima of many problems with a kernel, from scores in float64 and bounds of their
// errors: what `ManyProblems` of problems/many.py says about answers. No solver has a part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

namespace widemargin {

// The problems, one after the other: problem t has the places from end[t - 1] on.
struct CertifiedProblems {
  std::span<const std::int64_t> end;
  std::span<const double> y, C, q;  // of each place
  std::span<const double> mass;     // of each problem: what sum alpha is; NaN: without rho
  bool squared;                     // the loss
  int intercept;                    // 0: none, 1: free, 2: penalized
};

struct CertifiedAnswers {
  std::span<const double> c, f, errors;    // of each place: y alpha; K c, and how far off that is
  std::span<const std::uint8_t> has_loss;  // whether a place may have one; else f is not looked at
  std::span<const std::int64_t> row;       // of each place
  std::span<const double> length;          // of each row: at least sqrt k(x, x)
  std::span<const double> b, rho;          // of each problem
  // |w|^2 of the weights whose scores f are, and how far off it may be; and the same of the weights
  // that c makes, four numbers a problem. None: both are c'f.
  std::span<const double> squares;
};

// An upper and a lower bound, and what each allows for rounding; the lower one also for what it
// costs to make sum alpha the mass.
struct ProvenBounds {
  double primal, dual, over, under;
};

void certify_many(const CertifiedProblems& problems, const CertifiedAnswers& answers,
                  std::span<ProvenBounds> out);

// What is known of kernel values: see `ValueBounds` of numerics/rounding.py.
struct KnownValues {
  double eps;
  std::span<const double> h, s;  // of each row

  std::size_t place_of(std::int64_t row) const {
    if (static_cast<std::size_t>(row) < s.size()) return static_cast<std::size_t>(row);
    throw std::invalid_argument("a place has no row");
  }
};

// Of a sum of k terms that are not zero: base + gamma(each k + more), as a share of the sum of the
// absolute values; and what each weight, value and product may lose that is too small for its
// format.
struct SumError {
  double base, each, more, lost;
};

// Errors of sum_j c_j k_ij over the places j of a part, for the places i of this part: parts end at
// `end`.
void errors_by_part(const KnownValues& values, const SumError& sum,
                    std::span<const std::int64_t> end, std::span<const std::int64_t> row,
                    std::span<const double> c, std::span<double> out);

// Scores K c of the places of the problems by kernel values of which this is known, from an answer.
struct KnownScores {
  KnownValues values;
  SumError sum;
  std::span<const std::int64_t> end, row;
  std::span<const double> y, c, f;  // of each place
  std::span<const double> b;        // of each problem
};

// An array without numbers in it, for threads to write.
template <class T>
class Room {
 public:
  Room() = default;
  explicit Room(std::size_t size) : data_(std::make_unique_for_overwrite<T[]>(size)), size_(size) {}
  T& operator[](std::size_t i) const { return data_[i]; }
  operator std::span<const T>() const { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<T[]> data_;
  std::size_t size_ = 0;
};

// Places that have to have exact scores, and what these are sums by. They rise; ends are those of
// the problems.
struct FoundPlaces {
  Room<std::int64_t> end, at, row;
  Room<double> y, C, q, c, errors;  // of exact scores
  Room<std::int64_t> support_end, support;
  Room<double> weight;

  // When the ends are still the numbers of each problem.
  void make_room();
};

// What exact scores are sums by, of each place, and what is known of them.
struct ExactSums {
  KnownValues values;
  SumError error;
  std::span<const double> c;
};

// The places that have alpha > 0, or a weight and perhaps a loss by their scores, which is not
// asked where all are wanted that have a weight. Of a problem without rho whose relative gap is
// `enough` at most by these scores and the bounds of their errors there are none: `known` has its
// bounds, and of others infinite ones. What comes out does not depend on the threads.
FoundPlaces find_places(const CertifiedProblems& problems, const KnownScores& scores,
                        std::span<const double> rho, const ExactSums& sums, bool are_all_wanted,
                        double enough, std::span<ProvenBounds> known, std::size_t threads);

// Bounds of the problems of which `out` has none yet, by scores in float64 of the places that were
// found for them. What it costs to make sums exact that are given may be at other places too: these
// have the scores that are known.
void prove_places(const CertifiedProblems& problems, const KnownScores& scores,
                  std::span<const double> rho, const ExactSums& sums, const FoundPlaces& places,
                  std::span<const double> exact, std::span<ProvenBounds> out);

// Answers of folds: of each binary problem there is one for each fold, and for each of these one
// for each C, over the same places.
struct FoldAnswers {
  std::size_t folds, Cs;
  KnownValues values;  // which the scores are sums of
  SumError error;
  std::span<const std::int64_t> end, row;  // of binary problems, and of their places
  std::span<const double> y;               // of these
  std::span<const double> c, f, b;         // of all problems
  std::span<const double> weights;         // of each fold and row: 0 where it holds the row out
};

// What these are added to: c of each place to a sum of its row; and of rows that are held out, how
// many problems are sure to say that a row has its label, whatever errors the scores have, and how
// many that it has the other one.
struct FoldSums {
  std::size_t sums;                      // of each row
  std::span<const std::int64_t> sum;     // of each binary problem: that for c > 0, and for c < 0
  std::span<double> coefficients;        // of each fold, row, sum and C
  std::span<std::int16_t> wins, losses;  // of each fold, row and C; or none
};

// What comes out does not depend on the threads.
void keep_answers(const FoldAnswers& answers, std::size_t threads, const FoldSums& out);

}  // namespace widemargin
