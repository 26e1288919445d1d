"""What recreating asks of the container engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sentinel.core.recreate.deeds import Deed, Seen
from sentinel.core.recreate.inspected import Raw
from sentinel.core.recreate.plan import Plan
from sentinel.core.recreate.preflight import Surroundings
from sentinel.core.recreate.spec import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A container as it is, and what making it again depends on."""

    source: Source
    around: Surroundings


class ContainerRecreation(Protocol):
    """Makes containers anew. Every method raises `Transient` when the engine does not answer."""

    def describe(self, container_id: str) -> Described:
        """Raises `Permanent` if there is none of that id."""
        ...

    def look(self, plan: Plan) -> Sequence[Seen]:
        """The containers that have to do with `plan`: by id, by label, by name."""
        ...

    def raw(self, container_id: str) -> Raw | None:
        """All that the engine says of it, secrets among it; None if there is none of that id."""
        ...

    def do(self, deed: Deed) -> None:
        """Safe to repeat. Raises `Permanent` if it can never be done, `Transient` if the engine
        refused, and `Ambiguous` if the answer never came: another look settles both.
        """
        ...
