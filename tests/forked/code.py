"""`python -m tests.forked.code CODE ARGUMENTS...` is `python -c CODE ARGUMENTS...` that a test process forks."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    code = compile(sys.argv[1], "<string>", "exec")
    sys.argv[:2] = ["-c"]
    exec(code)
