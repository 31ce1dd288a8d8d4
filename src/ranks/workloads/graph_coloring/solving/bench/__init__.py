"""The command `bench`: compare solvers on the graphs of a folder."""
