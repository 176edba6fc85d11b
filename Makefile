# Two commands do everything: `make book` and `make test`.
#   PYTHON       the interpreter that makes .venv (3.11 or newer)
#   TORCH_INDEX  an extra package index for torch, for example PyTorch's CPU-only one
#   ARGS         more arguments for pytest, for example ARGS="tests/test_layout.py -x",
#                or for the experiments, for example ARGS="copy --fresh"
PYTHON ?= python3
TORCH_INDEX ?=
PORT ?= 8000
ARGS ?=

BIN := .venv/bin
SITE := _build/html
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: book serve lab test experiments clean
.DEFAULT_GOAL := book

# torch first: a package installed before it could pull another build of it
.venv/.book: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $$(grep -E '^torch==' requirements.txt)
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
	$(BIN)/jupyter-lab notebooks

test: .venv/.dev book
	$(BIN)/python tests/browser.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

experiments: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments $(ARGS)

clean:
	rm -rf _build
