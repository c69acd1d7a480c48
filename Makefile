# `make demo` and `make test` are all a newcomer needs; both set everything up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO ?= runs/demo

.PHONY: demo setup test lint types unit test-all bench figures lock clean

demo: setup
	$(BIN)/firl train pointmass-gaussian --out $(DEMO)

setup: $(VENV)/.installed

# Pinned with hashes; the package itself is installed from here, without its dependencies again.
$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "firl needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

test: lint types unit

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/pytest -m "not slow"

test-all: lint types
	$(BIN)/pytest

bench: setup
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0 -e ".[bench]"
	$(BIN)/python -m firl.bench

figures: setup
	$(BIN)/python -m experiments.density draw
	$(BIN)/python -m experiments.imitation draw

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--fork-strategy fewest --generate-hashes --no-emit-index-url --no-header --no-annotate -o requirements.lock

clean:
	rm -rf $(VENV)
