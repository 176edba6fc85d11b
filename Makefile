# Two commands do everything: `make book` and `make test`. `make report` prints the book's numbers.
#   PYTHON       the interpreter that makes .venv (3.11 or newer)
#   TORCH_INDEX  an extra package index for torch, for example PyTorch's CPU-only one
#   ARGS         more arguments for pytest, for example ARGS="tests/package/test_layout.py -x", for
#                make bench or make report; ARGS="copy --fresh" for make experiments
PYTHON ?= python3
TORCH_INDEX ?=
PORT ?= 8000
ARGS ?=

BIN := .venv/bin
SITE := _build/html
# --no-compile: what is never imported need not be compiled
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: book serve lab test test-package bench experiments report links constraints clean
.DEFAULT_GOAL := book

# torch first: a package installed before it could pull another build of it; alone, because its
# index need not have the versions of what it needs that constraints.txt names
.venv/.book: requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --no-deps $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $$(grep -E '^torch==' requirements.txt)
	$(PIP) -r requirements.txt
	touch $@

.venv/.dev: .venv/.book requirements-dev.txt
	$(PIP) -r requirements-dev.txt
	touch $@

book: .venv/.book
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo
	@echo "The book is in $(SITE). Read it: make serve, or open $(CURDIR)/$(SITE)/index.html"

serve: book
	@echo "http://localhost:$(PORT)/  (Ctrl-C ends it)"
	@$(BIN)/python -m http.server $(PORT) --bind localhost --directory $(SITE)

lab: .venv/.book
	$(BIN)/jupyter-lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

test: .venv/.dev book
	$(BIN)/python tests/tools/browser.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/node node_modules/@biomejs/biome/bin/biome ci --error-on-warnings
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)
	$(if $(ARGS),,JUPYTERLAB=1 $(BIN)/python -m pytest tests/site/test_jupyterlab.py)

bench: .venv/.dev
	$(BIN)/python -m benchmarks $(ARGS)

report: .venv/.dev book
	$(BIN)/python -m tests.tools.report $(ARGS)

# the package and the notebooks' rules, without the book and without a browser
test-package: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal --ignore=tests/site $(ARGS)

# asks other hosts whether the book's links still lead somewhere
links: book
	$(BIN)/jupyter-book build . --builder linkcheck

# freezes what this .venv has: see CONTRIBUTING.md
constraints: .venv/.dev
	$(BIN)/python -m tests.tools.constraints

experiments: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments $(ARGS)

clean:
	rm -rf _build
