"""The net: its batches, layers, losses, answers and exports."""
