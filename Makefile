# `make run` and `make test` set everything up on a machine that has Python >= 3.10 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# A test process for each of two cores; the tests of a file stay together, for their fixtures.
PYTEST_FLAGS ?= --numprocesses 2 --dist loadfile

.PHONY: run test test-fast test-slow lint types setup clean

setup: $(STAMP)

$(STAMP): setup.cfg pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24" "setuptools>=68" wheel
	$(BIN)/python -m pip install --quiet --editable ".[test,dev]"
	touch $(STAMP)

# The main job, on generated images, with data echoing after the augmentation.
run: setup
	$(BIN)/pipebench run --echo-factor 2 --insert-point after_augment

test: lint types test-fast test-slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

test-fast: setup
	$(BIN)/python -m pytest -q $(PYTEST_FLAGS)

test-slow: setup
	$(BIN)/python -m pytest -q -m slow $(PYTEST_FLAGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
