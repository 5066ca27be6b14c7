# The two commands of this repository are `make figures` and `make test`. Each first makes the
# virtual environment, which takes a minute or two once and nothing afterwards.

PYTHON ?= python3
VENV ?= .venv
LOCKS ?= envs
TORCH ?=
ARGS ?=
RESULTS ?= results

# Recipes take paths from their environment: names with spaces and quotes stay whole.
export VENV LOCKS RESULTS
export VIRTUAL_ENV = $(if $(filter /%,$(VENV)),,$(CURDIR)/)$(VENV)
INSIDE = PATH="$$VIRTUAL_ENV/bin:$$PATH"
# In the order of files: by the number of tests, the longest test would come last and alone.
TESTS = $(INSIDE) pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder
.DEFAULT_GOAL := help
.PHONY: help env figures gallery resume why prune archive test test-system test-all config docs lock audit

help: ## this list
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  TORCH=cpu|cuda  the build of torch, where it should not be the one that pip finds'
	@echo '  PYTHON=python3  the Python (3.11 to 3.13) that a new environment is made with'
	@echo '  VENV=.venv      where the environment lies'
	@echo '  RESULTS=results the folder of results that resume, prune and archive look at'
	@echo '  ARGS="..."      more arguments for snakemake (figures, resume) or pytest (tests)'
	@echo
	@echo '  One figure: . .venv/bin/activate'
	@echo '              snakemake --cores all -- fig4'

env: ## the virtual environment, from the hash-locked list
	@command -v $(PYTHON) > /dev/null || { \
	  echo 'make env: no $(PYTHON) here; install Python 3.11 to 3.13' \
	    '(Debian: apt-get install python3 python3-venv)' >&2; exit 1; }
	@$(PYTHON) envs/install.py "$$VENV" "$$LOCKS" $(TORCH)

figures: env ## every figure of the default configuration (minutes)
	$(INSIDE) snakemake --cores all $(ARGS)

# Copies of what the demo with config/seeds.yaml shows, for docs/results.md; docs/gallery/runs.csv has each picture's commit.
gallery: env ## pictures, tables and claims of the demo to docs/gallery, then docs/results.md
	@$(INSIDE) PYTHONPATH=workflow/src:workflow python workflow/schemas/results.py "$$RESULTS"
	@$(MAKE) --no-print-directory config

resume: env ## go on after kill -9 or a power cut, unless something still runs
	@$(INSIDE) PYTHONPATH=workflow/src python -m manybody.io.running "$$RESULTS" $(ARGS)
	$(INSIDE) snakemake --cores 1 --unlock $(ARGS)
	$(INSIDE) snakemake --cores all $(ARGS)

why: env ## what would run, in groups, and what has changed since it last ran
	@$(INSIDE) PYTHONPATH=workflow/src python workflow/why.py $(ARGS)

prune: env ## what the store holds that no figure uses now; ARGS=--remove removes it
	@$(INSIDE) PYTHONPATH=workflow/src python -m manybody.io.store "$$RESULTS" $(ARGS)

archive: env ## what runs found as one file for a DOI; ARGS="results/order ..." adds runs
	@$(INSIDE) PYTHONPATH=workflow/src python workflow/archive.py build/manybody-results.zip "$$RESULTS" $(ARGS)

test: env ## format, lint and the quick tests (3 minutes)
	$(check)
	$(TESTS) --part everyday -m 'not slow' $(ARGS)

test-system: env ## the tests that `make test` leaves out, but the slow ones (20 minutes)
	$(TESTS) --part system -m 'not slow' $(ARGS)

test-all: env ## format, lint and all tests, with the slow ones (hours)
	$(check)
	$(TESTS) $(ARGS)

config: env ## the editors' schema, docs/config.md and docs/results.md anew
	$(INSIDE) PYTHONPATH=workflow/src:workflow python workflow/schemas/document.py

# Installed once, from a package index; then nothing is fetched, and no notebook is executed.
docs: env ## the documentation, to build/docs/index.html; links out of it are listed
	@cmp -s "$$LOCKS/docs.txt" "$$VENV/docs/docs.txt" || { rm -rf "$$VENV/docs" && \
	  "$$VENV/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps \
	    --require-hashes --only-binary :all: --target "$$VENV/docs" -r "$$LOCKS/docs.txt" && \
	  cp "$$LOCKS/docs.txt" "$$VENV/docs"; }
	@rm -rf build/docs
	@$(INSIDE) PYTHONPATH="$$VENV/docs:docs:workflow/src" \
	  python -m sphinx -q -E -W --keep-going -n -d build/doctrees docs build/docs
	@grep -rhoE --include='*.html' 'href="https?://[^"]*' build/docs | cut -c7- | sort -u

lock: env ## the locks, conda environments and Dockerfile anew, from envs/requirements.in
	$(INSIDE) python envs/lock.py
	PATH="$(CURDIR)/envs:$$VIRTUAL_ENV/bin:$$PATH" snakemake --containerize > Dockerfile

# Needs a package index for the two tools, which get an environment of their own, and pypi.org for
# what is known to be vulnerable; versions are the same in both locks.
audit: env ## licences and known vulnerabilities of the locked packages
	$(INSIDE) python -m venv "$$VENV/audit"
	"$$VENV/audit/bin/pip" install --quiet pip-audit pip-licenses
	"$$VENV/audit/bin/pip-licenses" --python="$$VENV/bin/python" --order=license
	sed 's/===/==/' envs/requirements-cuda.txt > "$$VENV/audit/requirements.txt"
	"$$VENV/audit/bin/pip-audit" --no-deps --disable-pip -r "$$VENV/audit/requirements.txt"

define check
$(INSIDE) ruff check
$(INSIDE) ruff format --check
$(INSIDE) PYTHONPATH=workflow/src lint-imports --no-cache
$(INSIDE) snakefmt --check Snakefile workflow
$(INSIDE) mypy
$(INSIDE) snakemake --lint
endef
