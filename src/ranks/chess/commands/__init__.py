"""The commands of `ranks chess`, a file each."""
