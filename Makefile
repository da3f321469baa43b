# Everything a newcomer needs: `make demo` runs the main job, `make test` the checks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: install demo test lint types unit torture bench-peers clean

install: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,postgres,dashboard]'
	touch $(STAMP)

demo: install
	$(BIN)/python examples/demo.py $(TRIALS)

test: install lint types unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

unit: install
	$(BIN)/python -m pytest -n 2

torture: install
	$(BIN)/python -m scrimp.testing.torture --kills $(or $(KILLS),200)

bench-peers: install
	$(PYTHON) benchmarks/environments.py
	$(BIN)/python benchmarks/compare.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
