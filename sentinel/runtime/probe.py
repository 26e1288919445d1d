"""Asks an engine for one token where something has to be proved or is suspected.

Never an engine that sleeps (it would die of it), loads or stops; never where real work shows
life. What the API server refuses by itself is told as a problem and counts against nobody.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from sentinel.core.model.container import Status
from sentinel.core.model.errors import Transient
from sentinel.core.model.intent import Intent
from sentinel.core.model.target import Completion, State
from sentinel.core.policy.hang import ask_after, silence_of
from sentinel.core.policy.progress import Pace
from sentinel.core.policy.reach import shows_its_work
from sentinel.ports import Clock
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.net import NetAnswer
from sentinel.runtime.plan import Plan, TargetPlan
from sentinel.runtime.scrape import Submit, TargetHttp
from sentinel.runtime.target import Target

_AGAIN = timedelta(seconds=2)
_MAY_BE_ASKED = (State.IDLE, State.SERVING, State.SATURATED, State.HUNG, State.UNKNOWN)
_SLEEPS = "--enable-sleep-mode"


class Prober:
    def __init__(
        self,
        http: TargetHttp,
        submit: Submit,
        clock: Clock,
        inbox: Inbox,
        plan_in_force: Callable[[], Plan],
    ) -> None:
        self._http, self._submit, self._clock, self._inbox = http, submit, clock, inbox
        self._plan_in_force = plan_in_force

    def ask_if_needed(
        self, target: Target, proving: Intent | None, now: datetime, *, unproved: bool = False
    ) -> None:
        """`proving`: what is being done to it; `unproved`: what was done to it did not help."""
        plan = self._plan_in_force().target(target.name)
        if target.probing or target.endpoint is None or not _may_be_asked(target):
            return
        is_proof = proving is not None and proving.next_step is None
        if why_not := _why_never(target, plan):
            if (is_proof or unproved) and target.probe is None:
                target.probe = Completion(
                    at=now, took=0.0, ok=False, unsupported=True, says=why_not
                )
            return
        if is_proof:
            pause = _AGAIN
            wanted = target.probe is None or not target.probe.says_something
        else:
            pause = plan.probe_interval
            wanted = unproved or self._is_wanted(target, plan, now)
        if wanted and (target.probe is None or now - target.probe.at >= pause):
            self._ask(target, target.endpoint.url, plan)

    def problems(self, targets: Mapping[str, Target]) -> Iterator[str]:
        for name, target in targets.items():
            if target.probe is not None and target.probe.unauthorised:
                yield (
                    f"{name} refuses a one-token request ({target.probe.says}): whether it works "
                    "cannot be tried without its api_key_file"
                )

    def _is_wanted(self, target: Target, plan: TargetPlan, now: datetime) -> bool:
        seen = target.seen
        if seen is None:
            return False
        if not shows_its_work(seen, now) or (target.probe and target.probe.unauthorised):
            return True
        if plan.probe_when == "always":
            return seen.moved_at is None or now - seen.moved_at >= plan.probe_interval
        return _is_suspect(target, plan)

    def _ask(self, target: Target, url: str, plan: TargetPlan) -> None:
        ranks = ranks_of(target.engines)
        target.probing = max(len(ranks), 1)
        key, deadline = target.key, plan.probe_deadline.total_seconds()
        self._submit(
            lambda: self._http.complete(
                url, api_key=plan.api_key(), deadline=deadline, ranks=ranks
            ),
            deadline=deadline + 1.0,  # the request ends itself; this is for one that does not
            deliver=lambda answer: self._inbox.put_sample(
                lambda: self._answered(target, key, answer)
            ),
        )

    def _answered(self, target: Target, key: object, answer: NetAnswer[Completion]) -> None:
        if target.key != key:
            return
        target.probing = 0
        if answer.value is not None:
            target.probe = answer.value
        else:
            says = answer.error.message if isinstance(answer.error, Transient) else "no answer"
            target.probe = Completion(at=self._clock.now(), took=0.0, ok=False, says=says)


def ranks_of(engines: Mapping[str, Pace]) -> tuple[str, ...]:
    """The data-parallel engines to meet one by one; none where there is but one engine."""
    ranks = sorted((name for name in engines if name.isdecimal()), key=int)
    return tuple(ranks) if len(ranks) > 1 else ()


def _why_never(target: Target, plan: TargetPlan) -> str:
    """Why it is not to be asked, whatever is suspected; empty if it may be."""
    if plan.probe_when == "never":
        return "the configuration says never"
    if target.load.asleep is None and _SLEEPS in " ".join(target.container.argv):
        return "it may be asleep, and its version does not tell"
    return ""


def _may_be_asked(target: Target) -> bool:
    ready = target.launch is not None and target.launch.ready_at is not None
    awake = not target.load.asleep and target.container.status is Status.RUNNING
    return ready and awake and target.standing.state in _MAY_BE_ASKED


def _is_suspect(target: Target, plan: TargetPlan) -> bool:
    silence = silence_of(target.engines, target.connections, target.probe)
    if silence is None or target.launch is None:
        return False
    allowed = plan.patience.hung_after_at(silence.until - target.launch.started_at)
    return silence.lasted >= ask_after(allowed, plan.probe_deadline)
