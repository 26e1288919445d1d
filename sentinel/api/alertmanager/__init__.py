"""Alertmanager's HTTP API v2, so that amtool, Grafana, Karma and Prometheus work unchanged."""
