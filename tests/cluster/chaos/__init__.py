"""Chaos of a cluster: `python -m tests.cluster.chaos`, the checks of `tests/chaos` on many hosts."""
