"""The tables of `ranks prove table stock-trading`: reference values, and markets whose optimal policy is known."""
