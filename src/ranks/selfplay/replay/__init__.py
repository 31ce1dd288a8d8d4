"""The replay window and its parts."""
