"""Servers as a platform has them: brokers, a Redis pair, Spark, TLS, ACLs, cut links (`make test-cluster`)."""
