# Two commands: `make demo` and `make test`. Each sets up what it needs: a virtual environment here, a broker in a cache.
PYTHON := .venv/bin/python
# As root, where no Docker engine answers, the tests start one of their own for as long as they run.
export DELAYCTL_START_DOCKER ?= 1

.PHONY: help demo test lint types conformance bench bench-perftest clean

help:           ## Show what there is.
	@grep -E '^[a-z-]+: *.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 16

demo: .venv/ready  ## Watch a delayed message on a real RabbitMQ.
	@$(PYTHON) -m testbed run -- $(PYTHON) -m examples.demo

test: .venv/ready lint types  ## Lint, types and every test, on real brokers.
	$(PYTHON) -m testbed prepare
	$(PYTHON) -m pytest

faults: .venv/ready  ## The fault tests at length: each broker is killed 20 times.
	$(PYTHON) -m testbed prepare
	DELAYCTL_FAULTS_KILLS=20 $(PYTHON) -m pytest tests/faults

lint: .venv/ready  ## Check style and format.
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/ready  ## Check types.
	scripts/typecheck

conformance: .venv/ready  ## Hold explain against real brokers, 500 generated networks on each.
	$(PYTHON) -m testbed prepare
	DELAYCTL_EXAMPLES=$${DELAYCTL_EXAMPLES:-500} $(PYTHON) -m pytest tests/conformance

bench: .venv/bench  ## Measure, side by side, and write benchmarks/RESULTS.md.
	$(PYTHON) -m benchmarks $(BENCH)

bench-perftest: .venv/bench  ## The same beside RabbitMQ's PerfTest; needs Java and Maven.
	$(PYTHON) -m benchmarks --only perftest $(BENCH)

clean:          ## Remove what was built here.
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml scripts/setup
	scripts/setup

.venv/bench: .venv/ready
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@
