"""One file for each topic: what is measured in a child process, and what is made of it."""
