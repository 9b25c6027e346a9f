# Each target works by itself in a fresh clone; what is there already is not made again.
# Needed: Python 3.11 or newer and Java 17 or 21. Another Python: make setup PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin

# Tests start some hundred Python processes. Without bytecode on disk, each of them compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-cluster check docs bench fuzz chaos chaos-cluster chaos-planted lock clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile

setup: .venv/.packages .venv/.jars .venv/.classes  ## make .venv (with .venv/bin/cq), fetch the jars, prepare Java

.venv/.packages: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("cq needs Python 3.11 or newer: make setup PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.jars: .venv/.packages gateway/local/kafka.lock gateway/local/spark.lock
	$(BIN)/python -m gateway.local.jars
	@touch $@

.venv/.classes: .venv/.jars spark_jobs/runtime/driver/class_archive.py gateway/local/kafka_classes.py
	$(BIN)/python -m gateway.local.kafka_classes
	CQ_EVALUATOR_JARS="$$($(BIN)/python -m gateway.local.jars spark.lock)" $(BIN)/python -m spark_jobs.runtime.driver.class_archive 2> .venv/classes.log
	@touch $@

demo: setup  ## the whole thing on generated quotes, about two minutes
	$(BIN)/cq demo

test: setup  ## the tests, on real Kafka, Valkey and Spark
	$(BIN)/python -m pytest --numprocesses 4 --no-loadscope-reorder --ignore tests/cluster

test-cluster: setup  ## three brokers, a Redis pair, a Spark cluster, TLS, ACLs, links that are cut; about fifteen minutes
	$(BIN)/python -m pytest tests/cluster

check: setup  ## lint, format, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup  ## the documentation, into site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: setup  ## the benchmarks with small sizes; tables and charts go to build/bench
	$(BIN)/python -m tests.benchmarks --out build/bench

fuzz: setup  ## a hundred thousand broken inputs and as many records, half an hour
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.fuzz.records

chaos: setup  ## half an hour in which everything breaks, again and again
	$(BIN)/python -m tests.chaos --minutes 30 --out bench-results

chaos-cluster: setup  ## fifty faults of a cluster: brokers, Redis, Spark, gateways and links; an hour
	$(BIN)/python -m tests.cluster.chaos --faults 50 --out bench-results

chaos-planted: setup  ## shows that chaos finds faults: five that are planted
	$(BIN)/python -m tests.chaos --planted

LOCK := $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-header --no-annotate --quiet

lock: setup  ## renew the lock files within the bounds of pyproject.toml
	$(LOCK) --all-extras --upgrade --output-file requirements.lock
	$(LOCK) --extra server --extra traces --constraints requirements.lock --output-file docker/requirements.lock

clean:  ## remove what the targets made; data folders and the per-user jar cache stay
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis site
	find gateway grouping schemas spark_jobs tests -name __pycache__ -type d -prune -exec rm -rf {} +
