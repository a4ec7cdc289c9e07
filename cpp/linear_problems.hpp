// Linear problems over the same rows, with labels of their own, that are solved all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace widemargin {

// Problem t has the labels y[t m] .. of the m rows and the weights C[t m] .., and writes its alpha
// there and v = (w, b), or w without an intercept, from v[t k] on. With q, of a regression, each
// row is there twice, which have labels y and -y and margins to reach of their own: q and alpha
// have 2 m numbers a problem, first those of the labels y. Products with the rows are made once for
// both.
template <class Rows>
struct LinearProblems {
  Rows X;
  std::span<const double> y;  // +1 and -1
  std::span<const double> C;  // above zero
  std::span<const double> q;  // or none: each is 1
  bool squared;               // the loss
  int intercept;              // 0: none, 1: free, 2: penalized
  std::span<double> alpha, v;
  std::size_t m;  // rows
  std::size_t size() const { return y.size() / m; }
  std::span<const double> weights(std::size_t t) const { return C.subspan(t * m, m); }
  std::size_t copies() const { return q.empty() ? 1 : 2; }  // of each row
  std::size_t order() const { return X.n + (intercept > 0); }
};

struct LinearLimits {
  double tol;                  // relative gap
  std::int64_t most;           // steps of a problem
  std::size_t threads;         // the caller's among them
  std::function<bool()> stop;  // asked by the caller's thread now and then
};

}  // namespace widemargin
