# Two commands on a fresh machine do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := supervisor context server

.PHONY: help setup demo test check tests format generate conformance inspect bundle bench soak clean

help:  ## What there is to make.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## Create .venv with the project and its tools, and see to a browser.

$(READY): pyproject.toml constraints.txt .ci/browser
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 setup"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "The venv module is missing. On Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@sh .ci/browser $(BIN)/python
	@touch $@

demo: setup  ## The main job on a real browser, each claim checked.
	$(BIN)/watchkeeper demo

test: check tests  ## Everything that is checked and tested.

check: setup  ## Lint, format, types, import contracts, drift of generated files, dependencies.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m watchkeeper.server.generate --check
	$(BIN)/python .ci/audit.py

tests: setup  ## All tests, those on a real browser included. What fails is run once more, and has to pass then.
	@$(BIN)/python -m pytest || { \
	  echo "Tests failed. Those alone once more: on a busy machine a real browser's first failure is no verdict."; \
	  $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; }

format: setup  ## Put the code into its form.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup  ## Write the files that are generated from tools and settings.
	$(BIN)/python -m watchkeeper.server.generate

conformance: setup  ## The conformance tests of MCP, both generations, against our HTTP stack. Needs npm.
	sh tests/conformance/run $(BIN)/watchkeeper

inspect: setup  ## The MCP Inspector's CLI against the server over stdio, HTTP and SSE. Needs npm.
	sh tests/inspector/run $(BIN)/watchkeeper

bundle: setup  ## The MCP bundle for Claude Desktop: packed, validated, unpacked, served. Needs npm and uv.
	sh tests/bundle/run $(BIN)/watchkeeper

package: setup  ## Wheel and sdist into dist/: built, checked, run. Uses twine, uvx and pipx where they are installed.
	.ci/package $(BIN)/python

audit: setup  ## Known vulnerabilities of the pinned dependencies, before a release. Needs the network.
	@test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && \
	  $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; }
	PATH="$(CURDIR)/$(VENV)/audit/bin:$$PATH" $(BIN)/python .ci/audit.py --complete

bench: setup  ## Measurements beside the peers that are installed, into bench/out. On a quiet machine; BENCH takes options.
	$(BIN)/python -m bench $(BENCH)

soak: setup  ## Mixed work in one server for SOAK_MINUTES (10), and whether anything grows.
	$(BIN)/python bench/soak.py

clean:  ## Remove what was made here, .venv included.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist node_modules
