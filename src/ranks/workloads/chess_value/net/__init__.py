"""The value nets, their losses, and the way from float weights to the engine's integers."""
