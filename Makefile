# Two commands to begin with: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup check lint fix test fast demo e2e fuzz soak bench docs lock clean

help: ## what can be made
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## the environment: dependencies by lock, Sentinel itself editable

$(STAMP): requirements/dev.lock pyproject.toml deploy/setup.sh
	PYTHON="$(PYTHON)" deploy/setup.sh "$(VENV)"
	touch $@

check: lint fast ## format, lint, types, contracts, spelling, fast tests: what must be green to commit

lint: setup ## all of that but the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/deptry sentinel

fast: setup ## the fast tests alone
	$(BIN)/python -m pytest -n 2 -q -m "not docker and not e2e and not slow"

fix: setup ## put format and what lint can mend right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/codespell -w

test: setup ## everything but the real vLLM: also real Docker
	deploy/packages.sh test
	$(BIN)/python -m pytest -q -m "not docker and not e2e" -n 2
	status=0; $(BIN)/python -m pytest -n 2 -q -m "docker and not e2e" || status=$$?; \
	$(BIN)/python deploy/second_engine.py stop; \
	$(BIN)/python deploy/testbed.py stop-engine; exit $$status

demo: setup ## two vLLM containers in real Docker; one dies; watch Sentinel see, tell, restart, prove
	$(BIN)/python deploy/demo.py

e2e: setup ## the same story with a real vLLM on the CPU, or on the GPU where one is installed
	status=0; $(BIN)/python -m pytest -q -m "e2e" --timeout 1200 || status=$$?; \
	$(BIN)/python deploy/testbed.py stop-engine; exit $$status

fuzz: setup ## a minute of fuzzing: exposition text, expressions, rule files, snapshots, logs, answers
	$(BIN)/python -m tests.fuzz 60

soak: setup ## half an hour of heavy load on a real vLLM, and no false word of a fault: MINUTES=30
	$(BIN)/python -m tests.soak $(or $(MINUTES),30)

bench: setup ## figures: tables and JSON under tests/bench/
	$(BIN)/python -m tests.bench

docs: setup ## write what is generated: the manual of the configuration and the sample
	$(BIN)/python -m sentinel.config.reference

lock: setup ## pin dependencies anew, with hashes and without an index address
	deploy/lock.sh "$(BIN)"

clean: ## remove the environment and caches
	rm -rf "$(VENV)" .e2e .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
