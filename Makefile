# setup · demo · test · test-slow · check · bench · bench-peers · clean. Each sets up what it needs, again only when its inputs changed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready
TRL_VENV := .venv-trl
TRL_READY := $(TRL_VENV)/.ready

.PHONY: setup demo test test-slow check bench bench-peers clean

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
	$(RUN)/python bench/algorithms.py variance
	$(RUN)/python bench/algorithms.py cost --models tiny

bench-peers: $(READY) $(TRL_READY)
	$(RUN)/python bench/algorithms.py equality

# What TRL needs and we have too is of the same version, so that both sides compute with the same torch.
$(TRL_READY): requirements/tested.txt requirements/peers-trl.txt
	test -x $(TRL_VENV)/bin/python || $(PYTHON) -m venv $(TRL_VENV)
	$(TRL_VENV)/bin/python -m pip install --quiet --constraint requirements/tested.txt --requirement requirements/peers-trl.txt
	touch $(TRL_READY)

clean:
	rm -rf $(VENV) $(TRL_VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
