"""What Sentinel has resolved to do.

An intent is journalled before anything is touched. After a crash it is the journal,
not memory, that says what may already have happened.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Mode(StrEnum):
    """How far Sentinel may go by itself, strictest first."""

    WATCH = "watch"
    APPROVE = "approve"
    ACT = "act"


def strictest(*modes: Mode | None) -> Mode:
    """The strictest of those that are set."""
    order = list(Mode)
    return min((mode for mode in modes if mode is not None), key=order.index, default=Mode.WATCH)


class Action(StrEnum):
    RESTART = "restart"
    LOWER_MAX_NUM_SEQS = "lower_max_num_seqs"
    RESTORE = "restore"
    STOP_LOOP = "stop_loop"
    SHIFT_TRAFFIC = "shift_traffic"
    PAGE = "page"


_ANEW = ("create", "stop", "start")

STEPS: dict[Action, tuple[str, ...]] = {
    Action.RESTART: ("stop", "start"),
    Action.LOWER_MAX_NUM_SEQS: _ANEW,
    Action.RESTORE: _ANEW,
    Action.STOP_LOOP: ("stop",),
}
"""The steps of each action, in order. An action without an entry is not built yet."""


class Outcome(StrEnum):
    VERIFIED = "verified"
    FAILED = "failed"
    REFUSED = "refused"
    ROLLED_BACK = "rolled_back"
    REJECTED = "rejected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    position: int
    name: str
    started_at: datetime | None = None
    done_at: datetime | None = None
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A decided step that is not in the journal yet.

    `container_id` and `saw_started_at` are the world it was decided in; acting on any
    other is refused.
    """

    target: str
    action: Action
    mode: Mode
    because: str
    by: str
    container_id: str
    saw_started_at: datetime
    incident: int | None = None
    cause: str = ""  # what it is to cure, if that is known
    remedy: str = ""  # the one that asked for it
    limit: int | None = None  # the --max-num-seqs it is to run with
    restores: bool = False  # it is to have the limit again that its owner gave it
    forced: tuple[str, ...] = ()  # guards that a person has overridden
    within: timedelta | None = None  # how soon its effect must be seen, if that was said

    @property
    def is_made_anew(self) -> bool:
        """Its container is replaced by another, and not only started again."""
        return self.restores or self.action is Action.LOWER_MAX_NUM_SEQS

    @property
    def steps(self) -> tuple[str, ...]:
        return _ANEW if self.is_made_anew else STEPS[self.action]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A wish in the journal: proposed (waits for a person), reserved (being done) or closed."""

    number: int
    wish: Wish
    steps: tuple[Step, ...] = ()
    proposed_at: datetime | None = None
    expires_at: datetime | None = None
    reserved_at: datetime | None = None
    verify_by: datetime | None = None
    closed_at: datetime | None = None
    outcome: Outcome | None = None
    closed_because: str = ""

    @property
    def id(self) -> str:
        return f"n-{self.number:06d}"

    @property
    def is_reserved(self) -> bool:
        return self.reserved_at is not None and self.closed_at is None

    @property
    def next_step(self) -> Step | None:
        """The first step not known to be done; None when only the proof is missing."""
        return next((step for step in self.steps if step.done_at is None), None)

    @property
    def has_begun(self) -> bool:
        """Whether something may have been done to the world: what was begun is finished."""
        return any(step.started_at is not None for step in self.steps)


def intent_number(text: str) -> int | None:
    """The number in `n-000012` (or plain `12`); None if it is neither."""
    digits = text.removeprefix("n-")
    return int(digits) if digits.isascii() and digits.isdigit() else None
