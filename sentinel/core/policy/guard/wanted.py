"""What people and others want: pauses, stops, times of maintenance, deploys, alerts of others."""

from datetime import timedelta

from sentinel.core.model.intent import Action, Mode
from sentinel.core.model.launch import EndedAs
from sentinel.core.model.target import State
from sentinel.core.policy.guard.situation import Held, Situation, span_of

_DEPLOY = timedelta(minutes=3)
_UNWELL = (State.FAILED, State.HUNG)


def stop_file(now: Situation) -> Held | None:
    if now.stop_file is None:
        return None
    return Held(guard="stop_file", because=f"the file {now.stop_file} holds every action")


def paused(now: Situation) -> Held | None:
    if now.paused_by is None:
        return None
    return Held(guard="paused", because=f"paused by {now.paused_by}", until=now.paused_until)


def maintenance(now: Situation) -> Held | None:
    """But for setting a limit back: there is no better time for that."""
    if now.maintenance is None or now.action is Action.RESTORE:
        return None
    because = f"maintenance ({now.maintenance}): the target is left alone"
    return Held(guard="maintenance", because=because)


def human_stop(now: Situation) -> Held | None:
    stopped = now.ending is not None and now.ending.kind is EndedAs.PERSON
    if now.running or not stopped or now.ending is None:
        return None
    return Held(guard="human_stop", because=now.ending.because)


def unwitnessed_stop(now: Situation) -> Held | None:
    if now.running or now.ending is None or now.ending.kind is not EndedAs.UNWITNESSED:
        return None
    return Held(
        guard="unwitnessed_stop",
        because=f"{now.ending.because}: a person has to say whether it should run",
    )


def deploy_in_progress(now: Situation) -> Held | None:
    """What was made anew or pulled a moment ago has an owner who is at it."""
    if now.change is not None and now.change.deploys:
        return Held(guard="deploy_in_progress", because=now.change.deploys)
    signs = (("made its container anew", now.deployed_at), ("pulled its image", now.pulled_at))
    for did, at in signs:
        if at is not None and now.now - at < _DEPLOY:
            because = f"somebody {did} at {at:%H:%M:%S} UTC; a deploy is given {span_of(_DEPLOY)}"
            return Held(guard="deploy_in_progress", because=because, until=at + _DEPLOY)
    return None


def external_alert(now: Situation) -> Held | None:
    if not now.only_posted or now.accept_external:
        return None
    because = "the alert was posted by others, and accept_external is false"
    return Held(guard="external_alert", because=because)


def unconfirmed(now: Situation) -> Held | None:
    if now.another_model and now.running and not now.crashed:
        because = "another model answers on its port: what was seen may be another's"
        return Held(guard="unconfirmed", because=because)
    if not now.only_posted or not now.accept_external:
        return None
    if now.crashed or now.state in _UNWELL:
        return None
    because = f"the alert was posted by others, and what Sentinel sees itself is {now.state}"
    return Held(guard="unconfirmed", because=because)


def mode(now: Situation) -> Held | None:
    if now.mode is Mode.ACT:
        return None
    if now.mode is Mode.APPROVE:
        return Held(guard="mode", because="mode is approve: a person has to agree first")
    return Held(guard="mode", because="mode is watch: Sentinel only says what it would do")
