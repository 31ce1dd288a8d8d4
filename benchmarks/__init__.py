"""Commands that make the figures of the README and of docs/: `python -m benchmarks.engine.overhead`."""
