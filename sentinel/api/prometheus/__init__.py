"""Prometheus's HTTP API over the embedded store: the same answers, from copies of its series."""
