// What long work in the core asks Python now and then.
#pragma once

#include "bindings.hpp"

// Whether to stop, by the answer of Python, which is asked without the GIL; or by Ctrl-C, which
// leaves the results as they are.
struct Question {
  const nb::callable& stop;
  bool interrupted = false;

  bool operator()() {
    const nb::gil_scoped_acquire acquire;
    try {
      return interrupted || nb::cast<bool>(stop());
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_KeyboardInterrupt)) throw;
      return interrupted = true;
    }
  }
};
