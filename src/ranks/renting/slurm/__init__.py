"""Slurm: what the cluster says of itself, and the sbatch file."""
