"""Why a container stopped: by us, by a person, by Docker going down, or by itself.

Exit code 0 proves nothing: a vLLM whose engine dies exits 0. What decides is who asked for
the stop, as far as anybody saw: our own journal, Docker's events, Docker's own record of a
manual stop, and the order of the log. What nobody saw and nothing explains is said so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.log import LogReading
from sentinel.core.model.container import Container, EngineEvent, Status
from sentinel.core.model.launch import EndedAs, Ending

_STOP_SIGNALS = frozenset(
    {"", "1", "2", "3", "9", "15", "SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM"}
)
_KILLED, _ENDED_UNSEEN = 137, 255
_USAGE = 2  # what vLLM's command line ends with when it does not understand it
_TOLD_BY = {129: "SIGHUP", 130: "SIGINT", 143: "SIGTERM"}  # of a program that heeds the signal
_SETTLING = timedelta(seconds=5)
_HEEDED_WITHIN = timedelta(minutes=5)  # a signal ignored for longer did not end it
_KILLS_WITHIN = timedelta(
    minutes=5
)  # a server that lost a process to the kernel long ago got over it


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues:
    """What is known about one ended launch."""

    container: Container
    events: Sequence[EngineEvent]  # of this container, of this launch, in order
    own_stop: bool  # our journal says that we were stopping it
    log: LogReading | None  # None: it could not be read
    engine_down_at: datetime | None = None  # when Docker was last lost, if near the end
    watched: bool = False  # it was seen to run, and Docker has answered ever since
    restarted: bool = False  # Docker started it again by its restart policy
    was_ready: bool = False


def explain_ending(clues: Clues) -> Ending:
    """Say how it ended. Same clues, same answer; `because` is a whole sentence."""
    container, ending = clues.container, _explained(clues)
    kept_down = container.manually_stopped and not _only_signalled(clues)
    waits = container.restart_policy != "no" and container.status is not Status.RESTARTING
    if ending.is_failure and kept_down and waits:
        return stopped_afterwards(ending, container)
    return ending


def _explained(clues: Clues) -> Ending:
    if clues.own_stop:
        return _ending(clues, EndedAs.OWN, "stopped by Sentinel", "clean_stop")
    if (stop := _foreign_stop(clues)) is not None:
        return _stopped(clues, stop)
    if clues.container.manually_stopped and not (_died_first(clues) or _only_signalled(clues)):
        says = "stopped by a person (Docker's own record)"
        return _ending(clues, EndedAs.PERSON, says, "external_stop")
    if (oom := _oom(clues)) is not None:
        return _ending(clues, EndedAs.OOM, oom, oom_cause(clues.container))
    if clues.log is not None and clues.log.died:
        return _crash_by_log(clues, clues.log)
    if clues.log is not None and clues.log.told_to_stop:
        return _told_to_stop(clues)
    code = clues.container.exit_code
    if code in _TOLD_BY and not clues.restarted and not _docker_went_down(clues):
        says = f"{_exited(code)}: somebody outside Docker told it to stop ({_TOLD_BY[code]})"
        return _ending(clues, EndedAs.UNWITNESSED, says, "external_stop")
    if clues.restarted or (_saw_it_die(clues) and not _docker_went_down(clues)):
        says = f"{_exited(code)} and nobody stopped it"
        return _ending(clues, EndedAs.CRASH, says, _cause(clues))
    return _unseen(clues)


def oom_cause(container: Container) -> str:
    """Whose memory it was: without a limit of its own, the host's."""
    return "host_oom" if container.memory_limit == 0 else "cgroup_oom"


def stopped_afterwards(ending: Ending, container: Container) -> Ending:
    """It had ended by itself, and then a person told Docker to leave it so."""
    says = f"{ending.because}; then stopped by a person, so that Docker does not start it again"
    return replace(ending, kind=EndedAs.PERSON, because=says, at=container.finished_at)


def _stopped(clues: Clues, stop: EngineEvent) -> Ending:
    if clues.container.manually_stopped is False:  # Docker marks every stop but its own going down
        says = f"stopped because Docker itself was shut down at {_clock(stop.at)}"
        return _ending(clues, EndedAs.ENGINE_SHUTDOWN, says, "external_stop")
    heard = {event.action for event in clues.events}
    how = next((word for word in ("restart", "stop") if word in heard), "kill")
    says = f"stopped by a person (docker {how} at {_clock(stop.at)})"
    return _ending(clues, EndedAs.PERSON, says, "external_stop")


def _told_to_stop(clues: Clues) -> Ending:
    if _docker_went_down(clues) and not clues.container.manually_stopped:
        says = "stopped while Docker went down: its log says that it was told to stop"
        return _ending(clues, EndedAs.ENGINE_SHUTDOWN, says, "external_stop")
    says = "stopped from outside: its log says that it was told to stop"
    return _ending(clues, EndedAs.PERSON, says, "external_stop")


def _unseen(clues: Clues) -> Ending:
    container, code = clues.container, clues.container.exit_code
    telling = clues.watched or code not in (None, 0, _KILLED, _ENDED_UNSEEN, *_TOLD_BY)
    if telling and container.manually_stopped is False and not _docker_went_down(clues):
        says = f"{_exited(code)}; Docker's own record says that nobody stopped it"
        return _ending(clues, EndedAs.CRASH, says, _cause(clues))
    when = "while Docker was down" if _docker_went_down(clues) else "while nobody watched"
    says = f"{_exited(code)} {when}, and nothing says why"
    return _ending(clues, EndedAs.UNWITNESSED, says, "unknown")


def _exited(code: int | None) -> str:
    return "exited" if code is None else f"exited with code {code}"


def _crash_by_log(clues: Clues, log: LogReading) -> Ending:
    """The line itself stays out of the sentence: sentences leave the host, log lines do not."""
    if log.cause == "unknown":
        says = f"{_exited(clues.container.exit_code)} and nobody stopped it"
        return _ending(clues, EndedAs.CRASH, says, _cause(clues))
    return _ending(
        clues,
        EndedAs.OOM if "oom" in log.cause else EndedAs.CRASH,
        f"{_exited(clues.container.exit_code)} and nobody stopped it; "
        f"its log says {CAUSES[log.cause].says}",
        log.cause,
        log.text,
    )


def _foreign_stop(clues: Clues) -> EngineEvent | None:
    """The order to stop that came before the death, if somebody gave one."""
    for event in clues.events:
        if event.action == "kill" and _is_order(event, clues) and _was_heeded(event, clues):
            return event
        if event.action == "stop":
            return event
        if event.action == "die":
            return _stop_right_after(clues, event)
    return None


def _is_order(event: EngineEvent, clues: Clues) -> bool:
    return event.signal in _STOP_SIGNALS | {clues.container.stop_signal}


def _was_heeded(order: EngineEvent, clues: Clues) -> bool:
    """A bare signal may be ignored, and the server go on: one long before the end is no order."""
    if any(event.action == "stop" and event.at_ns >= order.at_ns for event in clues.events):
        return True
    if clues.log is not None and clues.log.told_to_stop:
        return True
    died = next((event.at for event in clues.events if event.action == "die"), None)
    ended = died or clues.container.finished_at
    return ended is None or ended - order.at <= _HEEDED_WITHIN


def _only_signalled(clues: Clues) -> bool:
    """Docker records any signal a person sends as a stop, also one that stops nothing."""
    return _saw_it_die(clues) and any(event.action == "kill" for event in clues.events)


def _stop_right_after(clues: Clues, death: EngineEvent) -> EngineEvent | None:
    """Older engines say `die` before `stop`; both belong to one `docker stop`."""
    for event in clues.events:
        if event.action == "stop" and death.at_ns <= event.at_ns <= death.at_ns + 2_000_000_000:
            return event
    return None


def _died_first(clues: Clues) -> bool:
    return clues.log is not None and clues.log.died


def _oom(clues: Clues) -> str | None:
    """Newer engines keep `OOMKilled` from the event on, also of a server that lives on."""
    reported = [event.at for event in clues.events if event.action == "oom"]
    ended = clues.container.finished_at
    if reported:
        if ended is not None and ended - reported[-1] > _KILLS_WITHIN:
            return None
        return f"out of memory: Docker reported it, and it {_exited(clues.container.exit_code)}"
    if clues.container.oom_killed:
        return "out of memory: Docker's state says OOMKilled"
    return None


def _saw_it_die(clues: Clues) -> bool:
    return any(event.action == "die" for event in clues.events)


def _docker_went_down(clues: Clues) -> bool:
    ended = clues.container.finished_at
    if clues.container.exit_code == _ENDED_UNSEEN and not _saw_it_die(clues):
        return True
    if clues.engine_down_at is None or ended is None:
        return False
    return ended >= clues.engine_down_at - _SETTLING


def _cause(clues: Clues) -> str:
    code = clues.container.exit_code
    if code == _KILLED:
        return "sigkill_unknown"
    if code == _USAGE and not clues.was_ready:
        return "bad_arguments"
    return "container_runtime_error" if code in (125, 126, 127) else "engine_died"


def _ending(clues: Clues, kind: EndedAs, because: str, cause: str, line: str = "") -> Ending:
    container = clues.container
    return Ending(
        kind=kind,
        because=because,
        cause=cause,
        at=container.finished_at,
        exit_code=container.exit_code,
        log_line=line,
    )


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S} UTC"
