"""What is wrong with Sentinel itself or with what it needs, in sentences.

They are for people: nothing may be decided on a sentence. Who needs such a fact asks the part.
"""

from collections.abc import Iterator, Mapping

from sentinel.runtime.parts import Parts


def problems_of(parts: Parts, failing: Mapping[str, str], broken: str) -> Iterator[str]:
    """`failing`: rules that could not be evaluated, and why; `broken`: how the last turn failed."""
    if because := parts.memory.trouble:
        yield (
            f"the state file cannot be used ({because}): Sentinel watches and tells, "
            "but acts on nothing"
        )
    if broken:
        yield f"the last turn failed: {broken}"
    yield from _of_docker(parts)
    yield from (f"rule {rule}: {because}" for rule, because in failing.items())
    yield from (f"messages to {each} are refused" for each in sorted(parts.deliver.disabled))
    yield from parts.follower.problems()
    yield from parts.gpus.problems()
    yield from parts.hostwatch.problems()
    yield from parts.prober.problems(parts.watch.targets)
    yield from parts.elsewhere.problems()
    if parts.series is not None and parts.series.trouble:
        yield parts.series.trouble


def _of_docker(parts: Parts) -> Iterator[str]:
    watch = parts.watch
    if watch.lost_at is not None:
        yield f"Docker does not answer since {watch.lost_at:%H:%M:%S} UTC"
    elif not watch.targets:
        yield "no vLLM container was found: nothing is watched"
    under_way = [f"{i.wish.target}." for i in parts.memory.journal.open() if i.wish.is_made_anew]
    for name in watch.set_aside:
        if not name.startswith(tuple(under_way)):
            yield f"{name} was set aside while a container was made anew, and nobody remembers it"
    if parts.actor.overdue:
        yield "an action has been waiting for Docker for too long"
