"""What `ranks prove table stock-trading` shows: reference values, and markets whose best policy is known."""
