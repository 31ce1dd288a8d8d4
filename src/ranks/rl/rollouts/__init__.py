"""Rollouts, the statistics of their advantages, and their minibatches."""
