"""The commands of `ranks`, one file each."""
