"""From witnesses to a state, with one sentence that says why.

Absence of evidence is never health: what cannot be seen is `unknown`. A model that loads is
`starting`, for as long as it takes. Ages are compared so that a clock set back makes the
answer more patient, never more violent.
"""

from datetime import datetime, timedelta

from sentinel.core.model.container import Container, Status
from sentinel.core.model.launch import EndedAs, Launch
from sentinel.core.model.target import State
from sentinel.core.policy.hang import confirmed_by, silence_of
from sentinel.core.policy.reach import answered_lately, out_of_reach, shows_its_work
from sentinel.core.policy.say import clock, span
from sentinel.core.policy.witness import Load, Standing, Witnesses

_DEAD_ANSWERS_FOR = timedelta(seconds=10)
_ENGINE_GRACE = timedelta(seconds=30)
_DOCKERS_TURN = timedelta(seconds=5)
_BELIEVED_FOR = timedelta(minutes=5)
_FULL = 0.95


def judge(seen: Witnesses, now: datetime) -> Standing:
    """Say how one target stands. Same witnesses, same answer."""
    container = seen.container
    if container is None:
        return Standing(state=State.UNKNOWN, because="its container has not been seen yet")
    if not container.is_up or container.status is Status.PAUSED:
        return _not_running(seen, container, now)
    if seen.own_step == "stop":
        return Standing(state=State.STOPPING, because="Sentinel is stopping it for a restart")
    if seen.engine_lost_at is not None and not answered_lately(seen, now):
        since = clock(seen.engine_lost_at)
        return Standing(
            state=State.UNKNOWN,
            because=f"neither Docker (since {since}) nor the target itself answers",
        )
    if seen.launch is None or seen.launch.ready_at is None:
        return _loading(seen, container, now)
    return _running(seen, seen.launch, now)


def is_crashed(seen: Witnesses, standing: Standing, *, before: bool = False) -> bool:
    """Its container exited unexpectedly and it has not answered as a server since.

    `before`: so it was at the last look, perhaps in another container of this name.
    """
    if standing.state is State.FAILED or (before and standing.state is State.RESTARTING):
        return True
    if standing.state not in (State.STARTING, State.RESTARTING, State.STOPPING, State.UNKNOWN):
        return False
    if seen.launch is None or seen.launch.ready_at is None or seen.launch.ending is not None:
        ending = seen.launch.ending if seen.launch else None
        last = ending or seen.previous_ending
        return last is not None and last.kind in (EndedAs.CRASH, EndedAs.OOM)
    return False


def _not_running(seen: Witnesses, container: Container, now: datetime) -> Standing:
    match container.status:
        case Status.PAUSED:
            return Standing(state=State.PAUSED, because="its container is paused")
        case Status.CREATED if seen.own_step is None:
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
            because=f"up for {span(took)}; whether it serves is not known yet",
        )
    because = f"loading for {span(took)}"
    if seen.loading:
        because += f" ({seen.loading})"
    if took > seen.patience.startup_deadline:
        because += f", longer than its deadline of {span(seen.patience.startup_deadline)}"
    elif seen.start_expected is not None and took > seen.start_expected:
        because += f", longer than the {span(seen.start_expected)} that its starts may take"
    if seen.previous_ending is not None and seen.previous_ending.is_failure:
        because += f" after it {seen.previous_ending.because}"
    return Standing(state=State.STARTING, because=because)


def _running(seen: Witnesses, launch: Launch, now: datetime) -> Standing:
    if (dead := _dead(seen, now)) is not None:
        return dead
    if not answered_lately(seen, now):
        return out_of_reach(seen, now)
    if seen.load.asleep:
        return Standing(state=State.SLEEPING, because="its engine has been put to sleep")
    if (hung := _hung(seen, launch)) is not None:
        return hung
    if not shows_its_work(seen, now):
        return _untold(seen, now)
    return _working(seen)


def _dead(seen: Witnesses, now: datetime) -> Standing | None:
    """/health says so for a while, and nothing has been done meanwhile that says otherwise."""
    since = seen.dead_since
    if since is None or now - since < _DEAD_ANSWERS_FOR:
        return None
    if seen.moved_at is not None and seen.moved_at - since >= _DEAD_ANSWERS_FOR:
        return None
    status = seen.health.status if seen.health else None
    return Standing(
        state=State.FAILED,
        because=f"the server lives but its engine is dead: /health says {status} "
        f"since {clock(since)}",
    )


def _hung(seen: Witnesses, launch: Launch) -> Standing | None:
    silence = silence_of(seen.engines, seen.connections, seen.probe)
    if silence is None:
        return None
    if silence.lasted < seen.patience.hung_after_at(silence.until - launch.started_at):
        return None
    why = confirmed_by(silence, seen.probe, seen.power, seen.connections)
    if why is None:
        return None
    return Standing(
        state=State.HUNG,
        because=f"no progress for {span(silence.lasted)} with {silence.says}, and {why}",
    )


def _untold(seen: Witnesses, now: datetime) -> Standing:
    """It shows no series of its work: only a request can tell."""
    probe = seen.probe
    if probe is not None and probe.ok and now - probe.at < _BELIEVED_FOR:
        return Standing(
            state=State.SERVING,
            because=f"shows no metrics of its work; a one-token request was answered at "
            f"{clock(probe.at)}",
        )
    because = "answers, but shows no metrics of its work"
    if probe is None:
        because += ", and no request has been tried"
    else:
        because += f", and a one-token request failed: {probe.says}" if probe.says else ""
    return Standing(state=State.UNKNOWN, because=because)


def _working(seen: Witnesses) -> Standing:
    load = seen.load
    running, waiting = load.running or 0, load.waiting or 0
    if _is_full(load):
        return Standing(
            state=State.SATURATED,
            because=f"KV cache {load.kv_usage:.0%} full, {running:.0f} running, "
            f"{waiting:.0f} waiting",
        )
    if seen.demand:
        return Standing(
            state=State.SERVING, because=f"{running:.0f} running, {waiting:.0f} waiting"
        )
    return Standing(state=State.IDLE, because="answers, and has no work")


def _is_full(load: Load) -> bool:
    return bool(load.waiting) and load.kv_usage is not None and load.kv_usage >= _FULL
