"""One rank as a process: how it is started, watched, ended with all its children, and never outlives its launcher."""
