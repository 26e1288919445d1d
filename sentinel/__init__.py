"""Keeps vLLM serving. See docs/design.md for the map of rooms."""

__version__ = "0.1.0"
