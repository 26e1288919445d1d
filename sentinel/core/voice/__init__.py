"""Turns the facts of a notice into words. One function, one value: `say` → `Said`."""
