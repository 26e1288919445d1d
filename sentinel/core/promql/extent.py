"""What an expression reads: which metrics, and how far back.

The store keeps only these names and this much of the past, so an extent that is too small
makes a rule quietly wrong. `@` with a fixed time reads a past nobody can promise to keep.
"""

from dataclasses import dataclass

from sentinel.core.promql.nodes import Node, Range, Selector, Subquery, children


@dataclass(frozen=True, slots=True)
class Extent:
    names: frozenset[str]
    nameless: bool  # some selector has no fixed name
    reach_ms: int


def extent_of(node: Node, lookback_ms: int) -> Extent:
    match node:
        case Selector():
            names = frozenset() if node.name is None else frozenset({node.name})
            return Extent(names, node.name is None, lookback_ms + max(node.when.offset_ms, 0))
        case Range():
            inner = extent_of(node.selector, lookback_ms)
            return Extent(inner.names, inner.nameless, inner.reach_ms + node.range_ms)
        case Subquery():
            inner = extent_of(node.inner, lookback_ms)
            further = node.range_ms + max(node.when.offset_ms, 0)
            return Extent(inner.names, inner.nameless, inner.reach_ms + further)
    parts = [extent_of(child, lookback_ms) for child in children(node)]
    return Extent(
        frozenset().union(*(part.names for part in parts)),
        any(part.nameless for part in parts),
        max((part.reach_ms for part in parts), default=0),
    )
