"""Modal: its GPUs, and the app file."""
