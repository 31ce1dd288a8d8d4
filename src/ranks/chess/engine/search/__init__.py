"""The search of the engine: alpha-beta with iterative deepening, node by node."""
