"""The chess core: rules, notation, players, rating."""
