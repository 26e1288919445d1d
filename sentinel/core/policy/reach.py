"""A target that does not answer: is it the target, or the way there?

A refused connection may be a wrong port mapping, a firewall or a proxy of Docker's. Only a
witness inside the container's own network namespace makes it the target's fault.
"""

from datetime import datetime, timedelta

from sentinel.core.model.target import Answer, State
from sentinel.core.policy.grace import stop_grace
from sentinel.core.policy.say import clock
from sentinel.core.policy.witness import Standing, Witnesses

_REFUSED_FOR = timedelta(seconds=5)
_BUSY_FOR = timedelta(seconds=60)
_CLOSED_FOR = timedelta(seconds=15)
_LOOK_IS_GOOD_FOR = timedelta(seconds=30)
_HEEDED_WITHIN = timedelta(minutes=5)  # a signal to stop


def answered_lately(seen: Witnesses, now: datetime) -> bool:
    """A busy server may miss scrapes; a closed port is believed after two intervals."""
    scrape, health = seen.scrape, seen.health
    if scrape is not None and _is_an_answer(scrape):
        return True
    if health is not None and _is_an_answer(health) and _is_of_the_same_look(health, scrape):
        return True
    if seen.scrape_ok_at is None:
        return False
    refused = scrape is not None and scrape.failure == "refused"
    return now - seen.scrape_ok_at < (_REFUSED_FOR if refused else _BUSY_FOR)


def shows_its_work(seen: Witnesses, now: datetime) -> bool:
    """Whether its series may still be believed; without them only a request can tell."""
    if not seen.load.is_told or seen.scrape_ok_at is None:
        return False
    is_good = seen.scrape is not None and seen.scrape.ok
    return is_good or now - seen.scrape_ok_at < _BUSY_FOR


def _is_an_answer(answer: Answer) -> bool:
    """The server spoke, whatever it said: also `404` to a path that it does not have."""
    return answer.status is not None and answer.failure in ("", "malformed", "too_large")


def _is_of_the_same_look(health: Answer, scrape: Answer | None) -> bool:
    return scrape is None or scrape.at - health.at < _REFUSED_FOR


def out_of_reach(seen: Witnesses, now: datetime) -> Standing:
    since = f"since {clock(seen.scrape_ok_at)}" if seen.scrape_ok_at else "so far"
    if seen.told_to_stop_at is not None and now - seen.told_to_stop_at < _HEEDED_WITHIN:
        return Standing(
            state=State.STOPPING,
            because=f"told to stop at {clock(seen.told_to_stop_at)}, and answers no more",
        )
    if seen.scrape is None or seen.scrape.failure != "refused":
        says = seen.scrape.says if seen.scrape else "nothing was asked yet"
        return Standing(state=State.UNKNOWN, because=f"does not answer {since}: {says}")
    return _refused(seen, since, now)


def _refused(seen: Witnesses, since: str, now: datetime) -> Standing:
    inside, refused = seen.connections, f"connections to it are refused {since}"
    if inside is None or now - inside.at > _LOOK_IS_GOOD_FOR:
        because = f"{refused}, and whether anything listens in its container cannot be seen"
        return Standing(state=State.UNKNOWN, because=because)
    if inside.listening:
        return Standing(
            state=State.UNKNOWN,
            because=f"{refused}, though its server listens on port {inside.port} in its "
            "container: look at the port mapping, the firewall and Docker's proxy",
        )
    closed = f"its container runs, but nothing in it listens on port {inside.port}"
    if seen.scrape_ok_at is not None and now - seen.scrape_ok_at >= _patience_with(seen):
        return Standing(state=State.FAILED, because=f"{closed} {since}")
    return Standing(state=State.UNKNOWN, because=f"{refused}: {closed}")


def _patience_with(seen: Witnesses) -> timedelta:
    """Longer than it takes to stop: somebody may have told it to."""
    grace = timedelta(seconds=stop_grace(seen.container)) if seen.container else timedelta(0)
    return max(grace + _REFUSED_FOR, _CLOSED_FOR)
