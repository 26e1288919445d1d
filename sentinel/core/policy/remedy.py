"""Which remedy a firing alert asks for, and which rung of its ladder comes next.

A rung that was carried out and failed is not tried again in the same incident; the ladder
ends with a person. What is known of the cause chooses among remedies, and takes out rungs
that cannot cure it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.model.intent import Action, Intent, Mode, Outcome
from sentinel.core.model.labels import Matcher
from sentinel.core.recreate.fit import CURED

_SPENT = frozenset({Outcome.FAILED, Outcome.ROLLED_BACK, Outcome.REJECTED, Outcome.EXPIRED})
_IMPLIED = {"VllmPreemptionStorm": "preemption_storm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a ladder, with what was set for it (`drain`, `to`, `floor`, …)."""

    action: Action
    mode: Mode | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def wait(self) -> timedelta | None:
        """How long the alert must go on after the rung before."""
        return _span(self.settings.get("wait"))

    @property
    def deadline(self) -> timedelta | None:
        """How soon its effect must be seen."""
        return _span(self.settings.get("deadline"))

    @property
    def to(self) -> int | None:
        """The limit that is wanted; None: as low as it takes."""
        to = self.settings.get("to")
        return to if isinstance(to, int) else None

    @property
    def floor(self) -> int:
        floor = self.settings.get("floor")
        return floor if isinstance(floor, int) else 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    match: tuple[Matcher, ...]
    ladder: tuple[Rung, ...]
    mode: Mode | None = None
    causes: frozenset[str] = frozenset()  # only for these; empty: for any, known or not
    name: str = ""
    shipped: bool = False

    def matches(self, labels: Mapping[str, str], cause: str = "") -> bool:
        if self.causes and cause not in self.causes:
            return False
        return all(matcher.matches(labels.get(matcher.name, "")) for matcher in self.match)

    @property
    def title(self) -> str:
        return self.name or ", ".join(str(matcher) for matcher in self.match)


def _of(alertnames: str, *ladder: Rung, name: str, causes: frozenset[str] = frozenset()) -> Remedy:
    match = (Matcher(name="alertname", op="=~", value=alertnames),)
    return Remedy(match=match, ladder=ladder, name=name, causes=causes, shipped=True)


_RESTART = Rung(action=Action.RESTART)
_MAY_RESTART = Rung(action=Action.RESTART, mode=Mode.APPROVE)
_MAY_LOWER = Rung(action=Action.LOWER_MAX_NUM_SEQS, mode=Mode.APPROVE)
_MAY_STOP = Rung(action=Action.STOP_LOOP, mode=Mode.APPROVE)
_PAGE = Rung(action=Action.PAGE)

SHIPPED: tuple[Remedy, ...] = (
    _of(
        "VllmContainerExited|VllmStartupFailed|VllmCrashLoop",
        _MAY_LOWER,
        _PAGE,
        name="start-needs-lower-limit",
        causes=frozenset({"cuda_oom_sampler_warmup", "mamba_cache_too_small"}),
    ),
    _of("VllmCrashLoop", _MAY_STOP, _PAGE, name="crash-loop"),
    _of("VllmContainerExited", _RESTART, _PAGE, name="unexpected-exit"),
    _of("VllmEngineHung", _RESTART, _PAGE, name="hang"),
    _of("VllmAdmissionStalled|VllmDecodeStalled", _MAY_RESTART, _PAGE, name="stall"),
    _of("VllmPreemptionStorm", _MAY_LOWER, _PAGE, name="preemption-storm"),
    _of("VllmOOM", _MAY_LOWER, name="repeated-oom", causes=frozenset({"cuda_oom_runtime"})),
    _of(
        "VllmDown|VllmProbeFailing|VllmStartupFailed|VllmQueueTimeHigh"
        "|VllmErrorRateHigh|PoolEmpty|GPUXid|GPULost|GPUDriverHung|DockerUnreachable"
        "|SentinelReceiverFailing|SentinelRemedyIneffective",
        _PAGE,
        name="person",
    ),
)
"""Alone, Sentinel acts only on an unexpected exit and a confirmed hang.

Where alerts of one severity ask for several, the first in this order is taken.
"""


def remedy_for(
    labels: Mapping[str, str], remedies: Sequence[Remedy], cause: str = ""
) -> Remedy | None:
    """The first remedy that fits, the operator's before the shipped ones."""
    found = (remedy for remedy in (*remedies, *SHIPPED) if remedy.matches(labels, cause))
    return next(found, None)


def cause_for(alertname: str, diagnosed: str) -> str:
    """What an alert is put down to: what was diagnosed, or what the alert itself says."""
    return diagnosed or _IMPLIED.get(alertname, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What bears on the choice of a rung. `tried` are the intents of the same incident."""

    tried: Sequence[Intent] = ()
    cause: str = ""
    loops: bool = False  # Docker starts it again and again
    has_recurred: bool = False  # it was remedied for the same cause not long ago
    fired_at: datetime | None = None  # the alert
    now: datetime | None = None


def next_rung(remedy: Remedy, trial: Trial) -> Rung | None:
    """The first rung that is not spent and may help; None also while one has to wait."""
    spent = [i for i in trial.tried if i.outcome in _SPENT]
    done = [i for i in trial.tried if i.outcome is Outcome.VERIFIED]
    for rung, following in zip(remedy.ladder, (*remedy.ladder[1:], None), strict=True):
        if not may_help(rung, trial):
            continue
        if (used := _taken(spent, rung)) is not None:
            spent.remove(used)
        elif (used := _taken(done, rung)) is not None and _waited(following, used, trial):
            done.remove(used)
        else:
            return rung if _has_waited(rung, trial) else None
    return None


def may_help(rung: Rung, trial: Trial) -> bool:
    """Never lower a limit for a cause that this cannot cure; others are for guards to hold."""
    if rung.action is Action.STOP_LOOP:
        return trial.loops
    if rung.action is not Action.LOWER_MAX_NUM_SEQS:
        return True
    cause = CAUSES.get(trial.cause)
    if rung.to is not None:
        return cause is None or cause.lower_max_num_seqs_helps is not False
    if trial.cause == "cuda_oom_runtime":
        return trial.has_recurred  # the first one says nothing of the number
    return trial.cause in CURED


def _taken(tried: Sequence[Intent], rung: Rung) -> Intent | None:
    return next((intent for intent in tried if intent.wish.action == rung.action), None)


def _waited(following: Rung | None, used: Intent, trial: Trial) -> bool:
    """It worked, and yet the alert has gone on for as long as the next rung waits."""
    wait = following.wait if following is not None else None
    if wait is None or trial.now is None or used.closed_at is None:
        return False
    return trial.now - used.closed_at >= wait


def _has_waited(rung: Rung, trial: Trial) -> bool:
    wait = rung.wait
    if wait is None or trial.now is None:
        return True
    ends = [intent.closed_at for intent in trial.tried if intent.closed_at is not None]
    since = max(ends, default=trial.fired_at)
    return since is None or trial.now - since >= wait


def _span(value: object) -> timedelta | None:
    return value if isinstance(value, timedelta) else None
