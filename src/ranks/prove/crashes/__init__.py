"""Runs that are killed, stopped or damaged on purpose."""
