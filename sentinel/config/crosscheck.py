"""Names that one section uses and another defines.

These are looked up in the tree and not in finished settings, so that a misspelt receiver is
told in the same breath as a misspelt key.
"""

from collections.abc import Iterator

from sentinel.config.document import Entries, Items, Node, Scalar
from sentinel.config.fault import Fault, quoted
from sentinel.config.routing import LOG
from sentinel.config.section import Loc

Found = tuple[Loc, Scalar]


def crosscheck(root: Entries) -> list[Fault]:
    receivers = list(_texts(root, ("receivers", "*", "name")))
    intervals = [
        *_texts(root, ("time_intervals", "*", "name")),
        *_texts(root, ("mute_time_intervals", "*", "name")),
    ]
    return [
        *_twice(receivers, "receiver"),
        *_twice(intervals, "time interval"),
        *_unknown(_uses_of_receivers(root), receivers, "receiver", (LOG,)),
        *_unknown(_uses_of_intervals(root), intervals, "time interval", ()),
        *_in_two_pools(root),
        *_root_route(root),
    ]


def _uses_of_receivers(root: Entries) -> Iterator[Found]:
    for at, route in _routes(root):
        yield from _texts(route, ("receiver",), at)
    yield from _texts(root, ("schedule", "digest", "receiver"))
    yield from _texts(root, ("global", "fallback_receiver"))


def _uses_of_intervals(root: Entries) -> Iterator[Found]:
    for at, route in _routes(root):
        for key in ("mute_time_intervals", "active_time_intervals"):
            yield from _texts(route, (key, "*"), at)
    yield from _texts(root, ("maintenance", "*", "time_interval"))


def _routes(root: Entries) -> Iterator[tuple[Loc, Node]]:
    waiting: list[tuple[Loc, Node]] = [(("route",), root.values["route"])] if _has(root) else []
    while waiting:
        at, route = waiting.pop(0)
        yield at, route
        waiting += _nodes(route, ("routes", "*"), at)


def _has(root: Entries) -> bool:
    return "route" in root.values


def _twice(found: list[Found], what: str) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for at, scalar in found:
        if scalar.text in seen:
            says = f"a second {what} {quoted(scalar.text)}, the first in line {seen[scalar.text]}"
            yield scalar.place.fault(at, says, "each name once")
        seen.setdefault(scalar.text, scalar.place.line)


def _unknown(
    uses: Iterator[Found], found: list[Found], what: str, always: tuple[str, ...]
) -> Iterator[Fault]:
    known = {scalar.text for _, scalar in found} | set(always)
    for at, scalar in uses:
        if scalar.text not in known:
            allowed = ", ".join(sorted(known)) or f"the name of a {what}; there is none"
            yield scalar.place.fault(at, f"no {what} {quoted(scalar.text)}", allowed)


def _in_two_pools(root: Entries) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    pools = root.values.get("pools")
    for name in pools.keys if isinstance(pools, Entries) else ():
        for at, scalar in _texts(root, ("pools", name, "targets", "*")):
            other = seen.setdefault(scalar.text, name)
            if other != name and not set(scalar.text) & set("*?["):
                says = f"{quoted(scalar.text)} is also in pool {quoted(other)}"
                yield scalar.place.fault(at, says, "each target in one pool")


def _root_route(root: Entries) -> Iterator[Fault]:
    """The root takes every alert at any time, or some would be told to nobody."""
    route = root.values.get("route")
    if not isinstance(route, Entries):
        return
    for key in ("matchers", "match", "match_re", "mute_time_intervals", "active_time_intervals"):
        value = route.values.get(key)
        if value is not None and value.size > 1:
            place = route.keys[key]
            yield place.fault(("route", key), "the root route takes every alert", "routes below it")


def _texts(node: Node, way: tuple[str, ...], at: Loc = ()) -> Iterator[Found]:
    for there, found in _nodes(node, way, at):
        if isinstance(found, Scalar) and not found.is_null:
            yield there, found


def _nodes(node: Node, way: tuple[str, ...], at: Loc = ()) -> Iterator[tuple[Loc, Node]]:
    """What lies at the end of `way`; `*` is each item of a list."""
    if not way:
        yield at, node
    elif way[0] == "*":
        for index, item in enumerate(node.items if isinstance(node, Items) else ()):
            yield from _nodes(item, way[1:], (*at, index))
    elif isinstance(node, Entries) and way[0] in node.values:
        yield from _nodes(node.values[way[0]], way[1:], (*at, way[0]))
