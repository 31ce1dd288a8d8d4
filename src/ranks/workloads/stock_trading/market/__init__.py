"""Trading by the rules of a market: accounts, episodes, benchmarks and what is measured of them. No net."""
