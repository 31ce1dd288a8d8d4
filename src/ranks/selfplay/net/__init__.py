"""How positions become a net's input, and batches of them its answers."""
