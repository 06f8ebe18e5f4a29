# Each target sets itself up in .venv from a bare Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: prove prove-all test bench lint clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("fpsmt needs Python 3.11 or newer, not %d.%d" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $(STAMP)

prove: $(STAMP)
	$(RUN)/fpsmt prove

prove-all: $(STAMP)
	$(RUN)/fpsmt prove --all --timeout 3600

test: $(STAMP) lint
	$(RUN)/pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/mypy

bench: $(STAMP)
	$(RUN)/python -m benchmarks

clean:
	rm -rf $(VENV) build *.egg-info fpsmt-results
