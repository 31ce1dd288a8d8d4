"""`python -m ranks ...` as a new process that is forked from one with torch, which saves the two seconds of its import.

    from tests.forked import Popen, run

    test process <- ready, once torch is imported --------- fork server
                 -- arguments, variables, descriptors ----> fork server -- fork --> middle -- fork --> command
                 <- process id ------------------------------------------------------------------------

Each test process starts one fork server when it needs one. The server imports torch and those modules of `ranks` that
every rank imports, and runs nothing else, so that no command sees what a test or another command has left in memory.
The command is a child of the test process, with its own standard streams, folder, variables, process group and exit
code; it gets real signals. `Popen` and `run` take the arguments of those in `subprocess`. In the command, `Popen` of
`subprocess` forks what starts `python -m ranks...` in turn, such as the server of the launcher (`command.py`).

What differs from an executed process: torch is in memory already, /proc shows the command line and the variables of
the server, and commands of one test process have the same hash seed. So these stay executed: tests of what a command
imports, of processes that are found by their variables (`ranks prove`), and of closed streams. A command that changes a
variable which Python or a library reads at its start is executed too.
"""

from tests.forked.popen import Popen, run

__all__ = ["Popen", "run"]
