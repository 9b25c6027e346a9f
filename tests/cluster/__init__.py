"""Servers in numbers: three brokers, a pair of Redis servers, a Spark cluster; `make test-cluster` runs these."""
