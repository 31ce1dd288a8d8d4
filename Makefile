# make demo: a first look, in about five minutes.   make test: every check.   Both need Python 3.11+, git and make.
PYTHON ?= python3
NEEDS := pyproject.toml constraints.txt tools/environment.py

.PHONY: demo test

demo: .venv/demo.stamp
	@.venv/bin/python -m ranks demo

test: .venv/test.stamp
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright --pythonpath .venv/bin/python --threads 2
	.venv/bin/python -m pytest

.venv/demo.stamp .venv/test.stamp: .venv/%.stamp: $(NEEDS)
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) here: install Python 3.11+, or name one: make $* PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) tools/environment.py $*
	@touch $@
