# make demo: a first look, in about five minutes.   make test: every check.   Both need Python 3.11+, git and make.
PYTHON ?= python3
NEEDS := pyproject.toml constraints.txt tools/environment.py

.PHONY: demo test pytest checks

demo: .venv/demo.stamp
	@.venv/bin/python -m ranks demo

test: .venv/test.stamp
	@$(MAKE) --no-print-directory -j2 pytest checks

pytest:
	.venv/bin/python -m pytest
	.venv/bin/python -m pytest -n 0 tests/cuda  # on a GPU if there is one; all other tests run on the CPU

checks:  # at the same time as the tests, which leave a sixth of two cores idle
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m pyright --pythonpath .venv/bin/python

.venv/demo.stamp .venv/test.stamp: .venv/%.stamp: $(NEEDS)
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) here: install Python 3.11+, or name one: make $* PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) tools/environment.py $*
	@touch $@
