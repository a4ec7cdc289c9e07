// Samples, kernel values and what is made of them, as Python calls them.
#include "bindings.hpp"
#include "bindings_views.hpp"
#include "kernel_rows.hpp"
#include "mirror.hpp"
#include "pack.hpp"
#include "simd.hpp"
#include "votes.hpp"

namespace {

template <class Real>
using Strips = widemargin::Strips<Real>;
template <class Real>
using Batch = widemargin::Batch<Real>;
template <class T>
using Optional = std::optional<Array<const T>>;

std::size_t strips_of(std::size_t samples) {
  return (samples + widemargin::kStrip - 1) / widemargin::kStrip;
}

// Rows of a sparse matrix: that they lie inside of `indices` and `data`, and the columns in n.
template <class Real>
void check_sparse(const Array<const Real>& data, const Optional<std::int64_t>& indptr,
                  const Optional<std::int32_t>& indices, std::size_t n) {
  require(indices && indices->size() == data.size());
  const auto ends = span(*indptr);
  require(!ends.empty() && ends.front() >= 0 && std::ranges::is_sorted(ends) &&
          static_cast<std::size_t>(ends.back()) <= data.size());
  for (auto j : span(*indices)) require(j >= 0 && static_cast<std::size_t>(j) < n);
}

template <class Real>
Strips<Real> strips(const Array<const Real>& data, const Array<const Real>& norms,
                    const Optional<std::int64_t>& indptr, const Optional<std::int32_t>& indices,
                    std::size_t samples, std::size_t n) {
  require(norms.size() == strips_of(samples) * widemargin::kStrip);
  if (indptr) {
    require(indptr->size() == samples + 1);
    check_sparse(data, indptr, indices, n);
  } else {
    require(data.size() == norms.size() * n);
  }
  return {data.data(), norms.data(), ::data(indptr), ::data(indices), samples, n};
}

// Packed samples whose entries are 0 or 1.
template <class Real>
Strips<Real> strips_of_ones(const Array<const std::uint8_t>& ones, const Array<const Real>& norms,
                            std::size_t samples, std::size_t n, bool by_factors) {
  require(norms.size() == strips_of(samples) * widemargin::kStrip &&
          ones.size() == norms.size() * n);
  return {nullptr, norms.data(), nullptr, nullptr, samples, n, ones.data(), by_factors};
}

// Samples of levels, and rows of them: `n` features, padded.
template <class Real>
Strips<Real> strips_of_levels(const Array<const std::uint8_t>& levels,
                              const Array<const std::int32_t>& level_norms,
                              const Array<const Real>& norms, double unit, std::size_t samples,
                              std::size_t n, bool by_groups) {
  const std::size_t padded = strips_of(samples) * widemargin::kStrip;
  require(n % widemargin::kLevelsTogether == 0 && norms.size() == padded &&
          level_norms.size() == padded && levels.size() == padded * n);
  Strips<Real> found{nullptr, norms.data(), nullptr, nullptr, samples, n};
  found.levels = levels.data(), found.level_norms = level_norms.data();
  found.square = static_cast<Real>(unit * unit), found.by_groups = by_groups;
  return found;
}

template <class Real>
Batch<Real> batch_of_levels(const Array<const std::int8_t>& levels,
                            const Array<const std::int32_t>& level_norms,
                            const Array<const Real>& norms, std::size_t n,
                            const Optional<std::int64_t>& begin, const Optional<std::int64_t>& end,
                            const Optional<std::int32_t>& groups) {
  const std::size_t count = norms.size();
  require(level_norms.size() == count && levels.size() == count * n);
  require(!begin == !groups && !end == !groups);
  if (groups) {
    require(begin->size() == count && end->size() == count);
    const auto size = static_cast<std::int64_t>(groups->size());
    for (std::size_t b = 0; b < count; ++b)
      require(0 <= span(*begin)[b] && span(*begin)[b] <= span(*end)[b] && span(*end)[b] <= size);
    const auto most = static_cast<std::int32_t>(n / widemargin::kLevelsTogether);
    for (auto group : span(*groups)) require(0 <= group && group < most);
  }
  Batch<Real> found{nullptr, norms.data(), ::data(begin), ::data(end), ::data(groups), count,
                    n,       false};
  found.levels = levels.data(), found.level_norms = level_norms.data();
  return found;
}

// Dense rows, or groups of them; or sparse rows whose columns Python has looked at, once for all of
// them: there may be very many, of which a batch has a few.
template <class Real>
Batch<Real> batch(const Array<const Real>& data, const Array<const Real>& norms,
                  const Optional<std::int64_t>& begin, const Optional<std::int64_t>& end,
                  const Optional<std::int32_t>& indices, std::size_t n) {
  const std::size_t count = norms.size(), group = widemargin::kGroup;
  const std::size_t padded = (count + group - 1) / group * group * n;
  if (begin) {
    require(end && indices && begin->size() == count && end->size() == count &&
            indices->size() == data.size());
    for (std::size_t b = 0; b < count; ++b)
      require(0 <= span(*begin)[b] && span(*begin)[b] <= span(*end)[b] &&
              static_cast<std::size_t>(span(*end)[b]) <= data.size());
  } else {
    require(data.size() == count * n || data.size() == padded);
  }
  const bool whole_groups = !begin && data.size() == padded;
  return {data.data(), norms.data(), ::data(begin), ::data(end), ::data(indices), count,
          n,           whole_groups};
}

// That there is code for these samples and this batch: squares of differences are both packed and
// dense or both sparse; distances alone may have both sparse.
void require_storage(widemargin::Term term, bool sparse_samples, bool sparse_batch,
                     bool whole_groups) {
  require(term != widemargin::Term::square || sparse_samples == sparse_batch);
  require(!sparse_samples || (sparse_batch ? term != widemargin::Term::product : whole_groups));
}

// That samples of ones meet sparse rows, by products.
template <class Real>
void require_ones(int kind, const Strips<Real>& X, const Batch<Real>& batch) {
  const auto term = widemargin::row_term(static_cast<widemargin::KernelKind>(kind));
  require(X.ones == nullptr || (batch.begin != nullptr && term == widemargin::Term::product));
  if (X.by_factors)
    for (std::size_t b = 0; b < batch.count; ++b)
      require(batch.end[b] - batch.begin[b] <= widemargin::kMostByFactors);
}

// That there is such a kernel, and code for it.
template <class Real>
void require_kernel(int kind, const Strips<Real>& X, const Batch<Real>& batch) {
  require(0 <= kind && kind < widemargin::kKernels && batch.n == X.n);
  require_storage(widemargin::row_term(static_cast<widemargin::KernelKind>(kind)),
                  X.indptr != nullptr, batch.begin != nullptr, batch.whole_groups);
  require_ones(kind, X, batch);
  require((X.levels != nullptr) == (batch.levels != nullptr));
  require(X.levels == nullptr || (kind == static_cast<int>(widemargin::KernelKind::rbf) &&
                                  X.by_groups == (batch.begin != nullptr)));
}

// That values of a batch have room: at their places, or in its order.
template <class T>
void require_room(const Matrix<T>& out, std::size_t width, std::size_t count,
                  const Optional<std::int64_t>& place) {
  require(out.shape(1) >= width && reinterpret_cast<std::uintptr_t>(out.data()) % 64 == 0 &&
          out.shape(1) * sizeof(T) % 64 == 0);
  require(place ? place->size() == count : out.shape(0) >= count);
  if (place)
    for (auto p : span(*place)) require(p < static_cast<std::int64_t>(out.shape(0)));
}

template <class Real>
void kernel_rows(const Form& form, const Strips<Real>& X, const Batch<Real>& batch,
                 std::size_t begin, std::size_t end, const std::optional<Matrix<Real>>& out,
                 const Optional<std::int64_t>& place,
                 const std::optional<Matrix<const double>>& weights,
                 const std::optional<Matrix<double>>& sums, int simd,
                 const Optional<Real>& back_weights, const std::optional<Array<double>>& back,
                 const std::optional<Matrix<std::uint16_t>>& rounded, float steps) {
  const std::size_t width = strips_of(X.samples) * widemargin::kStrip;
  require(begin <= end && end <= strips_of(X.samples));
  const auto [kind, gamma, coef0, degree] = form;
  require_kernel(kind, X, batch);
  require(!(out && rounded));
  if (out) require_room(*out, width, batch.count, place);
  if (rounded) {
    using widemargin::Term;
    const auto term = widemargin::term_of(static_cast<widemargin::KernelKind>(kind));
    require(term != Term::product && gamma >= 0);  // values are from 0 to 1
    require(0 < steps && steps <= widemargin::kSteps);
    require_room(*rounded, width, batch.count, place);
  }
  require(weights.has_value() == sums.has_value());
  if (weights)
    require(weights->shape(0) == batch.count && sums->shape(0) == weights->shape(1) &&
            sums->shape(1) >= width);
  require(back_weights.has_value() == back.has_value());
  if (back) require(back_weights->size() == width && back->size() == batch.count);
  const widemargin::Target<Real> target{data(out),
                                        data(place),
                                        out       ? out->shape(1)
                                        : rounded ? rounded->shape(1)
                                                  : 0,
                                        data(weights),
                                        data(sums),
                                        weights ? weights->shape(1) : 0,
                                        sums ? sums->shape(1) : 0,
                                        data(back_weights),
                                        data(back),
                                        true,
                                        data(rounded),
                                        steps};
  const auto run = widemargin::compiled(widemargin::simd_level(simd)).kernels.rows<Real>();
  const nb::gil_scoped_release release;
  run({static_cast<widemargin::KernelKind>(kind), gamma, coef0, degree}, X, batch, target, begin,
      end);
}

// Sums over groups of batches, which have their weights one after the other: for each batch the row
// of `sums` where those of its group begin.
template <class Real>
void kernel_sums(const Form& form, const Strips<Real>& X, const std::vector<Batch<Real>>& batches,
                 const Array<const std::int64_t>& first_sum, const Matrix<const double>& weights,
                 const Matrix<double>& sums, int simd) {
  const std::size_t columns = weights.shape(1), width = sums.shape(1);
  const std::size_t strips = strips_of(X.samples);
  const auto [kind, gamma, coef0, degree] = form;
  require(first_sum.size() == batches.size() && width >= strips * widemargin::kStrip);
  std::size_t count = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    require_kernel(kind, X, batches[i]);
    require(first_sum(i) >= 0 && static_cast<std::size_t>(first_sum(i)) + columns <= sums.shape(0));
    count += batches[i].count;
  }
  require(count == weights.shape(0));
  const auto run = widemargin::compiled(widemargin::simd_level(simd)).kernels.rows<Real>();
  const nb::gil_scoped_release release;
  const double* w = weights.data();
  for (std::size_t i = 0; i < batches.size(); w += batches[i].count * columns, ++i) {
    double* out = sums.data() + static_cast<std::size_t>(first_sum(i)) * width;
    run({static_cast<widemargin::KernelKind>(kind), gamma, coef0, degree}, X, batches[i],
        {nullptr, nullptr, 0, w, out, columns, width}, 0, strips);
  }
}

template <class Stored>
void add_rows(const Matrix<const Stored>& rows, const Array<const std::int64_t>& place,
              const Array<const double>& weights, std::size_t begin, std::size_t end,
              const Array<double>& sums, int simd) {
  require(place.size() == weights.size() && begin <= end && end <= sums.size() &&
          end <= rows.shape(1));
  for (auto p : span(place)) require(0 <= p && p < static_cast<std::int64_t>(rows.shape(0)));
  const auto run = widemargin::compiled(widemargin::simd_level(simd)).kernels.add<Stored>();
  const nb::gil_scoped_release release;
  run(rows.data(), place.data(), place.size(), rows.shape(1), weights.data(), begin, end,
      sums.data());
}

// Dense rows of X less a center.
template <class Real, class X>
void dense_rows(const X& rows, const Array<const std::int64_t>& index,
                const Array<const double>& center, const Array<Real>& out) {
  with_view(rows, [&](const auto& view, std::size_t k, std::size_t n) {
    require(center.size() == n && out.size() == index.size() * n);
    for (auto i : span(index)) require(0 <= i && i < static_cast<std::int64_t>(k));
    const nb::gil_scoped_release release;
    widemargin::dense_rows(view, span(index), n, center.data(), out.data());
  });
}

// Strips of rows of X less a center, and the norms of these rows.
template <class Real, class X>
void pack(const X& rows, const Array<const std::int64_t>& index, const Array<const double>& center,
          const Array<Real>& out, const Array<Real>& norms, bool absolute, int simd) {
  const auto squares =
      absolute ? nullptr
               : widemargin::compiled(widemargin::simd_level(simd)).kernels.squares<Real>();
  with_view(rows, [&](const auto& view, std::size_t k, std::size_t n) {
    const std::size_t padded = strips_of(index.size()) * widemargin::kStrip;
    require(center.size() == n && norms.size() == padded && out.size() == padded * n);
    for (auto i : span(index)) require(0 <= i && i < static_cast<std::int64_t>(k));
    const nb::gil_scoped_release release;
    widemargin::pack(view, span(index), n, center.data(), out.data(), norms.data(), squares);
  });
}

// Strips of rows of ones, a byte for each entry, and how many each row has.
template <class Real>
void pack_ones(const widemargin::Csr& X, const Array<const std::int64_t>& index,
               const Array<std::uint8_t>& out, const Array<Real>& norms) {
  X.visit([&](const auto& view) {
    const std::size_t padded = strips_of(index.size()) * widemargin::kStrip;
    require(norms.size() == padded && out.size() == padded * X.n);
    for (auto i : span(index)) require(0 <= i && i < static_cast<std::int64_t>(view.rows()));
    const nb::gil_scoped_release release;
    widemargin::pack_ones(view, span(index), X.n, out.data(), norms.data());
  });
}

// Some rows of levels, one after the other or in strips; places that are left stay as they are.
void take_levels(const Array<const std::uint8_t>& rows, std::size_t n,
                 const Array<const std::int64_t>& index, bool in_strips,
                 const Array<std::uint8_t>& out) {
  const std::size_t count = index.size(), strip = n * widemargin::kStrip;
  require(n % widemargin::kLevelsTogether == 0 && n > 0 && rows.size() % n == 0);
  require(out.size() == (in_strips ? strips_of(count) * strip : count * n));
  const auto m = static_cast<std::int64_t>(rows.size() / n);
  for (auto i : span(index)) require(0 <= i && i < m);
  const nb::gil_scoped_release release;
  widemargin::take_levels(rows.data(), n, span(index), in_strips, out.data());
}

// The rows begin .. end - 1 of X, as levels of a unit, one after the other and in strips; whether
// their entries are such, up to this share of them.
template <class X>
bool pack_levels(const X& rows, std::size_t begin, std::size_t end, double unit, double off,
                 std::size_t n, const Array<std::uint8_t>& levels,
                 const Array<std::uint8_t>& strips, const Array<std::int32_t>& squares,
                 const Array<std::int32_t>& sums) {
  const auto run = [&](const auto& view, std::size_t k, std::size_t columns) {
    const std::size_t padded = strips_of(k) * widemargin::kStrip;
    require(begin <= end && end <= k && columns <= n && n % widemargin::kLevelsTogether == 0 &&
            levels.size() == k * n && strips.size() == padded * n && squares.size() == k &&
            sums.size() == k);
    const nb::gil_scoped_release release;
    return widemargin::pack_levels(view, begin, end, n, unit, off, levels.data(), strips.data(),
                                   squares.data(), sums.data());
  };
  if constexpr (std::is_same_v<X, widemargin::Csr>)
    return rows.visit([&](const auto& view) { return run(view, view.rows(), rows.n); });
  else
    return run(
        widemargin::DenseView<std::remove_const_t<typename X::Scalar>>{rows.data(), rows.shape(0),
                                                                       rows.shape(1)},
        rows.shape(0), rows.shape(1));
}

// Entries J of some rows: see mirror.hpp.
template <class Stored, class Real>
void take(const Matrix<const Stored>& rows, const Array<const std::int64_t>& place,
          const Array<const std::int64_t>& J, const Matrix<Real>& out,
          const Array<const std::int64_t>& at) {
  const auto within = [](const auto& index, std::size_t count) {
    for (auto i : span(index)) require(0 <= i && i < static_cast<std::int64_t>(count));
  };
  require(place.size() == at.size() && J.size() <= out.shape(1));
  within(place, rows.shape(0)), within(at, out.shape(0)), within(J, rows.shape(1));
  const nb::gil_scoped_release release;
  widemargin::take(rows.data(), rows.shape(1), span(place), span(J), out.data(), out.shape(1),
                   span(at));
}

// What reads rows that are stored.
template <class Stored, class Real>
void bind_stored(nb::module_& m) {
  m.def("add_rows", &add_rows<Stored>, "rows"_a.noconvert(), "place"_a.noconvert(),
        "weights"_a.noconvert(), "begin"_a, "end"_a, "sums"_a.noconvert(), "simd"_a = -1);
  m.def("take", &take<Stored, Real>, "rows"_a.noconvert(), "place"_a.noconvert(), "J"_a.noconvert(),
        "out"_a.noconvert(), "at"_a.noconvert());
}

template <class Real>
void bind_real(nb::module_& m, const char* strips_name, const char* batch_name) {
  nb::class_<Strips<Real>>(m, strips_name, "Samples of kernel rows, by reference.");
  nb::class_<Batch<Real>>(m, batch_name, "Rows to compute, by reference.");
  m.def("strips", &strips<Real>, "data"_a.noconvert(), "norms"_a.noconvert(),
        "indptr"_a.noconvert().none(), "indices"_a.noconvert().none(), "samples"_a, "n"_a,
        nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(),
        nb::keep_alive<0, 4>());
  m.def("strips_of_ones", &strips_of_ones<Real>, "ones"_a.noconvert(), "norms"_a.noconvert(),
        "samples"_a, "n"_a, "by_factors"_a = false, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
  m.def("pack_ones", &pack_ones<Real>, "X"_a.noconvert(), "index"_a.noconvert(),
        "out"_a.noconvert(), "norms"_a.noconvert());
  m.def("batch", &batch<Real>, "data"_a.noconvert(), "norms"_a.noconvert(),
        "begin"_a.noconvert().none(), "end"_a.noconvert().none(), "indices"_a.noconvert().none(),
        "n"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(),
        nb::keep_alive<0, 4>(), nb::keep_alive<0, 5>());
  m.def("strips_of_levels", &strips_of_levels<Real>, "levels"_a.noconvert(),
        "level_norms"_a.noconvert(), "norms"_a.noconvert(), "unit"_a, "samples"_a, "n"_a,
        "by_groups"_a = false, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
        nb::keep_alive<0, 3>());
  m.def("batch_of_levels", &batch_of_levels<Real>, "levels"_a.noconvert(),
        "level_norms"_a.noconvert(), "norms"_a.noconvert(), "n"_a,
        "begin"_a.noconvert().none() = nb::none(), "end"_a.noconvert().none() = nb::none(),
        "groups"_a.noconvert().none() = nb::none(), nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
        nb::keep_alive<0, 3>(), nb::keep_alive<0, 5>(), nb::keep_alive<0, 6>(),
        nb::keep_alive<0, 7>());
  m.def("kernel_rows", &kernel_rows<Real>, "form"_a, "X"_a, "batch"_a, "begin"_a, "end"_a,
        "out"_a.noconvert().none(), "place"_a.noconvert().none(), "weights"_a.noconvert().none(),
        "sums"_a.noconvert().none(), "simd"_a = -1,
        "back_weights"_a.noconvert().none() = nb::none(), "back"_a.noconvert().none() = nb::none(),
        "rounded"_a.noconvert().none() = nb::none(), "steps"_a = widemargin::kSteps);
  m.def("kernel_sums", &kernel_sums<Real>, "form"_a, "X"_a, "batches"_a, "first_sum"_a.noconvert(),
        "weights"_a.noconvert(), "sums"_a.noconvert(), "simd"_a = -1);
  bind_stored<Real, Real>(m);
  const auto bind_pack = [&m](auto pack, auto dense) {
    m.def("pack", pack, "X"_a.noconvert(), "index"_a.noconvert(), "center"_a, "out"_a.noconvert(),
          "norms"_a.noconvert(), "absolute"_a, "simd"_a = -1);
    m.def("dense_rows", dense, "X"_a.noconvert(), "index"_a.noconvert(), "center"_a,
          "out"_a.noconvert());
  };
  const auto bind_packs = [&]<class... X>(std::type_identity<X>...) {
    (bind_pack(&pack<Real, X>, &dense_rows<Real, X>), ...);
  };
  bind_packs(std::type_identity<Matrix<const double>>{}, std::type_identity<Matrix<const float>>{},
             std::type_identity<Matrix<const std::int16_t>>{},
             std::type_identity<Matrix<const std::uint8_t>>{},
             std::type_identity<widemargin::Csr>{});
}

// Levels that this processor multiplies and adds at once: 64 bytes, 16 words, or few.
int levels_at_once() {
#if defined(__x86_64__)
  const auto simd = widemargin::simd_level(-1);
  if (simd == widemargin::Simd::avx512 && __builtin_cpu_supports("avx512vnni")) return 64;
  return simd == widemargin::Simd::baseline ? 1 : 16;
#else
  return 1;
#endif
}

// Scores (m, c) of decision values (m, pairs) in any layout.
void votes(const nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>& values,
           const Matrix<double>& scores) {
  const std::size_t m = scores.shape(0), classes = scores.shape(1);
  require(values.shape(0) == m && classes >= 1 && values.shape(1) == classes * (classes - 1) / 2);
  const auto rows = values.stride(0), pairs = values.stride(1);
  const nb::gil_scoped_release release;
  for (std::size_t i = 0; i < m; ++i) {
    const double* row = values.data() + static_cast<std::int64_t>(i) * rows;
    const auto value = [row, pairs](std::size_t p) {
      return row[static_cast<std::int64_t>(p) * pairs];
    };
    widemargin::count_votes(classes, value, scores.data() + i * classes);
  }
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.attr("KERNEL_STRIP") = widemargin::kStrip;
  m.attr("KERNEL_GROUP") = widemargin::kGroup;
  m.attr("KERNEL_CHUNK") = widemargin::kChunk;
  m.def("levels_at_once", &levels_at_once);
  const auto bind_levels = [&m](auto function) {
    m.def("pack_levels", function, "X"_a.noconvert(), "begin"_a, "end"_a, "unit"_a, "off"_a, "n"_a,
          "levels"_a.noconvert(), "strips"_a.noconvert(), "squares"_a.noconvert(),
          "sums"_a.noconvert());
  };
  bind_levels(&pack_levels<Matrix<const double>>);
  bind_levels(&pack_levels<Matrix<const float>>);
  bind_levels(&pack_levels<Matrix<const std::int16_t>>);
  bind_levels(&pack_levels<Matrix<const std::uint8_t>>);
  bind_levels(&pack_levels<widemargin::Csr>);
  m.def("take_levels", &take_levels, "rows"_a.noconvert(), "n"_a, "index"_a.noconvert(),
        "in_strips"_a, "out"_a.noconvert());
  m.def("votes", &votes, "values"_a.noconvert(), "scores"_a.noconvert());
  m.attr("KERNEL_STEPS") = widemargin::kSteps;
  bind_stored<std::uint16_t, float>(m);
  m.def("take", &take<std::uint16_t, std::int16_t>, "rows"_a.noconvert(), "place"_a.noconvert(),
        "J"_a.noconvert(), "out"_a.noconvert(), "at"_a.noconvert());
  bind_real<float>(m, "Strips32", "Batch32");
  bind_real<double>(m, "Strips64", "Batch64");
}
