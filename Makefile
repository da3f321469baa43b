# Everything a newcomer needs: `make demo` runs the main job, `make test` the checks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: install demo test lint types unit docs site outputs pictures coverage test-single-process check-tag release-links dist test-lowest test-ray test-integrations torture mutants bench-peers clean

install: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,postgres,dashboard]'
	touch $(STAMP)

# The demo needs NumPy and SciPy alone; its environment becomes that of `make install` when that is run.
demo: $(DEMO)
	$(BIN)/python examples/demo.py $(SEED)

$(DEMO): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $(DEMO)

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

# Today's printed outputs, put into the pages that show them.
outputs: install
	SCRIMP_WRITE_OUTPUTS=1 $(BIN)/python -m pytest -n 2 tests/test_docs.py

# The pictures of the README and of docs/, from real runs; needs Chromium.
pictures: install
	$(BIN)/python docs/pictures.py $(NAMES)

# What works on every system: functions in one process, with threads; the parts below studies, and a simulated Windows.
SINGLE_PROCESS := acquisition encoding freeze_thaw fronts gp methods plots schedulers space study_log suggesters surrogates transfer
test-single-process: install
	$(BIN)/python -m pytest -n 2 tests/test_platforms.py tests/test_public_names.py tests/study/test_minimize.py tests/executors/test_live_trial_in_process.py tests/storage/test_memory.py tests/storage/test_sqlite.py $(SINGLE_PROCESS:%=tests/%)

coverage: install
	$(BIN)/python -m pip install --quiet 'pytest-cov>=5.0'
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term:skip-covered --cov-report=xml

# The oldest versions that the lower bounds in pyproject.toml allow and that have wheels for this Python; an
# environment for each version of Python. Hydra needs a package that has no wheel.
LOWEST = .venvs/lowest-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

test-lowest:
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --only-binary :all: --no-binary antlr4-python3-runtime --editable '.[dev,postgres,dashboard]'
	$(LOWEST)/bin/python -m pytest -n 2

check-tag:
	$(PYTHON) .github/release.py check $(TAG)

# Links of the README become absolute, and the project gets its URLs: for the package index.
release-links:
	$(PYTHON) .github/release.py links $(REPOSITORY) $(TAG)

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

# Applies hand-made defects one at a time, in temporary copies, and runs the tests that should fail; ONLY=storage/ for some files.
mutants: install
	$(BIN)/python -m tests.tools.mutants $(ONLY:%=--only %)

bench-peers: install
	$(PYTHON) benchmarks/run.py environments
	$(BIN)/python benchmarks/run.py compare_functions

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
