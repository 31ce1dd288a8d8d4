"""Proofs that a number of colours is impossible."""
