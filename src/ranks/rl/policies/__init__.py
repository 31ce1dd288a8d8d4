"""Policies that come with the package: `ActorCritic`, and LSTMs over whole sequences."""
