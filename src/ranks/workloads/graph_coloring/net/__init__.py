"""The network: batches, layers, losses, decoding, search and export."""
