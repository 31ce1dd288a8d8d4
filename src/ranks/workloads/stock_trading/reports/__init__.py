"""What is told of a trained policy: backtests, books, tear sheets."""
