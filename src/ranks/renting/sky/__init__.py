"""SkyPilot: what its catalogue and its package say of a cloud, and the task file."""
