"""The simulated market: accounts, orders, fills, episodes, baseline strategies and performance metrics. No network."""
