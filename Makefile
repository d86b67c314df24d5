.DEFAULT_GOAL := dev
.PHONY: dev run test test-fast fuzz faults lint check bench bench-scale
VENV := .venv
PYTHON ?= python3
PIP := -m pip install --quiet --quiet --disable-pip-version-check

dev: $(VENV)/serve  ## the service on this machine, with demonstration data
	@$(VENV)/bin/python -m linkmgr.launch dev

run: $(VENV)/serve  ## the service as in production
	@$(VENV)/bin/python -m linkmgr.launch run

test: $(VENV)/test  ## every test
	@$(VENV)/bin/python -m pytest

test-fast: $(VENV)/test  ## every test that needs neither a whole service nor a browser, in under 90 seconds
	@$(VENV)/bin/python -m pytest -m "not slow and not browser"

fuzz: $(VENV)/test  ## schemathesis against the running service, for five minutes
	@$(VENV)/bin/python -m tests.fuzz.run 300

faults: $(VENV)/test  ## what is lost while what it stands on fails
	@$(VENV)/bin/python -m tests.faults

lint: $(VENV)/test  ## the linters
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/python -m mypy

check: lint test  ## what .ci/run asks for

bench: $(VENV)/serve  ## how fast it is, as a share of what the machine can do
	@$(VENV)/bin/python -m bench

bench-scale: $(VENV)/serve  ## how fast it stays with a million rows
	@$(VENV)/bin/python -m bench.scale

$(VENV)/serve: requirements.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here: apt-get install python3 python3-venv" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 11) or sys.exit("linkmgr needs Python 3.11 or later, and %s is %d.%d: run make PYTHON=python3.12 ..." % (sys.argv[1], *sys.version_info[:2]))' "$(PYTHON)"
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing what the service runs on, once ..."
	@test -x $(VENV)/bin/pip || "$(PYTHON)" -m venv $(VENV)
	@$(VENV)/bin/python $(PIP) -r requirements.txt
	@touch $@

$(VENV)/test: $(VENV)/serve tests/requirements.txt
	@echo "Installing what the tests run on, once ..."
	@$(VENV)/bin/python $(PIP) -r tests/requirements.txt
	@touch $@
