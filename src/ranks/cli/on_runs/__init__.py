"""Commands on runs that exist: list, logs, stop, compare, report."""
