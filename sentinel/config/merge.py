"""One configuration out of several files.

Maps merge, lists append, and a value that two files give is a fault that names both places:
which file would win is never a matter of its name.
"""

from sentinel.config.document import Entries, Items, Node, Scalar
from sentinel.config.fault import Fault
from sentinel.config.section import Loc


def merge(first: Entries, second: Entries, at: Loc = ()) -> tuple[Entries, list[Fault]]:
    """Both together, and what they disagree about. Neither is changed."""
    made = Entries(first.place, dict(first.keys), dict(first.values))
    faults: list[Fault] = []
    for key, value in second.values.items():
        there = made.values.get(key)
        if there is None or _is_null(there):
            made.put(key, second.keys[key], value)
        elif not _is_null(value):
            both, found = _both(there, value, (*at, key))
            made.put(key, made.keys[key], both)
            faults += found
    return made, faults


def _both(first: Node, second: Node, at: Loc) -> tuple[Node, list[Fault]]:
    if isinstance(first, Entries) and isinstance(second, Entries):
        return merge(first, second, at)
    if isinstance(first, Items) and isinstance(second, Items):
        return Items(first.place, first.items + second.items), []
    there = first.place
    says = f"is set in two files, also at {there.file}:{there.line}:{there.column}"
    return first, [second.place.fault(at, says, "one of the two")]


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null
