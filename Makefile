# Every target says what it does; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup check generate test demo bench bench-before bench-worker bench-backlog bench-flow bench-soak bench-workflows bench-steps bench-live bench-artifacts bench-studio bench-rivals mutants lock system-packages

BIN := .venv/bin
STAMP := .venv/.stamp
# More workers than cores: tests mostly wait for the two servers.
TEST_PROCESSES ?= 6
TEST_ARGS ?=
MUTANTS_ARGS ?=
BEFORE ?=
BENCH_ARGS ?=

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the locked tools and the package; quick when nothing changed

$(STAMP): pyproject.toml profiles/pyproject.toml requirements-dev.lock tools/make_venv.sh
	@tools/make_venv.sh .venv
	@touch $@

check: setup ## Format, lint, types, layers, SQL lint, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.sql_lint
	$(BIN)/python -m tools.generate --check

generate: setup ## Write the generated files: catalogue, reference, requirements, register and diagram
	$(BIN)/python -m tools.generate

test: setup system-packages check ## Everything in check, then all tests, those of SQL on PostgreSQL 15 and 18
	$(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal $(TEST_ARGS)

demo: setup ## See the product at work for a quarter of a minute, on an embedded server
	$(BIN)/trunkline demo

bench: setup ## Compare the engine with plain SQL; the last line is one JSON object
	$(BIN)/python -m bench

bench-before: setup ## Compare the speed of another commit with this one: BEFORE=commit, about twelve minutes
	@test -n "$(BEFORE)" || { echo "Name the commit to compare with: make bench-before BEFORE=main" >&2; exit 2; }
	$(BIN)/python -m bench speed --before "$(BEFORE)" $(BENCH_ARGS)

bench-worker: setup ## Compare a worker and single enqueues with PgQueuer on the same server
	$(BIN)/python -m bench worker

bench-flow: setup ## What limits cost, and what a provider sees of eight workers under one: twenty minutes
	$(BIN)/python -m bench flow

bench-backlog: setup ## How long operators wait for views and commands while millions of jobs do: ten minutes
	$(BIN)/python -m bench backlog

bench-soak: setup ## Ten minutes of constant arrival, clean and under what makes queues slow
	$(BIN)/python -m bench soak

bench-workflows: setup ## Workflows of 10,000 jobs, and the lock that their ends share: two minutes
	$(BIN)/python -m bench workflows

bench-steps: setup ## What recorded steps cost, and workflows of ten steps beside DBOS
	$(BIN)/python -m bench steps

bench-live: setup ## How late changes reach clients of the API, and what open streams take: one minute
	$(BIN)/python -m bench live

bench-artifacts: setup ## Uploads of 2 GB to a folder, archives of 1,000 files, and their memory
	$(BIN)/python -m bench artifacts

bench-studio: setup ## The planning table of profile studio with measured figures
	$(BIN)/python -m bench.studio

bench-rivals: setup ## Compare all queues side by side, half an hour: table, bench/results/rivals.json and chart
	$(BIN)/python -m bench rivals

mutants: setup ## Break the sources one small way at a time and report what the tests notice: MUTANTS_ARGS="--seed 1"
	$(BIN)/python -m tools.mutants $(MUTANTS_ARGS)

lock: setup ## Renew requirements-dev.lock from pyproject.toml and profiles/pyproject.toml
	$(BIN)/uv pip compile pyproject.toml profiles/pyproject.toml --extra dev --extra clinical --extra executor --extra exports --extra studio \
	  --no-emit-package trunkline --universal --generate-hashes --no-header -o requirements-dev.lock

system-packages: ## Install, or name, the Debian packages that the tests need
	@tools/system_packages.sh
