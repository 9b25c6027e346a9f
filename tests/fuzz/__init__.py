"""Input that nobody meant."""
