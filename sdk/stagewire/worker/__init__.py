"""The host of a worker, and what executors are written against. For workers only."""
