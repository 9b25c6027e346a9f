"""Schemas from a registry as people run it."""
