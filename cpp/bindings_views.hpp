// Rows that Python has, dense or sparse, as algorithms read them.
#pragma once

#include "bindings.hpp"
#include "csr.hpp"
#include "dense.hpp"

// Calls run(view, rows, columns) for rows that are dense or sparse.
template <class X, class Run>
void with_view(const X& rows, const Run& run) {
  if constexpr (std::is_same_v<X, widemargin::Csr>)
    rows.visit([&](const auto& view) { run(view, view.rows(), rows.n); });
  else
    run(widemargin::DenseView<std::remove_const_t<typename X::Scalar>>{rows.data(), rows.shape(0),
                                                                       rows.shape(1)},
        rows.shape(0), rows.shape(1));
}
