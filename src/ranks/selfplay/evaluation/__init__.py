"""Games of a net with other players, in rounds over all ranks."""
