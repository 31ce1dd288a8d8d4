"""From a graph to the best colouring within a time: the pipeline and its commands."""
