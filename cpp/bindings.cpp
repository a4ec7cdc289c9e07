// The only file that includes nanobind: every C++ function that Python calls is bound here.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_core, m) { m.doc() = "C++ core of widemargin: free functions on arrays that Python owns."; }
