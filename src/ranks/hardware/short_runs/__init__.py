"""Short runs of a workload in a temporary folder, with a record of the collectives that a rank calls."""
