# Every target installs what it needs into .venv, or into an environment of its own below .venvs; a second run installs
# nothing unless pyproject.toml or a constraint file changed.

# The first interpreter that runs and is new enough. Choose another one with PYTHON=...
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' \
		2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CHECKED := $(wildcard src tests tools examples benchmarks)
# One worker per core. A worker takes whole files: fixtures of a module are made once.
PARALLEL := -n auto --dist loadfile
PYTEST_ARGS ?=
DATA ?=
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check lint faults bench bench-aio bench-floors bench-jsonl bench-postgres bench-quality bench-speed bench-working docs dist constraints clean

help: ## lists these commands, as make alone does
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { sub("%", "NAME", $$1); printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## installs the runtime only and runs the example
	$(BIN)/python examples/demo.py

test: lint ## make lint, then all tests; PYTEST_ARGS="-k filters" narrows it
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

# A heavy third party has an environment of its own: CONTRIBUTING.md says how one is added. No conftest.py of the other
# tests is loaded, since those need what .venv has.
test-%: .venvs/%/.installed ## the tests in tests/environments/NAME, in their environment
	.venvs/$*/bin/python -m pytest --confcutdir=tests/environments/$* tests/environments/$* $(PYTEST_ARGS)

# For the minutes between two edits: no slow tests, and few examples of each property.
check: lint ## make lint, then the unit tests without the slow ones: for quick feedback
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest $(PARALLEL) -m "not slow" tests/unit $(PYTEST_ARGS)
	@wc -l $$(find src -name '*.py') | awk '$$1 > 500 && $$2 != "total" \
		{ print "remark: " $$2 " has " $$1 " lines: has it more than one role?" }'

lint: $(VENV)/.dev ## ruff, mypy and import-linter
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy --strict $(CHECKED)
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## what the core costs over bare SQLite
	$(BIN)/python benchmarks/core.py

bench-aio: $(VENV)/.dev ## what the async facade costs
	$(BIN)/python benchmarks/aio.py

# DATA, if given, is the folder with LongMemEval, which one floor is about.
bench-floors: $(VENV)/.dev ## every floor that the sources of the requirements name; fails if one is missed
	$(BIN)/python benchmarks/floors.py $(DATA) $(BENCH_ARGS)

bench-jsonl: $(VENV)/.dev ## what the store in plain files costs
	$(BIN)/python benchmarks/jsonl.py $(BENCH_ARGS)

bench-postgres: $(VENV)/.dev ## what the store on PostgreSQL costs
	$(BIN)/python benchmarks/postgres.py $(BENCH_ARGS)

# Every kind of memory; DATA, if given, is the folder with LoCoMo and LongMemEval: see docs/benchmarks.md. BENCH_ARGS
# goes to the command.
bench-quality: $(VENV)/.dev ## how well it finds
	$(BIN)/python benchmarks/quality.py $(DATA) $(BENCH_ARGS)

bench-speed: $(VENV)/.dev ## how fast it finds, beside other libraries
	$(BIN)/python benchmarks/speed.py $(BENCH_ARGS)

bench-working: $(VENV)/.dev ## what the handle of an agent costs
	$(BIN)/python benchmarks/working.py

faults: $(VENV)/.dev ## the fault tests at full length: kills, I/O errors, full disks
	$(BIN)/python -m pytest tests/contract/faults --long $(PYTEST_ARGS)

docs: .venvs/docs/.installed ## builds the site of the documentation in build/docs/site
	.venvs/docs/bin/python -m tools.site

# Newest versions that fit pyproject.toml on all supported Pythons and systems, with the hashes of
# every file of each release. The last line refuses a result that names a host or a path.
COMPILE := $(BIN)/uv pip compile pyproject.toml --group build --universal --python-version 3.11 \
	--fork-strategy fewest --upgrade --generate-hashes --no-annotate --no-header --quiet \
	--no-emit-index-url --no-emit-find-links
ENVIRONMENTS := $(basename $(notdir $(wildcard environments/*.in)))
constraints: $(BIN)/python ## pins the newest versions that fit pyproject.toml and environments
	$(PIP) install --quiet --upgrade uv
	$(COMPILE) --extra dev --output-file constraints.txt
	$(COMPILE) --constraint constraints.txt --output-file constraints-runtime.txt
	set -e; for name in $(ENVIRONMENTS); do \
		$(COMPILE) --group environment environments/$$name.in --output-file environments/$$name.txt; done
	@! grep -nE '://|(^|[[:space:]=@])/|^-' constraints.txt constraints-runtime.txt environments/*.txt

dist: $(VENV)/.runtime ## builds the wheel, and runs the example with it in an empty environment
	$(BIN)/python tools/dist.py

clean: ## removes .venv, .venvs, what was built, and caches
	rm -rf $(VENV) .venvs build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 to 3.14 is needed: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# pip checks hashes only where every requirement has one, which a local folder cannot have. So the
# pinned files come first, build backend included, and the package follows without dependencies.
$(VENV)/.runtime: pyproject.toml constraints-runtime.txt | $(BIN)/python
	$(PIP) install --quiet --require-hashes -r constraints-runtime.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --require-hashes -r constraints.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	touch $@ $(VENV)/.runtime

.PRECIOUS: .venvs/%/.installed
.venvs/%/.installed: environments/%.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv .venvs/$*
	.venvs/$*/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r $<
	.venvs/$*/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .
	touch $@
