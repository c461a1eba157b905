# Everything headway needs is installed into .venv by the first command that needs it.

PYTHON    ?= python3
WORKERS   ?= 4
DEMO_ARGS ?=
TEST_ARGS ?=
CHAOS_ARGS ?=
SOAK_ARGS ?=
BENCH_ARGS ?=
PAIRS_ARGS ?= HEAD
MUTANTS_ARGS ?=

EXTRAS    := postgres,dev
INSTALLED := .venv/installed-in

# A test run starts hundreds of processes: none of them should compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-pooled test-lowest check chaos mutants soak bench bench-full bench-pairs .venv

help:
	@echo 'make demo    watch a small ETL run             DEMO_ARGS="--for 20" ends it after 20 seconds'
	@echo 'make test    run the tests of the gate, on SQLite and PostgreSQL   TEST_ARGS="-k capacity" picks some'
	@echo 'make test-all   run every test: long ones, brokers, browsers, more examples of each property'
	@echo 'make test-lowest   the tests of commands, pages and rules on the lowest versions of all requirements'
	@echo 'make test-pooled   the same tests of store and actors through PgBouncer (Debian: pgbouncer)'
	@echo 'make check   format, lint, import layers, types'
	@echo 'make chaos   kill, stop and restart everything for five minutes     CHAOS_ARGS="--seed 7"'
	@echo 'make mutants   plant faults in a copy and see that tests fail    MUTANTS_ARGS="-n 2 --room store"'
	@echo 'make soak    run processes for five minutes and see that nothing grows   SOAK_ARGS="--minutes 60"'
	@echo 'make bench   headway beside its peers, a quarter of an hour  BENCH_ARGS="--only drain,latency" picks parts'
	@echo 'make bench-full   the same with a million manifests and an aged database, in an hour'
	@echo 'make bench-pairs   two commits in pairs, ratio and spread   PAIRS_ARGS="HEAD~1 HEAD --only drain"'
	@echo 'make .venv   install only              PYTHON=python3.12 picks the interpreter for a new .venv'
	@echo 'The command is then .venv/bin/headway; after ". .venv/bin/activate" it is headway.'

demo: $(INSTALLED)
	@.venv/bin/headway demo $(DEMO_ARGS)

test: $(INSTALLED)
	@.venv/bin/python -m pytest -n $(WORKERS) --dist worksteal $(TEST_ARGS)

test-all: $(INSTALLED)
	@.venv/bin/python -m pytest --all -n $(WORKERS) --dist worksteal $(TEST_ARGS)

POOLED := tests/store tests/manager tests/dispatcher tests/runner

test-pooled: export HEADWAY_TEST_PGBOUNCER = 1
test-pooled: $(INSTALLED)
	@.venv/bin/python -m pytest -n $(WORKERS) --dist worksteal $(or $(TEST_ARGS),$(POOLED) -m postgresql)

# Old libraries warn of what newer ones have changed: there, warnings are no failures.
LOWEST := tests/domain tests/cli tests/telemetry tests/web tests/test_testing.py

test-lowest: .venv-lowest/installed
	@.venv-lowest/bin/python -m pytest -W default -n $(WORKERS) --dist worksteal \
	  $(or $(TEST_ARGS),$(LOWEST) -m 'not postgresql and not long')

.venv-lowest/installed: pyproject.toml
	@$(PYTHON) -m venv --clear .venv-lowest
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	@.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python \
	  --resolution lowest-direct -e '.[$(EXTRAS)]'
	@touch $@

check: $(INSTALLED)
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/lint-imports
	.venv/bin/mypy

chaos: $(INSTALLED)
	@.venv/bin/headway torture $(CHAOS_ARGS)

mutants: $(INSTALLED)
	@.venv/bin/python -m tools.mutants $(MUTANTS_ARGS)

soak: $(INSTALLED)
	@.venv/bin/python -m benchmarks.soak $(SOAK_ARGS)

bench: $(INSTALLED)
	@.venv/bin/python -m benchmarks.comparison $(BENCH_ARGS)

bench-full: $(INSTALLED)
	@.venv/bin/python -m benchmarks.comparison --full $(BENCH_ARGS)

bench-pairs: $(INSTALLED)
	@.venv/bin/python -m benchmarks.pairs $(PAIRS_ARGS)

.venv: $(INSTALLED)
	@:

# The file is written last and names the checkout: an installation that was interrupted, was moved
# or has lost its interpreter is made anew. One that is only out of date is brought up to date.
INTACT := $(shell test "$$(cat $(INSTALLED) 2>&1)" = "$(CURDIR)" && .venv/bin/python -c 'print("yes")')
ifneq ($(INTACT),yes)
.PHONY: $(INSTALLED)
endif

PIP_INSTALL = .venv/bin/python -m pip install --disable-pip-version-check -c constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "headway needs Python 3.11 or newer, but $(PYTHON) is not ($$($(PYTHON) --version 2>&1)):" \
	    "install one (Debian: apt install python3 python3-venv) or name one (make PYTHON=python3.12 ...)." >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "headway needs Python's venv module with pip, and $(PYTHON) has none:" \
	    "install it (Debian: apt install python3-venv)." >&2; \
	  exit 1; }
	@echo "installing headway into .venv (about a minute, once) …"
	@test "$(INTACT)" = yes || $(PYTHON) -m venv --clear .venv
	@rm -f $@
	@{ $(PIP_INSTALL) hatchling editables && $(PIP_INSTALL) --no-build-isolation -e '.[$(EXTRAS)]'; } \
	  >.venv/install.log 2>&1 || { \
	  tail -n 20 .venv/install.log >&2; \
	  echo "headway was not installed: pip's last words are above, all of them in .venv/install.log." >&2; \
	  exit 1; }
	@echo "$(CURDIR)" >$@
