# make demo   a first look: trains on real data and writes demo-report.html
# make test   everything that must pass: the checks, then the tests
# make test-full   the tests at each instruction set of this processor, then full products and the
#                  campaign of 20,000 certificates, and `make wheel` (an hour)
# make compat  scikit-learn's own tests of its machines, with ours in their place
# make mutations   faults put into a copy, one at a time: the tests must see each
# make check  lint, types, layers, formats, docstrings
# make bench  comparison with other packages (a quarter of an hour; benchmarks/README.md has more)
# make wheel  what a release uploads for this machine, tried in an environment without a compiler
# make docs   the documentation as HTML in docs/_build, with its examples run and its links checked

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Folders of src: a new or moved module must be made known to the editable install. Folders
# for what Python compiles are made before: the first import would change the others.
SOURCES := $(wildcard cpp/*) CMakeLists.txt pyproject.toml \
           $(shell find src -type d -not -name __pycache__)
CACHES = find src -type d -not -name __pycache__ -exec mkdir -p {}/__pycache__ \;

# Installs the packages of a group of pyproject.toml.
needed = $(BIN)/python -m tests.dependencies --only $(1) > $(VENV)/$(1).txt && \
         $(BIN)/python -m pip install -q --disable-pip-version-check -r $(VENV)/$(1).txt

# Empty: Python keeps what it compiled, for each process that a test starts.
export PYTHONDONTWRITEBYTECODE :=

CHECKS := lint layout types layers core-layout docstrings

.PHONY: demo test tests test-full compat mutations check $(CHECKS) bench docs wheel format clean

# Two at a time: the checks run beside the tests.
MAKEFLAGS += --jobs=2

demo: $(VENV)/installed
	@echo "Training (5 to 15 seconds) ..."
	@$(BIN)/python examples/demo.py

test: tests check

# SCIPY_ARRAY_API: scikit-learn skips four of its estimator checks without it.
# One thread of BLAS: there is a process for each core, and threads that wait for each
# other take half of the time. Rows are then read by one thread where a test does not ask
# for more. `test-full` leaves BLAS its threads.
# worksteal: the tests of a file stay in one process, which solves their problems once.
WORKERS = -n auto --dist worksteal
tests: $(VENV)/tested
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q $(WORKERS)

# As many examples of each property as hypothesis draws where it is not told.
EXAMPLES = --hypothesis-profile=full
# The last level of the loop is the one that `make test` runs at.
LEVELS = from widemargin import _core as c; print(*[c.SIMD_NAMES[i] for i in c.simd_levels()])
test-full: check wheel
	set -e; for level in $$($(BIN)/python -c "$(LEVELS)"); do \
	  echo "WIDEMARGIN_SIMD=$$level"; \
	  WIDEMARGIN_SIMD=$$level SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q $(WORKERS) $(EXAMPLES); \
	done
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q $(WORKERS) $(EXAMPLES) -m full

# tests/compat/table.txt says which pass, and why the others do not.
compat: $(VENV)/tested
	$(BIN)/python -m tests.compat

mutations: $(VENV)/tested
	$(BIN)/python -m tests.mutations

check: $(CHECKS)

lint: $(VENV)/tested
	$(BIN)/ruff check .

layout: $(VENV)/tested
	$(BIN)/ruff format --check .

types: $(VENV)/tested
	$(BIN)/mypy

layers: $(VENV)/tested
	$(BIN)/lint-imports

core-layout: $(VENV)/tested
	$(BIN)/clang-format --dry-run --Werror cpp/*.hpp cpp/*.cpp tests/fuzz/*.cpp

docstrings: $(VENV)/tested
	$(BIN)/numpydoc lint $$(find src -name "*.py")

bench: $(VENV)/tested
	$(call needed,bench)
	$(BIN)/python -m benchmarks.run --timeout 10 --budget 600 --output build/bench
	$(BIN)/python -m benchmarks.kernel.run --quick --budget 240 --output build/bench/kernel
	@echo "All sets: see benchmarks/README.md. Tables and pictures: build/bench"

docs: $(VENV)/tested
	$(call needed,docs)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W -q -b html docs docs/_build
	$(BIN)/python .ci/links.py docs/_build
	@echo "Open docs/_build/index.html in a browser."

# Without the package itself, which the wheel is tried in place of.
wheel: | $(VENV)
	$(call needed,release)
	$(BIN)/python .ci/wheel.py $(URL)

format: $(VENV)/tested
	$(BIN)/ruff check --fix -q .
	$(BIN)/ruff format -q .
	$(BIN)/clang-format -i cpp/*.hpp cpp/*.cpp tests/fuzz/*.cpp

# Python sources are used in place; only the C++ core is built, when it changed.
#
# `installed`: what a first look needs, with a core for this processor alone, which compiles in
# half of the time. `tested`: the tools of the tests, and the core as it is shipped. Either does
# for `make demo`.
INSTALL = $(BIN)/python .ci/install.py
NATIVE = --config-settings=cmake.define.WIDEMARGIN_NATIVE
# Not beside `installed`, where both are made.
FIRST = $(if $(filter demo,$(MAKECMDGOALS)),$(VENV)/installed)

$(VENV)/installed: $(VENV)/native $(VENV)/needed
	@touch $@

$(VENV)/native: $(SOURCES) | $(VENV)
	@echo "Compiling the C++ core (about a minute) ..."
	@$(INSTALL) --no-deps -e . $(NATIVE)=ON
	@$(CACHES)
	@touch $@

# Beside the core, as the packages of the tests.
$(VENV)/needed: pyproject.toml | $(VENV)
	@echo "Installing numpy, scipy, scikit-learn and matplotlib beside the C++ core ..."
	@$(BIN)/python -m tests.dependencies plot > $@.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -r $@.txt
	@touch $@

$(VENV)/tested: $(VENV)/core $(VENV)/packages
	@touch $(VENV)/installed $@

# The packages are installed beside the core, whose files keep one processor at the end.
$(VENV)/core: $(SOURCES) $(FIRST) | $(VENV)
	@$(INSTALL) --no-deps -e . $(NATIVE)=OFF
	@$(CACHES)
	@touch $@

$(VENV)/packages: pyproject.toml $(FIRST) | $(VENV)
	@$(BIN)/python -m tests.dependencies test > $@.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r $@.txt
	@touch $@

$(VENV):
	@echo "Making the environment $(VENV) ..."
	@$(PYTHON) -m venv $@

clean:
	rm -rf $(VENV) build docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
