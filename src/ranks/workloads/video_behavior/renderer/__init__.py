"""The built-in bottom-view mouse: rendered videos with annotations, to test and to try the workload."""
