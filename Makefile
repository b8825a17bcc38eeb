# Every target works on a fresh machine: it makes a local virtual environment first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint format clean

demo: $(READY)
	@$(BIN)/python -m matroot.experiments.demo

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis

# The constraints pin torch to a build without CUDA packages, which tests do not need.
$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard src/matroot/backends/native/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable ".[experiments]" --group dev
	@touch $@
