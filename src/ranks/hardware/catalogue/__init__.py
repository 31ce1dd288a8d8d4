"""Published facts of GPUs, as data files with source and date."""
