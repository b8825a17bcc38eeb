# Every target works on a fresh machine: it makes a local virtual environment first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo report docs test lint format clean

demo: $(READY)
	@$(BIN)/matroot demo
	@echo && echo "The paper's numerical tests, a quick run of half a minute, as a page to look at:"
	@$(BIN)/matroot bench --quick --fresh --out build/demo
	@$(BIN)/matroot report build/demo/bench-cpu-float32.json --out $(CURDIR)/build/demo/report.html

# The page of the committed results, and its figures.
REPORTED := $(sort $(wildcard $(foreach kind,bench gpu layers solver,benchmarks/results/$(kind)-*.json)))
report: $(READY)
	@mkdir -p build/report
	$(BIN)/matroot report $(REPORTED) --out build/report/index.html --figures build/report/figures

# The site, in build/site: figures first, tutorials among them, those that have changed. Needs no network.
docs: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python docs/figures build/figures
	$(BIN)/python -m sphinx -W --keep-going -q -j auto docs build/site
	$(BIN)/matroot report $(REPORTED) --out $(CURDIR)/build/site/report.html
	@echo "build/site/index.html"

# Both sessions run, whichever fails: the kernels have one of their own, under Triton's interpreter. Bytecode is kept,
# or else each of their processes, and each that a test starts, compiles all files again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -q -rs
test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@status=0; \
	$(PYTEST) || status=1; \
	TRITON_INTERPRET=1 $(PYTEST) tests/interpreted || status=1; \
	exit $$status

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis

# The constraints pin versions. Where pip finds a torch for CPUs alone, by its own configuration, it is installed: tests need
# none of the CUDA packages that the ordinary one for Linux brings.
$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard src/matroot/backends/cpu/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable ".[bench,style,training,video]" --group dev
	@touch $@
