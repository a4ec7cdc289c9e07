# make demo   a first look: trains on real data and writes demo-report.html
# make test   everything that must pass: the checks, then the tests
# make test-full   the tests at each instruction set of this processor, then full products and the
#                  campaign of 20,000 certificates (an hour)
# make mutations   faults put into a copy, one at a time: the tests must see each
# make check  lint, types, layers, formats, docstrings
# make bench  comparison with other packages (a quarter of an hour; benchmarks/README.md has more)
# make docs   the documentation as HTML in docs/_build

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Folders of src: a new or moved module must be made known to the editable install.
SOURCES := $(wildcard cpp/*) CMakeLists.txt pyproject.toml \
           $(shell find src -type d -not -name __pycache__)

.PHONY: demo test test-full mutations check bench docs format clean

demo: $(VENV)/installed
	$(BIN)/python examples/demo.py

# SCIPY_ARRAY_API: scikit-learn skips four of its estimator checks without it.
test: check
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n auto

# The last level of the loop is the one that `make test` runs at.
LEVELS = from widemargin import _core as c; print(*[c.SIMD_NAMES[i] for i in c.simd_levels()])
test-full: check
	set -e; for level in $$($(BIN)/python -c "$(LEVELS)"); do \
	  echo "WIDEMARGIN_SIMD=$$level"; \
	  WIDEMARGIN_SIMD=$$level SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n auto; \
	done
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n auto -m full

mutations: $(VENV)/installed
	$(BIN)/python tests/mutations.py

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror cpp/*.hpp cpp/*.cpp tests/fuzz/*.cpp
	$(BIN)/numpydoc lint $$(find src -name "*.py")

bench: $(VENV)/installed
	$(BIN)/pip install -q -e ".[bench]"
	$(BIN)/python -m benchmarks.run --timeout 10 --budget 600 --output build/bench
	$(BIN)/python -m benchmarks.kernel.run --quick --budget 240 --output build/bench/kernel
	@echo "All sets: see benchmarks/README.md. Tables and pictures: build/bench"

docs: $(VENV)/installed
	$(BIN)/pip install -q -e ".[docs]"
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

format: $(VENV)/installed
	$(BIN)/ruff check --fix -q .
	$(BIN)/ruff format -q .
	$(BIN)/clang-format -i cpp/*.hpp cpp/*.cpp tests/fuzz/*.cpp

# Python sources are used in place; only the C++ core is built, when it changed.
$(VENV)/installed: $(SOURCES)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) build docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
