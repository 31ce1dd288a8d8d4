"""`python -m ranks` is `ranks`."""

from ranks.cli.main import entry

if __name__ == "__main__":
    entry()
