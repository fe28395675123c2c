# Two commands: `make demo` and `make test`. Each sets up what it needs: a virtual environment here, a broker in a cache.
PYTHON := .venv/bin/python
# As root, where no Docker engine answers, the tests start one of their own for as long as they run.
export DELAYCTL_START_DOCKER ?= 1
# Tests mostly wait for brokers: four processes, each with brokers of its own, whatever the number of cores.
SPLIT := -n 4
# Compile once: where the environment forbids to keep that, every process of the tests would do it again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: alerts compiled docs everywhere reference ladder switches insertions redrive pictures spark help demo test prepared faults spark-standalone million lint types conformance conformance-rocketmq bench bench-perftest clean

help:           ## Show what there is.
	@grep -E '^[a-z-]+: *.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 16

demo: .venv/demo  ## Watch a delayed message on a real RabbitMQ.
	@$(PYTHON) -m testbed run -- $(PYTHON) -m examples.demo

test: .venv/ready  ## Lint, types and every test, on real brokers.
	@$(MAKE) --no-print-directory --jobs 3 lint types prepared
	$(PYTHON) -m pytest $(SPLIT)

prepared: .venv/ready
	$(PYTHON) -m testbed prepare

faults: .venv/ready  ## The fault tests at length: each broker is killed 20 times.
	$(PYTHON) -m testbed prepare
	DELAYCTL_FAULTS_KILLS=20 $(PYTHON) -m pytest tests/faults

switches: .venv/ready  ## 100 changes of delay queues under load, and 20 kills, on both brokers.
	$(PYTHON) -m testbed prepare
	DELAYCTL_SWITCHES=100 DELAYCTL_SWITCH_KILLS=20 $(PYTHON) -m pytest tests/faults/test_switch.py

insertions: .venv/ready  ## Delays put into live ways and taken out again under load, 50 times, on both brokers.
	$(PYTHON) -m testbed prepare
	DELAYCTL_INSERTIONS=50 $(PYTHON) -m pytest tests/integration/test_insertion.py

ladder: .venv/ready  ## 2,000 random delays through a ladder, on both brokers: how late.
	$(PYTHON) -m testbed prepare
	DELAYCTL_LADDER_MESSAGES=2000 $(PYTHON) -m pytest tests/integration/test_ladder.py -k own_delay

redrive: .venv/ready  ## 100,000 parked messages are redriven, killed twice.
	$(PYTHON) -m testbed prepare
	DELAYCTL_REDRIVE_MESSAGES=100000 $(PYTHON) -m pytest tests/faults/test_redrive_killed.py

alerts: .venv/ready  ## Check and play the alert rules with Prometheus' promtool.
	$(PYTHON) -m pytest tests/unit/test_observability.py tests/testbed/test_testbed_promtool.py

pictures: .venv/ready  ## Draw the pictures of the documentation anew.
	$(PYTHON) -m examples.pictures

reference: .venv/ready  ## Write the reference of the documentation anew, from the code.
	$(PYTHON) -m examples.reference

docs: .venv/ready  ## Build the documentation as a site: build/site/index.html.
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict

spark-standalone: .venv/ready  ## The jobs on Spark workers, on a standalone cluster of a master and two workers.
	$(PYTHON) -m testbed run -- $(PYTHON) -m testbed spark -- $(PYTHON) -m pytest -m spark_cluster

everywhere: .venv/ready  ## Every test on both brokers, those too that `make test` runs on one alone.
	$(PYTHON) -m testbed prepare
	DELAYCTL_EVERYWHERE=1 $(PYTHON) -m pytest $(SPLIT)

spark: .venv/ready  ## All tests of Spark, on both brokers.
	$(PYTHON) -m testbed prepare
	DELAYCTL_EVERYWHERE=1 $(PYTHON) -m pytest $(SPLIT) tests/unit/spark tests/integration/test_spark_*.py tests/integration/test_backfill*.py tests/integration/test_audit.py tests/faults/test_spark_*.py

million: .venv/ready  ## A million rows by Spark through a broker to a consumer: ledger, broker and record have to agree.
	$(PYTHON) -m testbed prepare
	DELAYCTL_BACKFILL_ROWS=$${DELAYCTL_BACKFILL_ROWS:-1000000} $(PYTHON) -m pytest -s tests/integration/test_spark_account.py

lint: .venv/ready  ## Check style and format.
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/ready  ## Check types.
	scripts/typecheck

conformance: .venv/ready  ## Hold explain and the models against real brokers, 500 generated networks on each.
	$(PYTHON) -m testbed prepare
	DELAYCTL_EXAMPLES=$${DELAYCTL_EXAMPLES:-500} $(PYTHON) -m pytest tests/conformance

conformance-rocketmq: .venv/ready  ## The suite on a real RocketMQ 4.9 and 5.3; needs Java and Maven. RECORD=1 keeps the traces.
	$(PYTHON) -m testbed.rocketmq_jars
	DELAYCTL_ROCKETMQ=$(if $(RECORD),record,play) $(PYTHON) -m pytest tests/conformance -k rocketmq

compiled: .venv/ready  ## The simulated RabbitMQ as C, and its tests on that; needs a C compiler.
	scripts/compile
	DELAYCTL_COMPILED=1 PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/compiled $(PYTHON) -m pytest tests/unit/simulator

bench: .venv/bench  ## Measure, side by side, and write benchmarks/RESULTS.md; what `make compiled` built, too.
	$(PYTHON) -m benchmarks $(BENCH)

bench-perftest: .venv/bench  ## The same beside RabbitMQ's PerfTest; needs Java and Maven.
	$(PYTHON) -m benchmarks --only perftest $(BENCH)

clean:          ## Remove what was built here.
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml scripts/setup
	scripts/setup

# Delayctl, and what finds a broker; without what only the tests need.
.venv/demo: pyproject.toml scripts/setup
	scripts/setup demo

.venv/bench: .venv/ready
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@
