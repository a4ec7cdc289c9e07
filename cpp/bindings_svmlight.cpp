// Reading and writing of svmlight text, for Python.
#include <string_view>

#include "bindings.hpp"
#include "svmlight.hpp"

namespace {

using Bytes = Array<const std::uint8_t>;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

namespace sl = widemargin::svmlight;

std::tuple<std::int64_t, std::int64_t, std::int64_t> count_svmlight(const Bytes& lines) {
  const nb::gil_scoped_release release;
  const sl::Counts counts = sl::count(view(lines));
  return {counts.rows, counts.entries, counts.lines};
}

std::size_t svmlight_line_start(const Bytes& text, std::size_t position) {
  require(position <= text.size());
  const nb::gil_scoped_release release;
  return sl::line_start(view(text), position);
}

template <class Real, class Index>
std::string_view read_svmlight(const Bytes& text, std::int64_t budget, std::int64_t base,
                               std::int64_t first, std::int64_t last, bool need_qid,
                               const Array<Real>& data, const Array<Index>& indices,
                               const Array<Index>& indptr, const Array<double>& targets,
                               const std::optional<Array<std::int64_t>>& qid,
                               std::int64_t first_entry, const Array<std::int64_t>& cursor) {
  require(data.size() == indices.size() && indptr.size() == targets.size() + 1 &&
          (!qid || qid->size() == targets.size()));
  const sl::RowsOut<Real, Index> out{span(data),    span(indices), span(indptr),
                                     span(targets), span(qid),     first_entry};
  auto& at = fields<sl::ReadCursor>(cursor);
  const nb::gil_scoped_release release;
  return sl::read(view(text), budget, {base, first, last, need_qid}, out, at);
}

template <class Real, class Index>
std::string_view write_svmlight(const Array<const Real>& data, const Array<const Index>& indices,
                                const Array<const Index>& indptr,
                                const Array<const double>& targets,
                                const std::optional<Array<const std::int64_t>>& qid,
                                std::int64_t base, const Array<std::uint8_t>& out,
                                const Array<std::int64_t>& cursor) {
  require(data.size() == indices.size() && indptr.size() == targets.size() + 1 &&
          (!qid || qid->size() == targets.size()));
  const sl::RowsIn<Real, Index> rows{span(data), span(indices), span(indptr), span(targets),
                                     span(qid)};
  auto& at = fields<sl::WriteCursor>(cursor);
  const nb::gil_scoped_release release;
  return sl::write(rows, base, {reinterpret_cast<char*>(out.data()), out.size()}, at);
}

template <class Real, class Index>
void bind_numbers(nb::module_& m) {
  m.def("read_svmlight", &read_svmlight<Real, Index>, "text"_a, "budget"_a, "base"_a, "first"_a,
        "last"_a, "need_qid"_a, "data"_a.noconvert(), "indices"_a.noconvert(),
        "indptr"_a.noconvert(), "targets"_a.noconvert(), "qid"_a.noconvert().none(),
        "first_entry"_a, "cursor"_a.noconvert());
  m.def("write_svmlight", &write_svmlight<Real, Index>, "data"_a.noconvert(),
        "indices"_a.noconvert(), "indptr"_a.noconvert(), "targets"_a.noconvert(),
        "qid"_a.noconvert().none(), "base"_a, "out"_a.noconvert(), "cursor"_a.noconvert());
}

}  // namespace

void bind_svmlight(nb::module_& m) {
  m.def("count_svmlight", &count_svmlight, "lines"_a.noconvert());
  m.def("svmlight_line_start", &svmlight_line_start, "text"_a.noconvert(), "position"_a);
  bind_numbers<double, std::int32_t>(m);
  bind_numbers<double, std::int64_t>(m);
  bind_numbers<float, std::int32_t>(m);
  bind_numbers<float, std::int64_t>(m);
}
