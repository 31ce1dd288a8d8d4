"""What a run will take and cost, from a short profile of one rank and the time of collectives."""
