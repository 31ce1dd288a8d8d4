"""The machine: what it has, whether it is fit for training, what GPUs are known."""
