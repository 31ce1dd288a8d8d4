"""Flags: how a command line becomes settings, and the answers to wrong ones."""
