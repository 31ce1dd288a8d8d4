"""Data to another machine, and runs back from it: rsync over ssh, checked by sha256."""
