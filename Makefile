# setup · demo · test · test-slow · check · bench · clean. Each sets up what it needs, again only when its inputs changed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test test-slow check bench clean

setup: $(READY)

$(READY): pyproject.toml requirements/tested.txt
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --upgrade pip
	$(RUN)/python -m pip install --quiet --constraint requirements/tested.txt --editable ".[dev]"
	touch $(READY)

demo: $(READY)
	$(RUN)/earned demo

test: $(READY)
	$(RUN)/python -m pytest -m "not slow"

test-slow: $(READY)
	$(RUN)/python -m pytest -m slow

check: $(READY)
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/pyright

bench: $(READY)
	$(RUN)/python bench/records.py
	$(RUN)/python bench/rewards.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
