"""What a person sees of a run, drawn from the files that the run writes."""
