"""The networks: (2+1)D and depthwise 3-D convolutions, and the origin's."""
