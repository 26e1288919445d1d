"""Witnesses to a state, with one sentence that says why.

Absence of evidence is never health: what cannot be seen is `unknown`. A model that loads is
`starting`, for as long as it takes. Ages are compared so that a clock set back makes the
answer more patient, never more violent.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.model.container import Container, Status
from sentinel.core.model.launch import EndedAs, Ending, Launch
from sentinel.core.model.target import Answer, Completion, State

_DEAD_ANSWERS_FOR = timedelta(seconds=10)
_ENGINE_GRACE = timedelta(seconds=30)
_DOCKERS_TURN = timedelta(seconds=5)
_BUSY_FOR = timedelta(seconds=60)
_FULL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the last good scrape said of the work in hand. None: the series is absent."""

    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    asleep: bool = False

    @property
    def has_demand(self) -> bool:
        return (self.running or 0) + (self.waiting or 0) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each thing may take, from the settings of this target."""

    startup_deadline: timedelta = timedelta(minutes=15)
    hung_after: timedelta = timedelta(seconds=120)
    first_minutes: timedelta = timedelta(minutes=10)
    hung_after_in_first_minutes: timedelta = timedelta(seconds=300)

    def hung_after_at(self, running_for: timedelta) -> timedelta:
        young = running_for < self.first_minutes
        return self.hung_after_in_first_minutes if young else self.hung_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnesses:
    container: Container | None
    launch: Launch | None
    previous_ending: Ending | None = None  # of the launch before this one
    own_step: str | None = None  # the step Sentinel itself is in the middle of
    engine_lost_at: datetime | None = None  # Docker does not answer since
    engine_back_at: datetime | None = None
    scrape: Answer | None = None  # the last one, good or bad
    scrape_ok_at: datetime | None = None
    health: Answer | None = None
    dead_since: datetime | None = None  # /health has said "dead" without pause since
    load: Load = Load()
    progress_at: datetime | None = None  # when any sign of work last changed
    probe: Completion | None = None
    patience: Patience = Patience()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    state: State
    because: str


def judge(seen: Witnesses, now: datetime) -> Standing:
    """Say how one target stands. Same witnesses, same answer."""
    container = seen.container
    if container is None:
        return Standing(state=State.UNKNOWN, because="its container has not been seen yet")
    if not container.is_up or container.status is Status.PAUSED:
        return _not_running(seen, container, now)
    if seen.own_step == "stop":
        return Standing(state=State.STOPPING, because="Sentinel is stopping it for a restart")
    if seen.engine_lost_at is not None and not _answered_lately(seen, now):
        since = _clock(seen.engine_lost_at)
        return Standing(
            state=State.UNKNOWN,
            because=f"neither Docker (since {since}) nor the target itself answers",
        )
    if seen.launch is None or seen.launch.ready_at is None:
        return _loading(seen, container, now)
    return _running(seen, seen.launch, now)


def is_crashed(seen: Witnesses, standing: Standing) -> bool:
    """Its container exited unexpectedly and it has not answered as a server since."""
    if standing.state is State.FAILED:
        return True
    if standing.state not in (State.STARTING, State.RESTARTING, State.STOPPING, State.UNKNOWN):
        return False
    if seen.launch is None or seen.launch.ready_at is None or seen.launch.ending is not None:
        ending = seen.launch.ending if seen.launch else None
        before = ending or seen.previous_ending
        return before is not None and before.kind in (EndedAs.CRASH, EndedAs.OOM)
    return False


def _not_running(seen: Witnesses, container: Container, now: datetime) -> Standing:
    match container.status:
        case Status.PAUSED:
            return Standing(state=State.PAUSED, because="its container is paused")
        case Status.CREATED:
            return Standing(state=State.STOPPED, because="created, and never started")
        case Status.RESTARTING:
            return Standing(
                state=State.RESTARTING,
                because=f"exited with code {container.exit_code}; Docker starts it again "
                f"({container.restart_count} times so far)",
            )
        case Status.REMOVING:
            return Standing(state=State.STOPPING, because="its container is being removed")
        case _:
            return _ended(seen, container, now)


def _ended(seen: Witnesses, container: Container, now: datetime) -> Standing:
    if seen.own_step is not None:
        return Standing(state=State.RESTARTING, because="Sentinel is starting it again")
    ending = seen.launch.ending if seen.launch else None
    if ending is None:
        return Standing(state=State.UNKNOWN, because="it stopped; looking for the reason")
    if ending.kind is EndedAs.OWN:
        because = "stopped by Sentinel for a restart, and not started again yet"
        return Standing(state=State.FAILED, because=because)
    comes_back = _docker_restarts(container)
    if comes_back and ending.is_failure and _just_ended(container, now):
        return Standing(
            state=State.RESTARTING,
            because=f"{ending.because}; Docker starts it again by its restart policy",
        )
    if ending.kind in (EndedAs.ENGINE_SHUTDOWN, EndedAs.UNWITNESSED):
        if seen.engine_back_at is not None and now - seen.engine_back_at < _ENGINE_GRACE:
            return Standing(
                state=State.UNKNOWN,
                because=f"{ending.because}; Docker is just back and may start it yet",
            )
        if ending.kind is EndedAs.ENGINE_SHUTDOWN and comes_back:
            return Standing(
                state=State.FAILED,
                because=f"{ending.because} and did not start it again, "
                f"though its restart policy is {container.restart_policy}",
            )
    state = State.FAILED if ending.is_failure else State.STOPPED
    return Standing(state=state, because=ending.because)


def _docker_restarts(container: Container) -> bool:
    policy = container.restart_policy
    if policy == "on-failure":
        return container.exit_code != 0
    return policy in ("always", "unless-stopped")


def _just_ended(container: Container, now: datetime) -> bool:
    """Docker waits at least 0.1 s before it starts a container again."""
    ended = container.finished_at
    return ended is not None and timedelta(0) <= now - ended < _DOCKERS_TURN


def _loading(seen: Witnesses, container: Container, now: datetime) -> Standing:
    took = now - container.started_at if container.started_at else timedelta(0)
    if seen.scrape is None and seen.health is None:
        return Standing(
            state=State.STARTING,
            because=f"up for {_span(took)}; whether it serves is not known yet",
        )
    because = f"loading for {_span(took)}"
    if took > seen.patience.startup_deadline:
        because += f", longer than its deadline of {_span(seen.patience.startup_deadline)}"
    if seen.previous_ending is not None and seen.previous_ending.is_failure:
        because += f" after it {seen.previous_ending.because}"
    return Standing(state=State.STARTING, because=because)


def _running(seen: Witnesses, launch: Launch, now: datetime) -> Standing:
    if seen.dead_since is not None and now - seen.dead_since >= _DEAD_ANSWERS_FOR:
        status = seen.health.status if seen.health else None
        return Standing(
            state=State.FAILED,
            because=f"the server lives but its engine is dead: /health says {status} "
            f"since {_clock(seen.dead_since)}",
        )
    if not _answered_lately(seen, now):
        says = seen.scrape.says if seen.scrape else "nothing was asked yet"
        since = f"since {_clock(seen.scrape_ok_at)}" if seen.scrape_ok_at else "so far"
        return Standing(state=State.UNKNOWN, because=f"does not answer {since}: {says}")
    if seen.load.asleep:
        return Standing(state=State.SLEEPING, because="its engine has been put to sleep")
    if (hung := _hung(seen, launch, now)) is not None:
        return hung
    return _working(seen.load)


def _hung(seen: Witnesses, launch: Launch, now: datetime) -> Standing | None:
    """Work waits, nothing moves for long enough, and a real request got no answer either."""
    if not seen.load.has_demand or seen.progress_at is None:
        return None
    still_for = now - seen.progress_at
    if still_for < seen.patience.hung_after_at(now - launch.started_at):
        return None
    probe = seen.probe
    if probe is None or probe.ok or probe.unauthorised or probe.at < seen.progress_at:
        return None
    return Standing(
        state=State.HUNG,
        because=f"no progress for {_span(still_for)} with {seen.load.running or 0:.0f} running and "
        f"{seen.load.waiting or 0:.0f} waiting, and a one-token request failed: {probe.says}",
    )


def _working(load: Load) -> Standing:
    running, waiting = load.running or 0, load.waiting or 0
    kv = load.kv_usage
    if waiting > 0 and kv is not None and kv >= _FULL:
        return Standing(
            state=State.SATURATED,
            because=f"KV cache {kv:.0%} full, {running:.0f} running, {waiting:.0f} waiting",
        )
    if running or waiting:
        return Standing(
            state=State.SERVING, because=f"{running:.0f} running, {waiting:.0f} waiting"
        )
    return Standing(state=State.IDLE, because="answers, and has no work")


def _answered_lately(seen: Witnesses, now: datetime) -> bool:
    """A busy server may miss scrapes; a closed port is believed after two intervals."""
    if seen.scrape_ok_at is None:
        return False
    if seen.scrape is not None and seen.scrape.ok:
        return True
    refused = seen.scrape is not None and seen.scrape.failure == "refused"
    return now - seen.scrape_ok_at < (timedelta(seconds=5) if refused else _BUSY_FOR)


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S} UTC"


def _span(span: timedelta) -> str:
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
