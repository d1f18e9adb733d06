# Bare `make` explains every target.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# `make test DATABASE_URL=postgresql://…` runs the suite against that server instead of the embedded one.
DATABASE_URL ?=
TESTS ?= tests
# The tests start hundreds of processes, and each would compile the whole program for itself.
test soak: export PYTHONDONTWRITEBYTECODE =
# So many tests run at once, each worker with a server of its own; `make test WORKERS=0` runs them in one process.
# One more than a small machine has cores: many tests wait for processes that start, or for a limit to be over. As each
# worker reads all tests and makes a server, more of them are for larger machines.
WORKERS ?= 3

.PHONY: help
help:  ## Show this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*?## "} {printf "  \033[1mmake %-10s\033[0m %s\n", $$1, $$2}'

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("voucherd needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing (the first time takes a minute) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# What only tests, checks and tools need. A machine that serves never installs it.
$(VENV)/.developed: requirements-dev.lock $(VENV)/.installed
	@echo "Installing what the tests need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-dev.lock
	@touch $@

# The fuzzer brings a web server and more along, so nobody has it who did not ask for it.
$(VENV)/.fuzzing: requirements-fuzz.lock $(VENV)/.developed
	@echo "Installing the fuzzer …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-fuzz.lock
	@touch $@

# What makes a Python client of the OpenAPI document, for one test. It asks for other versions than the program, so it has
# an environment of its own.
$(VENV)/.generating: requirements-generator.lock $(VENV)/.installed
	@echo "Installing the generator of clients …"
	@$(BIN)/python -m venv $(VENV)/generator
	@$(VENV)/generator/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-generator.lock
	@touch $@

# What the TypeScript client is compiled and tested with, and what makes another one of the OpenAPI document. The client
# itself needs nothing of it. Nothing of a package is run at installation. Node trusts whom the machine trusts.
TYPESCRIPT := clients/typescript
$(TYPESCRIPT)/node_modules/.installed: $(TYPESCRIPT)/package-lock.json packages
	@if ! command -v npm >/dev/null; then echo "Missing here: npm. The TypeScript client will not be tested." >&2; \
	elif [ ! -e $@ ] || [ $< -nt $@ ]; then \
	  echo "Installing what the TypeScript client is tested with …"; \
	  NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS-$(wildcard /etc/ssl/certs/ca-certificates.crt)}" \
	    npm ci --prefix $(TYPESCRIPT) --loglevel error --ignore-scripts --no-audit --no-fund >/dev/null && touch $@; fi

.PHONY: node-modules
node-modules: $(TYPESCRIPT)/node_modules/.installed

.PHONY: setup
setup: $(VENV)/.installed  ## Create .venv with all that the program needs, locked and hashed

.PHONY: develop
develop: $(VENV)/.developed  ## Add what tests and tools need

.PHONY: demo
demo: setup  ## Start the whole service with a demo shop and print a first order to try
	@$(BIN)/voucherd demo $(ARGS)

# `lean` holds packages that come without what Debian recommends beside them, such as a whole Docker.
.PHONY: packages
packages:
	@missing=; lean=; \
	{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || missing="$$missing chromium"; \
	command -v firefox-esr >/dev/null || command -v firefox >/dev/null || lean="$$lean firefox-esr"; \
	command -v php >/dev/null || missing="$$missing php-cli"; \
	command -v node >/dev/null || lean="$$lean nodejs"; \
	command -v npm >/dev/null || lean="$$lean npm"; \
	command -v curl >/dev/null || lean="$$lean curl"; \
	command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || lean="$$lean pgbouncer"; \
	command -v promtool >/dev/null || lean="$$lean prometheus"; \
	command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || lean="$$lean nginx-light"; \
	command -v caddy >/dev/null || lean="$$lean caddy"; \
	command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || lean="$$lean haproxy"; \
	command -v ip >/dev/null || [ -x /sbin/ip ] || lean="$$lean iproute2"; \
	command -v systemd-analyze >/dev/null || lean="$$lean systemd"; \
	{ docker compose version || command -v docker-compose; } >/dev/null 2>&1 || lean="$$lean docker-compose"; \
	if [ -n "$$missing$$lean" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing for the tests:$$missing$$lean …"; \
	    install() { apt-get install -y -qq $$missing && apt-get install -y -qq --no-install-recommends $$lean; }; \
	    (install || (apt-get update -qq && install)) >/dev/null; \
	  else echo "Missing here:$$missing$$lean. The tests that need it will be skipped." >&2; fi; fi

.PHONY: test
test: develop check packages node-modules $(VENV)/.generating  ## Linters, types, import rules and the whole suite (DATABASE_URL=… for another server)
	@VOUCHERD_TEST_DATABASE_URL='$(DATABASE_URL)' $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

.PHONY: steady
steady: develop  ## Run `make test` three times beside two busy loops: it is green however slow the machine is
	@MAKE='$(MAKE)' tools/steady.sh

.PHONY: check
check: develop  ## Only the static checks: ruff, mypy strict, import-linter, bandit
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@# mypy takes as long as all the others together, so they run beside it.
	@$(BIN)/mypy & types=$$!; \
	($(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache) \
	  && $(BIN)/bandit --quiet --configfile pyproject.toml --recursive src clients/python/src; others=$$?; \
	wait $$types && exit $$others

.PHONY: audit-deps
audit-deps: develop  ## Look for known flaws of the locked dependencies (needs the network, and says so)
	@$(BIN)/python tools/audit_deps.py

.PHONY: bench
bench: setup  ## Measure against pgbench on the same server, and write bench/RESULTS.md
	@$(BIN)/python -m bench

.PHONY: bench-quick
bench-quick: setup  ## Whether sales are as fast as they were: two ratios and the processor time of an order, in 90 s
	@$(BIN)/python -m bench.quick

# A trio of servers and clocks that can be set, for the long runs only.
.PHONY: soak-packages
soak-packages:
	@missing=; \
	command -v patroni >/dev/null || missing="$$missing patroni"; \
	command -v etcd >/dev/null || missing="$$missing etcd-server"; \
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$$missing postgresql"; \
	ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || missing="$$missing faketime"; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing for the long runs:$$missing …"; \
	    (apt-get install -y -qq $$missing || (apt-get update -qq && apt-get install -y -qq $$missing)) >/dev/null; \
	  else echo "Missing here:$$missing. The runs that need it will be skipped." >&2; fi; fi

.PHONY: soak
soak: develop soak-packages  ## The long runs: kill -9 storms, the whole fault matrix, failovers, races (docs/proof.md)
	@VOUCHERD_TEST_DATABASE_URL='$(DATABASE_URL)' $(BIN)/python -m pytest -m soak --timeout 3600 $(TESTS)

# SECONDS is a variable of bash, too, but not one that make hands on.
SECONDS ?= 60
.PHONY: fuzz
fuzz: $(VENV)/.fuzzing  ## Drive all that reads strangers' bytes by coverage, and fail on what breaks (SECONDS=600 …)
	@$(BIN)/python -m tools.fuzz $(SECONDS) --workers $(WORKERS)

.PHONY: schema
schema: develop  ## Write schema.sql anew after a migration was added
	@$(BIN)/python -m tools.schema

.PHONY: texts
texts: develop  ## Write the list of all texts of pages and letters anew, and bring the catalogues up to it
	@$(BIN)/python -m tools.texts

.PHONY: dump
dump: develop  ## Write the dump of this release's database, on which later migrations are tested
	@$(BIN)/python -m tests.release.dump

.PHONY: mutate
mutate: develop  ## Break the rules about money one small change at a time, and see that a test notices (MODULES=money …)
	@$(BIN)/python -m tools.mutate $(MODULES)

.PHONY: wheel
wheel: setup  ## Build the wheel into dist/: what a machine installs that has no checkout
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

.PHONY: client-types
client-types: develop  ## Write the types of the TypeScript client anew after the API has changed
	@$(BIN)/python -m tools.typescript

.PHONY: client-typescript
client-typescript: node-modules  ## Pack the TypeScript client into dist/, as npm installs it
	@mkdir -p dist && cd $(TYPESCRIPT) && npm pack --silent --pack-destination ../../dist

.PHONY: client-python
client-python: setup  ## Build the wheel of the Python client into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist clients/python

.PHONY: image
image: wheel  ## Build the container image with buildah, from Debian's packages and the wheel
	@{ command -v buildah && command -v mmdebstrap; } >/dev/null || [ "$$(id -u)" != 0 ] \
	  || apt-get install -y -qq --no-install-recommends buildah mmdebstrap >/dev/null
	@deploy/container/build.sh

.PHONY: lock
lock: setup  ## Resolve the dependencies anew into the five files of locks, and those of the TypeScript client
	@$(BIN)/python -m pip install --quiet uv
	@compile="$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml"; \
	setup="--extra install --extra embedded"; \
	$$compile --upgrade $$setup --output-file requirements.lock \
	  && $$compile --upgrade --constraint requirements.lock --output-file requirements-production.lock \
	  && $$compile --upgrade $$setup --extra dev --extra traces --extra archive --constraint requirements.lock --output-file requirements-dev.lock \
	  && $$compile --upgrade $$setup --extra dev --extra traces --extra archive --extra fuzz --constraint requirements-dev.lock \
	    --output-file requirements-fuzz.lock \
	  && $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --upgrade \
	    --group generator --output-file requirements-generator.lock
	@npm install --prefix $(TYPESCRIPT) --silent --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

.PHONY: clean
clean:  ## Remove the environment and caches (the demo's data in .voucherd stays)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build $(TYPESCRIPT)/node_modules $(TYPESCRIPT)/dist
