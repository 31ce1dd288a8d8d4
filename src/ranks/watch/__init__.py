"""What a user sees of a run while it trains: console view and TensorBoard, drawn from the files of the run."""
