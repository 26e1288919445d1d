"""Recreating a container with exactly one argument different.

`arguments` says which argument and edits it, `fit` to what, `preflight` why not, `spec` how the
new container is asked for, `differences` what came out otherwise, and `transaction` in which
order, from any point at which it may have been left.
"""
