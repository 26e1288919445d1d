"""What making a target's container anew would change, asked of the engine before it is decided.

Looking takes time, so it has a lane of its own: who asks gets an answer now or in a later
turn. What was found holds for one launch, and for a while.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.model.errors import SentinelError, Transient
from sentinel.core.policy.change import Change, Wanted, change_of
from sentinel.core.recreate.fit import Load
from sentinel.core.recreate.port import ContainerRecreation, Described
from sentinel.ports import Clock
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.recreation import lowered_by
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

_HOLDS_FOR = 30.0  # seconds
_AGAIN = 5.0  # after a failure
_LOOKING = 60.0

LoadOf = Callable[[Target, datetime], Load]
Told = Callable[[Change | SentinelError], None]


@dataclass(slots=True, kw_only=True)
class _Found:
    key: object
    wanted: Wanted
    tick: float
    change: Change | None  # None: the engine did not say


class Prospects:
    def __init__(
        self,
        eyes: ContainerRecreation,
        clock: Clock,
        memory: Memory,
        inbox: Inbox,
        lane: Lane,
        load_of: LoadOf,
    ) -> None:
        self._eyes, self._clock, self._memory = eyes, clock, memory
        self._inbox, self._lane, self._load_of = inbox, lane, load_of
        self._found: dict[str, _Found] = {}
        self._asked: list[tuple[Target, Wanted, Told]] = []

    def of(self, target: Target, wanted: Wanted) -> Change | None:
        """What is known by now. None: it has been asked for, and a turn follows."""
        found = self._found.get(target.name)
        if found is not None and (found.key, found.wanted) != (target.key, wanted):
            found = None
        holds_for = _AGAIN if found is not None and found.change is None else _HOLDS_FOR
        is_old = found is None or self._clock.monotonic() - found.tick > holds_for
        if is_old and not any(asked[0].name == target.name for asked in self._asked):
            self.ask(target, wanted, lambda _found: None)
        return found.change if found is not None else None

    def known(self, target: Target) -> Change | None:
        """What was last found of this launch, whatever was wanted. Asks nothing."""
        found = self._found.get(target.name)
        return found.change if found is not None and found.key == target.key else None

    def failed(self, target: Target) -> bool:
        """Whether it was asked, and the engine did not say."""
        found = self._found.get(target.name)
        return found is not None and found.key == target.key and found.change is None

    def ask(self, target: Target, wanted: Wanted, told: Told) -> None:
        self._asked.append((target, wanted, told))
        if len(self._asked) == 1:
            self._look()

    def _look(self) -> None:
        target, _, _ = self._asked[0]
        container_id = target.container.id
        self._lane.submit(
            lambda: self._eyes.describe(container_id),
            now=self._clock.monotonic(),
            deadline=_LOOKING,
            deliver=lambda answer: self._inbox.put(lambda: self._answered(answer)),
        )

    def _answered(self, answer: LaneAnswer[Described]) -> None:
        target, wanted, told = self._asked.pop(0)
        found: Change | SentinelError
        if answer.value is not None:
            lowered = lowered_by(self._memory.journal.last_made_anew(target.name))
            load = self._load_of(target, self._clock.now())
            found = change_of(answer.value, wanted, load, lowered)
        elif isinstance(answer.error, SentinelError):
            found = answer.error
        else:
            found = Transient(f"it could not be described: {answer.error!r}")
        self._found[target.name] = _Found(
            key=target.key,
            wanted=wanted,
            tick=self._clock.monotonic(),
            change=found if isinstance(found, Change) else None,
        )
        if self._asked:
            self._look()
        told(found)
