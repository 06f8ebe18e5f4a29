# Each target sets itself up in .venv from a bare Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready-to-prove
TESTABLE := $(VENV)/.ready-to-test
PIP = $(RUN)/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: prove prove-all test bench docs lint clean

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("fpsmt needs Python 3.11 or newer, not %d.%d: make PYTHON=…" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "Installing fpsmt and the solvers into $(VENV): a minute or two, once." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) '.[solvers]'
	@touch $@

$(TESTABLE): $(READY)
	@echo "Installing the tools for tests into $(VENV): a minute or two, once." >&2
	@$(PIP) '.[test]'
	@touch $@

prove: $(READY)
	@$(RUN)/fpsmt prove

prove-all: $(READY)
	@$(RUN)/fpsmt prove --all --timeout 3600

test: $(TESTABLE) lint
	$(RUN)/pytest -n 2 --dist worksteal

lint: $(TESTABLE)
	$(RUN)/ruff check .
	$(RUN)/mypy

bench: $(READY)
	@$(RUN)/python -m benchmarks $(NAME)

# what commands print in README.md and docs/, and the page of rules: read the difference afterwards
docs: $(TESTABLE)
	@$(RUN)/python -m tests.docs.refresh

clean:
	rm -rf $(VENV) build *.egg-info fpsmt-results
