"""Forks `python -m ranks ...` from a process with torch, which saves the two seconds of its import.

    test process <- ready, once torch is imported --------- fork server
                 -- arguments, variables, descriptors ----> fork server -- fork --> middle -- fork --> command
                 <- process id ------------------------------------------------------------------------

tests/conftest.py puts `tests.forked.Popen` into `subprocess`, unless pytest gets `--executed`. Each test process starts
one fork server when it needs one. The server imports torch and those modules of `ranks` that every rank imports, and
runs nothing else, so that no command sees what a test or another command has left in memory. The command is a child of
the test process, with its own standard streams, folder, variables, process group and exit code; signals are real. In
the command, `Popen` of `subprocess` forks what starts `python -m ranks...` in turn, such as the launcher's own server.

What differs from an executed process: torch is in memory already, the command line in /proc is that of the server, and
the commands of one test process have the same hash seed. So these are executed: a script, `python -c ...` (the tests of
what a command imports), a command behind another program (`unshare`, `sh`), and one that changes a variable which
Python or a library reads at its start.
"""

from tests.forked.popen import FORKED_CODE, Popen

__all__ = ["FORKED_CODE", "Popen"]
