# Everything a newcomer needs: `make demo` runs the main job, `make test` the checks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: install demo test lint types unit docs site pictures coverage dist test-lowest test-ray test-integrations torture bench-peers clean

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

# The Python blocks of the README and of docs/ run, top to bottom; then the site is built into build/site, strictly.
docs: site
	$(BIN)/python -m pytest -n 2 tests/test_docs.py tests/test_examples.py

site: install
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures of the README and of docs/, from real runs; needs Chromium.
pictures: install
	$(BIN)/python docs/pictures.py $(NAMES)

coverage: install
	$(BIN)/python -m pip install --quiet 'pytest-cov>=5.0'
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term:skip-covered --cov-report=xml

# The oldest versions that the lower bounds in pyproject.toml allow and that have wheels for this Python.
# Hydra needs a package that has none.
test-lowest:
	test -x .venvs/lowest/bin/python || $(PYTHON) -m venv .venvs/lowest
	.venvs/lowest/bin/python -m pip install --quiet uv
	.venvs/lowest/bin/uv pip install --quiet --python .venvs/lowest/bin/python --resolution lowest-direct --only-binary :all: --no-binary antlr4-python3-runtime --editable '.[dev,postgres,dashboard]'
	.venvs/lowest/bin/python -m pytest -n 2

dist: install
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

# Ray is large and needs a Python it has wheels for, so its tests have an environment of their own; without it they skip.
test-ray:
	test -x .venvs/ray/bin/python || $(PYTHON) -m venv .venvs/ray
	.venvs/ray/bin/python -m pip install --quiet --editable '.[dev,ray]'
	.venvs/ray/bin/python -m pytest tests/executors/test_ray.py tests/executors/test_shared_checkpoints.py tests/study/test_checkpoint_cleanup.py

# Integrations with libraries that the tests do not need otherwise: the extra of each in an environment of its own.
INTEGRATIONS := optuna hydra xgboost lightgbm catboost lightning transformers keras lm-eval
INTEGRATIONS += mlflow wandb tensorboard aim configspace ray-tune launchers

test-integrations: $(INTEGRATIONS:%=test-integration-%)

# torch in its small build for processors; Keras needs one of its backends.
PACKAGES_lightning := torch==2.13.0
PACKAGES_transformers := torch==2.13.0
PACKAGES_keras := torch==2.13.0
PACKAGES_optuna := 'psycopg[binary]>=3.1.18'
PACKAGES_lm-eval := torch==2.13.0

test-integration-%:
	test -x .venvs/test-$*/bin/python || $(PYTHON) -m venv .venvs/test-$*
	.venvs/test-$*/bin/python -m pip install --quiet --upgrade --editable '.[dev,$*]' $(PACKAGES_$*)
	.venvs/test-$*/bin/python -m pytest tests/integrations

# Kills workers, tuners and servers of a study at random. A module below tests/, so it runs from the repository root.
torture: install
	$(BIN)/python -m tests.tools.torture --kills $(or $(KILLS),200)

bench-peers: install
	$(PYTHON) benchmarks/run.py environments
	$(BIN)/python benchmarks/run.py compare_functions

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
