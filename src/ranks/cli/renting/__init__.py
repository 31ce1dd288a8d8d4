"""Commands that take a run to another machine and back."""
