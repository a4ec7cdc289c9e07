// What the solvers do with a block of rows, each in one pass: see fused.hpp. Formulas and their
// source: src/widemargin/solvers/linear/newton.py, interior_point.py and normal_equations.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "fused.hpp"
#include "lane_sums.hpp"
#include "row_steps.hpp"
#include "simd.hpp"

namespace widemargin {

// The rows A = Y [X 1], or Y X, of a block, and the code of an instruction set.
struct Block {
  std::variant<FusedDense<double>, FusedDense<float>, FusedDense<std::int16_t>,
               FusedDense<std::uint8_t>, FusedCsr<double, std::int32_t>,
               FusedCsr<double, std::int64_t>, FusedCsr<float, std::int32_t>,
               FusedCsr<float, std::int64_t>>
      X;
  Signs y;
  bool intercept;
  RowSteps steps;

  std::size_t rows() const { return y.size(); }
  std::size_t width() const {
    return std::visit([](const auto& rows) { return rows.columns(); }, X) + intercept;
  }

  // fused_sweep of these rows.
  template <std::size_t columns, typename Step>
  void sweep(std::span<const double> v, std::span<double> G, Step step) const {
    std::visit([&](const auto& rows) { fused_sweep<columns>(rows, y, v, G, step); }, X);
  }
};

// Weighted Gram matrix [X 1]' diag(d) [X 1], or X' diag(d) X, of dense rows by chunks, with
// products added up as Sum: see dense.hpp.
template <typename Sum, typename Rows>
class DenseGram {
 public:
  explicit DenseGram(const Rows& X)
      : X_(X),
        width_(padded<Sum>(X.columns())),
        work_(gram_work<Sum>(X.columns()) + kLineBytes / sizeof(Sum)),
        tiles_(width_ * width_),
        border_(width_) {
    const auto offset = reinterpret_cast<std::uintptr_t>(work_.data()) % kLineBytes;
    Sum* aligned = work_.data() + (offset ? (kLineBytes - offset) / sizeof(Sum) : 0);
    parts_ = {aligned, 0, tiles_.data(), border_.data()};
  }

  // Add the rows begin .. end - 1.
  void add(std::size_t begin, std::size_t end, const double* d) {
    X_.products.template gram<Sum>().add(X_.slice(begin, end), d, parts_);
    corner_ += sum_of<4>(end - begin, [&](std::size_t i) { return d[i]; });
  }

  // Write the matrix of order n, or n + 1 with the intercept.
  void write(double* out, std::size_t order) {
    const std::size_t n = X_.columns();
    X_.products.template gram<Sum>().flush(n, parts_);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i; j < n; ++j)
        out[i * order + j] = out[j * order + i] = tiles_[i * width_ + j];
      if (order > n) out[i * order + n] = out[n * order + i] = border_[i];
    }
    if (order > n) out[n * order + n] = corner_;
  }

 private:
  const Rows& X_;
  std::size_t width_;
  std::vector<Sum> work_;
  std::vector<double> tiles_, border_;
  GramParts<Sum> parts_{};
  double corner_ = 0.0;
};

// step(begin, end, z, u, matrix) as in fused_sweep, where `matrix` is called with (begin, end, d)
// and adds A'diag(d)A of these rows to `gram`: of dense rows only.
template <std::size_t columns, typename Sum, typename Step>
void gram_sweep(const Block& A, std::span<const double> v, std::span<double> G, double* gram,
                Step step) {
  std::visit(
      [&]<typename Rows>(const Rows& X) {
        if constexpr (requires { X.products; }) {
          DenseGram<Sum, Rows> matrix(X);
          fused_sweep<columns>(X, A.y, v, G,
                               [&](std::size_t begin, std::size_t end, const double* z, auto& u) {
                                 matrix.add(begin, end, step(begin, end, z, u));
                               });
          matrix.write(gram, A.width());
        } else {
          throw std::invalid_argument("only dense rows have a Gram matrix here");
        }
      },
      A.X);
}

// Where a penalty_sweep writes: scores f, perhaps alpha, and the sums g += A'alpha. With `counted`
// it also finds d, the change of D since these rows were counted, and writes it where `d` is not
// null, and A'diag(d)A to `gram` where that is not null: made in float32 where it may be `rough`.
struct PenaltyOut {
  double* f;
  double* alpha;
  std::span<double> g;
  std::uint8_t* counted;
  double* d;
  double* gram;
  bool rough = false;
};

// Scores f = A v (as they are where v is empty), alpha, and their sums.
inline std::pair<PenaltySums, CountedRows> penalty_sweep(const Block& A, std::span<const double> v,
                                                         const PenaltyRows& all,
                                                         const PenaltyOut& out) {
  PenaltySums total{};
  CountedRows found{};
  double own[kChunkRows];  // d of a chunk
  const auto step = [&](std::size_t begin, std::size_t end, const double* z, auto& u) {
    if (!v.empty()) std::copy_n(z, end - begin, out.f + begin);
    const PenaltyRows rows = all.part(begin, end);
    const PenaltySums sums = A.steps.penalty(rows, u[0]);
    if (out.alpha) std::copy_n(u[0], end - begin, out.alpha + begin);
    total.losses += sums.losses;
    total.linear += sums.linear;
    total.value += sums.value;
    if (!out.counted) return own;
    double* d = out.d ? out.d + begin : own;
    const CountedRows counted = A.steps.count(rows, u[0], out.counted + begin, d);
    found.active += counted.active;
    found.changed += counted.changed;
    return d;
  };
  if (out.gram && out.rough)
    gram_sweep<1, float>(A, v, out.g, out.gram, step);
  else if (out.gram)
    gram_sweep<1, double>(A, v, out.g, out.gram, step);
  else
    A.sweep<1>(v, out.g, step);
  return {total, found};
}

// The sums of rows and of those behind them, which begin at this row.
inline void add(StepSums& total, const StepSums& sums, std::size_t begin) {
  if (sums.ratio > total.ratio) {
    total.ratio = sums.ratio;
    total.row = begin + sums.row;
  }
  total.first += sums.first;
  total.second += sums.second;
}

// Predictor along A dv, and G += E'A with the columns E that RowSteps::predict makes.
inline StepSums predict_sweep(const Block& A, std::span<const double> dv, const RowVectors& all,
                              double clip, std::span<double> G, bool hinge) {
  StepSums total{};
  A.sweep<2>(dv, G, [&](std::size_t begin, std::size_t end, const double* z, auto& u) {
    add(total, A.steps.predict(all.part(begin, end), z, clip, u[0], u[1], hinge), begin);
  });
  return total;
}

// Corrector along A dv.
inline StepSums correct_sweep(const Block& A, std::span<const double> dv, const RowVectors& all,
                              double target, bool hinge) {
  StepSums total{};
  A.sweep<0>(dv, {}, [&](std::size_t begin, std::size_t end, const double* z, auto&) {
    add(total, A.steps.correct(all.part(begin, end), z, target, hinge), begin);
  });
  return total;
}

// G += [alpha, d r, d y]'A, with r = s - xi for the hinge, s for the squared hinge; and A'diag(d)A
// of dense rows where `gram` is not null, in the same pass.
inline void normal_sweep(const Block& A, const RowVectors& all, std::span<double> G, double* gram,
                         bool hinge) {
  const auto step = [&](std::size_t begin, std::size_t end, const double*, auto& u) {
    const RowVectors rows = all.part(begin, end);
    for (std::size_t i = 0; i < rows.k; ++i) {
      u[0][i] = rows.alpha[i];
      u[1][i] = rows.d[i] * (hinge ? rows.s[i] - rows.xi[i] : rows.s[i]);
      u[2][i] = rows.d[i] * A.y[begin + i];
    }
    return all.d + begin;
  };
  if (gram)
    gram_sweep<3, double>(A, {}, G, gram, step);
  else
    A.sweep<3>({}, G, step);
}

}  // namespace widemargin
