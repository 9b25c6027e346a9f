"""Servers as a platform has them: three brokers, a Redis pair, Spark's cluster, TLS and ACLs (`make test-cluster`)."""
