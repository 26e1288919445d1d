"""Weighs what the sources say against what the daemon alone knows: who stopped it, what it saw.

A cause that lies deeper outranks one that follows from it, and only among equals the surer one
wins. The same order decides whether a later diagnosis takes the place of an earlier one, so a
guess never covers what was known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sentinel.core.diagnosis.advice import advise
from sentinel.core.diagnosis.case import Case, limits_of, without_quotes
from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.diagnose import Diagnosis, Evidence, Material, conclude
from sentinel.core.diagnosis.endings import Inference
from sentinel.core.diagnosis.log import LogReading, reading_of
from sentinel.core.diagnosis.privacy import without_prompts
from sentinel.core.model.container import Container
from sentinel.core.model.launch import EndedAs, Ending

_FOLLOWS = frozenset(  # from something else, as often as not
    {"engine_died", "worker_died", "worker_hung", "nccl_timeout", "sigkill_unknown"}
)
_NOTHING, _LOAD, _HANG, _CONSEQUENCE, _ROOT = range(5)
_GUESSED, _WITNESSED = 0.6, 0.9


def depth(cause: str) -> int:
    """How much deeper than others a cause lies."""
    kind = CAUSES[cause].kind if cause in CAUSES else "none"
    if kind in ("none", "stop"):
        return _NOTHING
    if kind == "load":
        return _LOAD
    if cause in _FOLLOWS:
        return _CONSEQUENCE
    return _HANG if kind == "hang" else _ROOT


def outweighs(new: Diagnosis, old: Mapping[str, object], *, of_a_later_launch: bool) -> bool:
    """Whether `new` takes the place of what was said before."""
    before, now = depth(str(old.get("cause", ""))), depth(new.cause)
    if before != now:
        return now > before
    sure = old.get("confidence")
    was_sure = float(sure) if isinstance(sure, int | float) else 0.0
    confidence = round(new.confidence, 2)
    return confidence > was_sure or (of_a_later_launch and confidence >= was_sure)


def of_ended(
    given: Material, ending: Ending, container: Container, known: Sequence[Inference] = ()
) -> Diagnosis:
    """Of a launch that ended, and was not meant to."""
    sure = _WITNESSED if ending.kind is EndedAs.OOM else _GUESSED
    explained = Inference(ending.cause, sure, "inspect", ending.because)
    return _deepest(conclude(given), [*known, explained], given, container)


def of_running(given: Material, known: Sequence[Inference], container: Container) -> Diagnosis:
    """Of a server that is up, and of which something is known all the same."""
    return _deepest(conclude(given), known, given, container)


def _deepest(
    found: Diagnosis, known: Sequence[Inference], given: Material, container: Container
) -> Diagnosis:
    best = max(known, key=lambda one: (depth(one.cause), one.sure), default=None)
    told = tuple(Evidence(source=one.source, line=None, text=one.text) for one in known)
    if best is None or (depth(found.cause), found.confidence) >= (depth(best.cause), best.sure):
        return replace(found, evidence=(*found.evidence, *told))
    case = _case(given, container)
    return Diagnosis(
        cause=best.cause,
        confidence=best.sure,
        says=CAUSES[best.cause].says,
        evidence=(*told, *found.evidence),
        advice=without_prompts(advise(best.cause, case)),
        shared_advice=advise(best.cause, without_quotes(case)),
    )


def _case(given: Material, container: Container) -> Case:
    reading = reading_of(given.launch) if given.launch is not None else LogReading()
    return Case(
        reading=reading,
        launch=given.launch,
        exit_code=given.exit_code,
        container=container,
        limits=limits_of(container),
    )
