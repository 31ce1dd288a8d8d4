"""Policies that come with the package: `ActorCritic`, and LSTMs over sequences with episode
starts."""
