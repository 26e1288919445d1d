"""Names the cause of one case from whatever is at hand, offline, and says how sure that is.

Pure: a log, an exit code, an inspect, looks at the metrics; the same in, the same out. What
several sources say is weighed here and nowhere else, and everything that was weighed is in
the evidence, without what users sent and without secrets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentinel.core.diagnosis.advice import advise
from sentinel.core.diagnosis.case import Case, inspected, limits_of, without_quotes
from sentinel.core.diagnosis.cause import CAUSES, Cause
from sentinel.core.diagnosis.endings import Inference, by_code, by_oom, by_runtime, code_text
from sentinel.core.diagnosis.load import by_load
from sentinel.core.diagnosis.log import LogReading, reading_of
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.privacy import without_prompts
from sentinel.core.diagnosis.progress import compare, look_at, was_restarted
from sentinel.core.diagnosis.reader import LogReader
from sentinel.core.diagnosis.traces import Launch
from sentinel.core.model.container import Container

_LONGEST = 500  # characters of a line of evidence
_YIELD_TO_OOM = ("unknown", "engine_died", "worker_died", "worker_hung", "nccl_timeout", "healthy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    source: str  # log exit_code inspect metrics
    line: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    cause: str
    confidence: float
    says: str
    evidence: tuple[Evidence, ...]
    advice: str
    shared_advice: str  # without a word that stands in the log

    @property
    def known(self) -> Cause:
        return CAUSES[self.cause]

    def as_json(self) -> dict[str, Any]:
        known = self.known
        return {
            "cause": self.cause,
            "kind": known.kind,
            "confidence": round(self.confidence, 2),
            "says": self.says,
            "evidence": [
                {"source": one.source, "line": one.line, "text": one.text} for one in self.evidence
            ],
            "advice": self.advice,
            "avoid": known.avoid,
            "restart_helps": known.restart_helps,
            "lower_max_num_seqs_helps": known.lower_max_num_seqs_helps,
            "act": known.act,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is at hand."""

    launch: Launch | None = None  # of the last launch in the log; None without a log
    exit_code: int | None = None
    inspect: Any = None
    container: Container | None = None  # what an inspect would say, where it was read already
    metrics: Sequence[str] = ()
    apart: float | None = None  # seconds between the last two


def diagnose(
    log: str | bytes | None = None,
    *,
    exit_code: int | None = None,
    inspect: Any = None,
    metrics: Sequence[str] = (),
    apart: float | None = None,
    patterns: Sequence[Pattern] = (),
) -> Diagnosis:
    launch = None
    if log is not None:
        reader = LogReader(patterns)
        reader.feed(log)
        reader.close()
        launch = reader.launch
    return conclude(
        Material(launch=launch, exit_code=exit_code, inspect=inspect, metrics=metrics, apart=apart)
    )


def conclude(given: Material) -> Diagnosis:
    """The diagnosis of what was read already."""
    case = _case(given)
    found = [one for one in _inferences(case, given) if one is not None]
    best = _best(found) or Inference("unknown", 0.0, "", "")
    return _diagnosis(best, found, case)


def _case(given: Material) -> Case:
    reading = reading_of(given.launch) if given.launch is not None else LogReading()
    case = Case(reading=reading, launch=given.launch, exit_code=given.exit_code)
    read = given.container
    seen = (read, limits_of(read)) if read is not None else inspected(given.inspect)
    if seen is None:
        return case
    container, limits = seen
    code = given.exit_code if given.exit_code is not None else container.exit_code
    return replace(case, container=container, limits=limits, exit_code=code)


def _inferences(case: Case, given: Material) -> list[Inference | None]:
    """In the order of what outranks what."""
    oom, log = by_oom(case), _by_log(case)
    ended = [oom, _by_stop(case), log]
    if log is not None and log.cause not in _YIELD_TO_OOM:
        ended = [_by_stop(case), log, oom]
    return [
        by_runtime(case),
        *ended,
        _by_dead_error(case),
        by_code(case),
        *_by_metrics(given),
        by_load(case),
        _by_calm(case),
    ]


def _best(found: Sequence[Inference]) -> Inference | None:
    return next((one for one in found if one.cause), None)


def _by_log(case: Case) -> Inference | None:
    reading = case.reading
    if reading.cause == "unknown":
        return None
    return Inference(reading.cause, reading.sure, "log", reading.text)


def _by_stop(case: Case) -> Inference | None:
    """It was told to stop before anything died, or went on for long after what an error said."""
    launch = case.launch
    if launch is None:
        return None
    told = launch.first.get("stop_told", 0)
    if told and (case.reading.told_to_stop or _got_over(launch)):
        from_inside = launch.stop_order[:1] == ["engine"]
        clean = not from_inside and case.exit_code in (None, 0)
        line = "the log says that it was told to stop, before anything died"
        return Inference("clean_stop" if clean else "external_stop", 0.95, "log", line)
    if case.reading.died:
        return None
    stopping, dead = launch.first.get("stopping", 0), launch.first.get("dead_error", 0)
    if stopping and (not dead or stopping < dead):
        clean = case.exit_code in (None, 0)
        line = "the server began to shut down before anything died"
        return Inference("clean_stop" if clean else "external_stop", 0.8, "log", line)
    return None


def _got_over(launch: Launch) -> bool:
    root = launch.root()
    served_after = root is not None and launch.last.get("load", 0) > root.line
    return served_after and not any(cause == "engine_died" for cause, _ in launch.accusations)


def _by_dead_error(case: Case) -> Inference | None:
    if case.launch is None or case.reading.died or "dead_error" not in case.launch.first:
        return None
    says = "EngineDeadError, and nothing before it says that it was told to stop"
    return Inference("engine_died", 0.75, "log", says)


def _by_metrics(given: Material) -> list[Inference]:
    if len(given.metrics) < 2:
        return []
    before, after = look_at(given.metrics[-2]), look_at(given.metrics[-1])
    if was_restarted(before, after):
        says = "a counter went back: it was started again between the two"
        return [Inference("", 0.0, "metrics", says)]
    found = compare(before, after, given.apart)
    if not found:
        says = "no vllm: series to compare (--disable-log-stats?)"
        return [Inference("", 0.0, "metrics", says)]
    return [Inference(one.cause, one.sure, "metrics", one.text) for one in found]


def _by_calm(case: Case) -> Inference | None:
    """Nothing in the log says that anything is wrong, and nobody says that it ended."""
    launch = case.launch
    runs = case.container is not None and case.container.is_up
    if case.exit_code is not None or (case.container is not None and not runs):
        return None
    if launch is None or not launch.was_ready:
        return None
    says = "it serves, and nothing in the log says that it died or was told to stop"
    return Inference("healthy", 0.85 if runs else 0.7, "log", says)


def _diagnosis(best: Inference, found: Sequence[Inference], case: Case) -> Diagnosis:
    cause = best.cause
    by_line = best.source == "log" and best.text == case.reading.text
    pattern = case.reading.pattern if by_line else None
    own = pattern.advice if pattern else ""
    return Diagnosis(
        cause=cause,
        confidence=best.sure,
        says=(pattern.says if pattern else "") or CAUSES[cause].says,
        evidence=tuple(_evidence(best, found, case)),
        advice=without_prompts(own or advise(cause, case)),
        shared_advice=own or advise(cause, without_quotes(case)),
    )


def _evidence(best: Inference, found: Sequence[Inference], case: Case) -> list[Evidence]:
    told: list[Evidence] = []
    for one in found:
        if one is not best and one.source == best.source and one.source == "log":
            continue
        line = _line_of(one, case)
        told.append(Evidence(source=one.source, line=line, text=_shown(one.text)))
        if one.source == "log" and one.text == case.reading.text:
            told += [
                Evidence(source="log", line=number, text=_shown(text))
                for number, text in case.reading.more
            ]
    told += _errors(best, case)
    if case.exit_code is not None and not any(one.source == "exit_code" for one in found):
        text = code_text(case.exit_code)
        told.append(Evidence(source="exit_code", line=None, text=text))
    return told


def _line_of(one: Inference, case: Case) -> int | None:
    launch = case.launch
    if one.source != "log" or launch is None:
        return None
    if one.text == case.reading.text and case.reading.line:
        return case.reading.line
    words = {
        "clean_stop": ("stop_told", "stopping"),
        "external_stop": ("stop_told", "stopping"),
        "engine_died": ("dead_error",),
        "healthy": ("ready",),
    }.get(one.cause, ())
    told = next((launch.first[word] for word in words if word in launch.first), None)
    return told or launch.last.get("slow") or launch.last.get("load")


def _errors(best: Inference, case: Case) -> list[Evidence]:
    """What the log holds beside the cause: the first exception, where it ended before it served."""
    launch = case.launch
    if launch is None:
        return []
    told: list[Evidence] = []
    if best.cause in ("unknown", "engine_died") and launch.error is not None:
        line, text = launch.error
        told.append(Evidence(source="log", line=line, text=_shown(text)))
    if best.cause == "unknown" and "start_failed" in launch.first:
        says = "it failed to start"
        told.append(Evidence(source="log", line=launch.first["start_failed"], text=says))
    return told


def _shown(text: str) -> str:
    clean = without_prompts(text)
    return clean if len(clean) <= _LONGEST else f"{clean[:_LONGEST]}…"
