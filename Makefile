# Two commands for a newcomer: `make demo` and `make test`. Nothing but Python 3.11 or newer is needed.
#
# Everything is installed into .venv; a stamp file per purpose keeps repeat runs from installing again.
# PYTHON=… picks another interpreter. All paths are relative, so that the folder's own name may hold spaces.

.PHONY: help demo test test-full test-slow test-times test-bounds test-mutants test-dask ordeal lint format docs bench clean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
PYTHON ?=
WORKERS ?= 2

# Real data sets, where a folder of them lies beside this one.
ifeq ($(origin PRINFOLD_DATA),undefined)
ifneq ($(wildcard ../shared/data/.),)
export PRINFOLD_DATA := $(CURDIR)/../shared/data
endif
endif
export MPLBACKEND ?= Agg
# Read when scipy is first imported; without it scikit-learn leaves out its check of array-API input.
test test-full test-slow test-times test-bounds test-mutants test-dask ordeal: export SCIPY_ARRAY_API := 1
# Tests start Python many times over, and each start would compile all files anew where it may not keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE
# Each of the workers takes neighbouring tests, so that a fit that tests of one file share is made by one of them.
XDIST := -n $(WORKERS) --dist worksteal

help:
	@echo "make demo         fit a map of simulated pipe-flow data and look at it"
	@echo "make test         run the quick tests; SLICE=gtm those of one folder"
	@echo "make test-full    run all tests but the long reproductions"
	@echo "make test-times   measure the tests and choose those of the quick run anew"
	@echo "make test-mutants plant sixty mistakes one by one and count those that the quick tests notice"
	@echo "make test-bounds  run the tests of compiled code with every index checked"
	@echo "make test-dask    run the tests on a small Dask cluster of this machine, with twenty workers killed"
	@echo "make ordeal       try hostile tables, settings and files; MINUTES=10 is how long"
	@echo "make test-slow    run the long reproductions of published numbers"
	@echo "make lint         style, types, repository"
	@echo "make format       rewrite the code in the house format"
	@echo "make docs         build the documentation in docs/_build/html"
	@echo "make bench        run the benchmarks"
	@echo "make clean        remove everything that make has built"

demo: $(VENV)/.demo
	$(BIN)/prinfold demo --force

# One folder of tests: make test SLICE=gtm
SLICE ?=

test: $(VENV)/.test
	$(BIN)/python -m pytest $(XDIST) -m "not slow and not full" $(if $(SLICE),tests/$(SLICE)) $(ARGS)

test-full: $(VENV)/.test
	$(BIN)/python -m pytest $(XDIST) -m "not slow" $(if $(SLICE),tests/$(SLICE)) $(ARGS)

# Measures every test and notes which of them the quick run leaves out, in tests/full_only.txt.
test-times: $(VENV)/.test
	rm -rf .test-times
	$(BIN)/python -m pytest $(XDIST) -m "not slow" --hypothesis-profile=quick -p tools.test_times $(ARGS)
	$(BIN)/python tools/test_times.py

# MUTANTS="m01 m02" names some of them.
test-mutants: $(VENV)/.test
	$(BIN)/python tools/mutants.py $(MUTANTS)

# Tests that start and kill workers of a cluster, the long one too, which kills twenty.
test-dask: $(VENV)/.test
	$(BIN)/python -m pytest tests/rows/test_dask.py tests/validation/test_tables.py $(ARGS)

test-slow: $(VENV)/.bench
	$(BIN)/python -m pytest -m slow $(ARGS)

# Compiled code reads and writes without looking whether an index is in range; here it looks. What is compiled so is kept
# apart: numba would not know it from the other. BOUNDS=… names other tests; one of tests/numerics plants a wrong index.
BOUNDS ?= tests/numerics tests/geometry tests/gtm tests/density tests/kernel_manifolds tests/curves tests/som tests/pps \
	tests/trees tests/surfaces tests/latent tests/expression tests/rows tests/basis_maps tests/applications

test-bounds: export NUMBA_BOUNDSCHECK := 1
test-bounds: export NUMBA_CACHE_DIR := $(CURDIR)/.numba-bounds
test-bounds: $(VENV)/.test
	$(BIN)/python -m pytest $(XDIST) -m "not slow" $(BOUNDS) $(ARGS)

# Hostile cases for every method, as long as one likes; findings go into tests/ordeal/corpus.
MINUTES ?= 10

ordeal: $(VENV)/.test
	$(BIN)/python -m tests.ordeal --minutes $(MINUTES) $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/sp-repo-review .

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.bench
	@grep -o 'python -m benchmarks[.a-z_]*' benchmarks/README.md | grep -v papers | cut -d' ' -f3 | while read name; do \
		echo "== $$name"; $(BIN)/python -m "$$name" || exit 1; \
	done

clean:
	rm -rf $(VENV) build dist docs/_build docs/auto_examples docs/api/generated docs/sg_execution_times.rst
	rm -rf .numba-bounds .mutants .test-times .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov prinfold-demo benchmarks/results
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.demo: pyproject.toml $(VENV)/.python
	@echo "Installing prinfold into $(VENV) …"
	@$(PIP) install --editable ".[plot]"
	@touch $@

# Dependency groups need pip 25.1; the one that comes with Python may be older.
$(VENV)/.bench $(VENV)/.test $(VENV)/.lint $(VENV)/.docs: $(VENV)/.%: pyproject.toml $(VENV)/.python
	@echo "Installing what 'make $*' needs into $(VENV) …"
	@$(PIP) install "pip>=25.1"
	@$(PIP) install --editable ".[plot]" --group $*
	@touch $@

$(VENV)/.python:
	@set -e; \
	for candidate in "$(PYTHON)" python3 python3.14 python3.13 python3.12 python3.11 python; do \
		test -n "$$candidate" || continue; \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then found="$$candidate"; break; fi; \
		if test "$$candidate" = "$(PYTHON)"; then echo "PYTHON=$(PYTHON) is not a Python 3.11 or newer." >&2; exit 1; fi; \
	done; \
	if test -z "$$found"; then \
		echo "prinfold needs Python 3.11 or newer, and none was found. Install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version) …"; \
	if ! "$$found" -m venv --clear $(VENV); then \
		echo "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; \
		rm -rf $(VENV); exit 1; \
	fi; \
	touch $@
