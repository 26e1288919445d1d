"""What each witness to a target's state says, and when it said so, for people and programs."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sentinel.core.model.moment import stamp_or_none
from sentinel.core.model.target import Answer, Completion
from sentinel.core.policy.hang import Power
from sentinel.core.policy.progress import Pace
from sentinel.core.policy.say import clock
from sentinel.core.sockets import Connections
from sentinel.runtime.target import Target

Json = dict[str, Any]


def witnesses_of(target: Target) -> list[Json]:
    """Only those that were heard: who is not here is not known to say anything."""
    return [
        {"name": name, "says": says, "at": stamp_or_none(at)} for name, says, at in _all_of(target)
    ]


def _all_of(target: Target) -> Iterator[tuple[str, str, datetime | None]]:
    yield "container", _container(target), target.seen_at
    for name, answer in (("scrape", target.scrape), ("health", target.health)):
        if answer is not None:
            yield name, _answer(answer), answer.at
    for engine, pace in target.engines.items():
        which = f" of engine {engine}" if len(target.engines) > 1 else ""
        yield f"progress{which}", _progress(pace), pace.moved_at
    if target.connections is not None:
        yield "connections", _connections(target.connections), target.connections.at
    if target.probe is not None:
        yield "probe", _probe(target.probe), target.probe.at
    if target.power is not None:
        yield "power", _power(target.power), target.power.at
    if target.told_to_stop_at is not None:
        yield "docker", "passed on a signal to stop", target.told_to_stop_at
    if target.loading:
        yield "log", target.loading, None
    if target.launch is not None and target.launch.ending is not None:
        ending = target.launch.ending
        yield "ending", f"{ending.cause}: {ending.because}", ending.at


def _container(target: Target) -> str:
    container = target.container
    if container.exit_code is None or container.is_up:
        return str(container.status)
    return f"{container.status}, exit code {container.exit_code}"


def _answer(answer: Answer) -> str:
    return answer.says or answer.failure if answer.failure else str(answer.status)


def _progress(pace: Pace) -> str:
    counted = pace.counted
    says = f"{counted.running or 0:.0f} running, {counted.waiting or 0:.0f} waiting; last change"
    return f"{says}; decoding stands still" if pace.is_decode_stalled else says


def _connections(seen: Connections) -> str:
    says = "listens" if seen.listening else "nothing listens"
    says += f" on port {seen.port} in its container, {len(seen.clients)} clients connected"
    if seen.waiting_since is not None:
        says += f", and no work of theirs is counted since {clock(seen.waiting_since)}"
    return says


def _probe(probe: Completion) -> str:
    return "a completion" if probe.ok else f"no completion: {probe.says}"


def _power(power: Power) -> str:
    says = f"its GPUs draw {power.drawn:.0f} W"
    if power.least_at_work is None:
        return says
    return f"{says}; the least at work was {power.least_at_work:.0f} W"
