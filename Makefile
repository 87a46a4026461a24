# Every target makes the virtual environment it needs, and does nothing twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := constraints.txt
EXTRAS := all,dev,docs

.DEFAULT_GOAL := help
.PHONY: help java chromium kafka demo test test-long soak check docs package format bench bench-peers lock clean

help: ## Show what you can do here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java $(VENV)/.runtime ## Run a pipeline that scales itself, and draw what happened
	$(BIN)/elastream demo --out out/demo

test: java chromium kafka $(VENV)/.development ## Run the tests
	$(BIN)/pytest --numprocesses 2 --dist loadgroup

test-long: java kafka $(VENV)/.development ## Run the tests that take long, or need a cluster or a broker
	$(BIN)/pytest --dist loadgroup -m long

SECONDS ?= 600
soak: java $(VENV)/.development ## Run a pipeline with faults for ten minutes (SECONDS=...); see whether anything grows
	$(BIN)/python -m tests.chaos.soak --seconds $(SECONDS) --out out/soak

check: $(VENV)/.development docs ## Check format, lint, types, the direction of imports, and the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.development ## Build the documentation in out/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@! grep --recursive --extended-regexp '(src|<link[^>]*href)="https?://' out/site --include='*.html' \
	  || { echo "The site would fetch something from elsewhere: see above."; exit 1; }

package: java $(VENV)/.development ## Build wheel and sdist, install the wheel in a clean environment, and run an example
	$(BIN)/python scripts/check_package.py out/package

format: $(VENV)/.development ## Format the code and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: java chromium kafka $(VENV)/.development ## Run the benchmarks, each with its baseline
	$(BIN)/python -m benchmarks

bench-peers: java $(VENV)/.development ## Run the same functions on PyFlink and Bytewax, in separate environments
	$(BIN)/python -m benchmarks.peers

# The only target that looks for new versions: all others install those that were written down.
lock: ## Choose the newest versions that pyproject.toml allows, and record them and their licences
	rm -rf out/lock
	$(PYTHON) -m venv out/lock
	out/lock/bin/pip install --quiet '.[$(EXTRAS)]'
	out/lock/bin/pip freeze --exclude elastream > $(LOCKED)
	out/lock/bin/python scripts/licences.py > docs/licences.md
	rm -rf out/lock

java:
	@java -version 2>/dev/null || [ -n "$$JAVA_HOME" ] || { \
	  echo "Spark needs Java 17 or newer, and there is none."; \
	  echo "Install it, for instance: apt-get install openjdk-17-jre-headless"; exit 2; }

# The page is tested and measured in a browser; where there is none, the distribution's is installed.
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { $(AS_ROOT) apt-get update --quiet && $(AS_ROOT) apt-get install --yes --quiet chromium; } || { \
	  echo "The tests of the page need Chromium, and there is none."; \
	  echo "Install it, for instance: sudo apt-get install chromium"; exit 2; }

# Tests and benchmarks start a real Kafka broker. Where it cannot be had, its tests are skipped; in CI they fail.
KAFKA := .cache/kafka
SPARK_KAFKA := .cache/spark-kafka
kafka: $(KAFKA)/.collected $(SPARK_KAFKA)/.collected
$(KAFKA)/.collected: tests/support/kafka/pom.xml
$(SPARK_KAFKA)/.collected: tests/support/kafka/spark/pom.xml
$(KAFKA)/.collected $(SPARK_KAFKA)/.collected:
	@rm -rf $(@D)
	@{ command -v mvn >/dev/null \
	  || { $(AS_ROOT) apt-get update --quiet && $(AS_ROOT) apt-get install --yes --quiet maven; }; } \
	&& mvn --batch-mode --quiet --file $< dependency:copy-dependencies -DincludeScope=runtime \
	  -DoutputDirectory="$(CURDIR)/$(@D)" && touch $@ || { \
	  echo "Tests on Kafka need a broker from Maven's registry, and it could not be fetched."; \
	  echo "Install Maven, for instance: sudo apt-get install maven"; }

clean: ## Remove the environment and everything that was generated
	rm -rf $(VENV) out build dist .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "elastream needs Python 3.11 or newer, and '$(PYTHON)' is older or missing."; \
	  echo "Install one and name it: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml $(LOCKED) | $(VENV)/bin/python
	$(BIN)/pip install --quiet --constraint $(LOCKED) --editable '.[demo]'
	@touch $@

$(VENV)/.development: pyproject.toml $(LOCKED) | $(VENV)/bin/python
	$(BIN)/pip install --quiet --constraint $(LOCKED) --editable '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.runtime
