"""The policy: its network, the market data that it reads, its preprocessing statistics, and backtests of it."""
