"""What each rank uses: its GPU, its CPU time and memory, sampled by the launcher."""
