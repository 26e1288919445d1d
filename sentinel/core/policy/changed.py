"""What differs between two launches of one target, each in a few words a person can act on.

What vLLM works out anew at every start (key-value memory, the time a load takes) counts only
if it differs by more than starts do among themselves. Texts are of launches as they are kept:
without secrets.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from sentinel.core.model.launch import Launch

_SHORT = 12  # characters of a digest
_LONGEST = 120  # characters of a value
_MEASURED = {  # fact: how it is called, and how much it may differ
    "kv_tokens": ("KV cache tokens", 1.05),
    "kv_blocks": ("KV cache blocks", 1.05),
    "weights_gib": ("GiB of weights", 1.02),
    "load_seconds": ("seconds to load", 2.0),
}
_ARGUMENTS = ("max_num_seqs", "max_model_len", "max_num_batched_tokens", "gpu_memory_utilization")


def changed(before: Launch, now: Launch) -> list[str]:
    """`image digest a → b`, `--max-model-len 8192 → 32768` …; what is not known does not count."""
    return [
        *_became("image", before.image, now.image),
        *_became("image digest", _digest(before.image_id), _digest(now.image_id)),
        *_became("vLLM", _fact(before, "version"), _fact(now, "version")),
        *_became("model", before.model or "", now.model or ""),
        *_between(_options(before.argv), _options(now.argv)),
        *_between(before.environment, now.environment),
        *_became("GPUs", ", ".join(before.devices), ", ".join(now.devices), absent="none"),
        *_became("driver", before.driver, now.driver),
        *_became("compose hash", before.compose_hash[:_SHORT], now.compose_hash[:_SHORT]),
        *_told(before, now),
    ]


def _told(before: Launch, now: Launch) -> Iterator[str]:
    """What the logs told: arguments that stand elsewhere than in the command, and measures."""
    given = _options(before.argv).keys() | _options(now.argv).keys()
    for name in _ARGUMENTS:
        if f"--{name.replace('_', '-')}" not in given:
            yield from _became(name, _fact(before, name), _fact(now, name))
    for name, (called, tolerance) in _MEASURED.items():
        was, then = before.facts.get(name), now.facts.get(name)
        if isinstance(was, int | float) and isinstance(then, int | float):
            low, high = sorted((was, then))
            if low <= 0 or high / low > tolerance:
                yield from _became(called, f"{was:g}", f"{then:g}")


def _became(what: str, was: str, now: str, *, absent: str = "") -> Iterator[str]:
    was, now = was or absent, now or absent
    if was and now and was != now:
        yield f"{what} {_cut(was)} → {_cut(now)}"


def _between(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in [*before, *(name for name in now if name not in before)]:
        was, then = before.get(name), now.get(name)
        if was == then:
            continue
        if was is None:
            yield f"{name} {_cut(then or '')}".rstrip() + " added"
        elif then is None:
            yield f"{name} {_cut(was)}".rstrip() + " removed"
        else:
            yield f"{name} {_cut(was) or '(set)'} → {_cut(then) or '(set)'}"


def _options(argv: Sequence[str]) -> dict[str, str]:
    """Options by name, with dashes, and whatever stands alone; a shell's line is taken apart."""
    found: dict[str, str] = {}
    name, alone = "", list[str]()
    for word in _words(argv):
        if word.startswith("--"):
            given, equals, value = word.partition("=")
            name = given.replace("_", "-")
            found[name] = value
            name = "" if equals else name
        elif name:
            found[name] = f"{found[name]} {word}".strip()
        else:
            alone.append(word)
    if alone:
        found["command"] = " ".join(alone)
    return found


def _words(argv: Sequence[str]) -> Iterator[str]:
    for word in argv:
        try:
            yield from shlex.split(word) if " --" in word else [word]
        except ValueError:  # a quote that is never closed
            yield word


def _digest(image_id: str) -> str:
    return image_id.removeprefix("sha256:")[:_SHORT]


def _fact(launch: Launch, name: str) -> str:
    value = launch.facts.get(name)
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
