# Everything sets itself up: `make run` and `make test` need only Python 3.11, make and gcc.
PYTHON ?= python3
FULL := .venv
BASE := .venv-base
DIST := .venv-dist
PIP_FLAGS := --quiet --disable-pip-version-check --constraint constraints.txt
# One thread a process: two processes side by side beat two threads on a small machine.
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE
MODE := not slow
# Files or tests to run; all by default.
TESTS ?=

# The C core, compiled for this machine into the package.
CORE := src/gait/_core_native.so

.PHONY: help run test test-slow lint bench dist setup clean

help:
	@echo "make run        the demonstration, in a light environment"
	@echo "make test       lint, types and tests"
	@echo "make test-slow  the long studies as well"
	@echo "make lint       ruff and mypy"
	@echo "make bench      speed against named rivals"
	@echo "make dist       sdist and wheel in dist/, tried out in an environment of their own"
	@echo "make setup      an environment with every extra, in $(FULL)"

run: $(BASE)/.ready $(CORE)
	$(BASE)/bin/gait demo

test: lint $(BASE)/.ready $(CORE)
	GAIT_BASE_PYTHON=$(BASE)/bin/python $(FULL)/bin/python -m pytest -n 2 -m "$(MODE)" $(TESTS)

test-slow: MODE = slow or not slow
test-slow: test

lint: $(FULL)/.ready
	$(FULL)/bin/python hatch_build.py --strict
	$(FULL)/bin/ruff check .
	$(FULL)/bin/ruff format --check .
	$(FULL)/bin/mypy

bench: $(FULL)/.ready $(CORE)
	$(FULL)/bin/python benchmarks/filters.py
	$(FULL)/bin/python benchmarks/latency.py

# The wheel is made from the sdist, so both are complete, and is run where no source lies about.
dist: $(FULL)/.ready
	rm -rf dist $(DIST)
	GAIT_PORTABLE=1 PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(FULL)/bin/python -m build --outdir dist
	$(FULL)/bin/python tools/check_dist.py dist
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/pip install $(PIP_FLAGS) dist/*.whl
	cd / && env -u PYTHONPATH $(CURDIR)/$(DIST)/bin/python -c 'import gait, sys; assert sys.prefix in gait.__file__'
	cd / && env -u PYTHONPATH $(CURDIR)/$(DIST)/bin/gait demo
	rm -rf $(DIST)

setup: $(FULL)/.ready

$(CORE): $(wildcard core/*.[ch] core/python/*.c) hatch_build.py
	$(PYTHON) hatch_build.py

$(FULL)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FULL)
	$(FULL)/bin/pip install $(PIP_FLAGS) --editable '.[all,dev]'
	@touch $@

$(BASE)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BASE)
	$(BASE)/bin/pip install $(PIP_FLAGS) --editable .
	@touch $@

clean:
	rm -rf $(FULL) $(BASE) $(DIST) $(CORE) .cache .pytest_cache .mypy_cache .ruff_cache dist build
