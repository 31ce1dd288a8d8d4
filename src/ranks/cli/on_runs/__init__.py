"""Commands on runs that exist: list, watch, logs, compare, report, stop."""
