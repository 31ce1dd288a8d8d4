"""Layers that the nets of several workloads share, and their Triton kernels."""
