"""Whether a container made anew serves with the limit it was given, and what that ends in.

A completion by the very container that was started, and what its engine says of itself: what
is not proved in time is taken back.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sentinel.core.model.container import Status
from sentinel.core.model.intent import Intent, Outcome
from sentinel.core.model.launch import EndedAs
from sentinel.core.policy.verify import Verdict, verify_restart
from sentinel.core.recreate.confirm import said_limit
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.recreation import Recreation
from sentinel.runtime.recreations import Recreations
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_READING = 30.0  # seconds


class Proof:
    def __init__(
        self,
        memory: Memory,
        recreations: Recreations,
        bench: Bench,
        log_of: Callable[[str], str],
    ) -> None:
        self._memory, self._recreations = memory, recreations
        self._bench, self._log_of = bench, log_of
        self._said: dict[int, int | None] = {}  # the limit that the new engine's log says

    def advance(
        self,
        intent: Intent,
        recreation: Recreation,
        target: Target | None,
        new_id: str,
        plan: Plan,
        now: datetime,
    ) -> Recreation | None:
        """With another aim once it is proved, or cannot be; None while it is too early."""
        self._recreations.done(intent, len(intent.steps), now)
        within = intent.wish.within or plan.verify_within
        if intent.verify_by is None:
            self._memory.journal.expect_proof(intent, now + within)
        overdue = self._bench.tries.is_overdue(intent, within, now)
        verdict = _verdict(intent, target, new_id, overdue=overdue)
        if verdict.outcome is None:
            return None
        if verdict.outcome is not Outcome.VERIFIED:
            by_person = verdict.outcome is Outcome.REFUSED
            return self._recreations.take_back(
                intent, recreation, verdict.because, now, stays_down=by_person
            )
        because = f"{verdict.because}{_moved(recreation, target)}"
        return self._confirm(intent, recreation, new_id, because, now)

    def close(
        self, intent: Intent, recreation: Recreation, target: Target | None, now: datetime
    ) -> Settled:
        if recreation.ends_as is Outcome.VERIFIED and intent.wish.restores:
            says = "it runs again with the limit that its owner gave it"
            self._bench.tell(intent, events.LIMIT_RESTORED, says, now)
        if recreation.ends_as is Outcome.REFUSED and target is not None:
            self._leave_stopped(target, recreation.because, now)
        return self._recreations.close(
            intent, recreation.ends_as, recreation.because, now, patch=recreation.patch or None
        )

    def forget(self, intent: Intent) -> None:
        self._said.pop(intent.number, None)

    def _confirm(
        self, intent: Intent, recreation: Recreation, new_id: str, because: str, now: datetime
    ) -> Recreation | None:
        """The log of the engine has the last word on which limit it runs with."""
        number, limit = intent.number, intent.wish.limit
        if number not in self._said:
            self._read(intent, new_id)
            return None
        said = self._said[number]
        if said not in (None, limit):
            says = f"its engine says that it runs with {said}"
            return self._recreations.take_back(intent, recreation, says, now)
        proved = recreation.towards_commit(f"{because}; {_confirmed(limit, said)}")
        self._recreations.write(intent, proved)
        return proved

    def _read(self, intent: Intent, new_id: str) -> None:
        def read(answer: LaneAnswer[str]) -> None:
            is_number = intent.wish.limit is not None
            self._said[intent.number] = said_limit(answer.value or "") if is_number else None

        self._bench.prepare(
            intent,
            lambda: self._log_of(new_id),
            deadline=_READING,
            answered=read,
            touches=False,
        )

    def _leave_stopped(self, target: Target, because: str, now: datetime) -> None:
        """Ours stopped the old one, but a person wants it down: so it is a person's stop."""
        launch = target.launch
        if launch is None or launch.ending is None or launch.ending.kind is not EndedAs.OWN:
            return
        ending = replace(launch.ending, kind=EndedAs.PERSON, because=because, cause="external_stop")
        self._memory.launches.end(launch, ending, now)
        target.launch = replace(launch, ending=ending)


def _verdict(intent: Intent, target: Target | None, new_id: str, *, overdue: bool) -> Verdict:
    """Of the new container, once it has been seen under its name."""
    if target is None or target.container.id != new_id:
        if overdue:
            return Verdict(outcome=Outcome.FAILED, because="it was not seen to run in time")
        return Verdict(outcome=None, because="not looked at yet")
    container = target.container
    if container.restart_count or container.status is Status.RESTARTING:
        return Verdict(outcome=Outcome.FAILED, because="it ended, and Docker started it again")
    about = replace(intent, wish=replace(intent.wish, container_id=new_id))
    return verify_restart(
        about, container, target.launch, target.probe, overdue=overdue, served=target.served
    )


def _moved(recreation: Recreation, target: Target | None) -> str:
    """Where it is to be found now, if Docker has chosen another port of the host for it."""
    chosen, ways = recreation.plan.chosen_ports, target.container.ports if target else ()
    found = dict.fromkeys(
        f"port {way.host_port} of the host for its {way.container_port}"
        for way in ways
        if f"{way.container_port}/tcp" in chosen
    )
    return f"; it has {', '.join(found)} now" if found else ""


def _confirmed(limit: int | None, said: int | None) -> str:
    if limit is None:
        return "with the limit that its owner gave it"
    return f"its log confirms {said}" if said else f"its log does not say whether with {limit}"
