"""Clips of a study: labelled frames, which clips an update learns from, how they are cut and augmented."""
