"""Exposition text to series: the hot path of every scrape.

A target prints the same lines each time with other values, so the text before the last space
is remembered as the key of its series, and a known line costs a look-up and a `float()`. Only
an untimed line whose key is exactly name and labels may be remembered: anything else would
put the value into the key, and the memory would grow with every scrape.
"""

import re
from dataclasses import dataclass, field

from sentinel.api.prometheus.copies import Description
from sentinel.core.model.errors import Permanent
from sentinel.core.model.series import Series, Source
from sentinel.runtime.describe import descriptions_in

MAX_SAMPLES = 50_000
AHEAD_MS = 600_000  # a sample from further in the future is left out, as Prometheus does
SPARE_KEYS = 1_024
LINES_A_SAMPLE = 4  # with its comments

# A metric under the name it had in older releases of vLLM, and its present one.
RENAMED = {
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    **{
        f"vllm:time_per_output_token_seconds_{part}": f"vllm:inter_token_latency_seconds_{part}"
        for part in ("bucket", "sum", "count", "created")
    },
}

_SPACE = " \t\r"
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LABEL = re.compile(
    rf"[ \t]*(?:([A-Za-z_:][A-Za-z0-9_:]*)|{_QUOTED})[ \t]*"  # its name
    rf"(?:=[ \t]*{_QUOTED}[ \t]*)?(?:,|(?=\}}))"  # its value; a quoted metric name has none
)
_TIMESTAMP = re.compile(r"[-+]?[0-9]{1,18}")  # what a column of times can hold
_CLOSE = re.compile(r"[ \t]*\}")
_ESCAPE = re.compile(r'\\(["\\n])')
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n"}
_EXEMPLAR = re.compile(r"[ \t]+# \{.*")


@dataclass(frozen=True, slots=True)
class Line:
    """One sample as it is written."""

    key: str  # the text of name and labels
    name: str
    labels: dict[str, str]
    value: float
    value_text: str
    at_ms: int | None = None


@dataclass(slots=True)
class _Look:
    """What one body holds."""

    series: list[Series] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    timed: dict[Series, tuple[float, int]] = field(default_factory=dict)
    skipped: int = 0

    @property
    def taken(self) -> int:
        return len(self.series) + len(self.timed) + self.skipped


class Exposition:
    """Reads the scrapes of one target into one source."""

    def __init__(self, source: Source, *, max_samples: int = MAX_SAMPLES) -> None:
        self.source = source
        self._max_samples = max_samples
        self._slots: dict[str, Series | None] = {}  # None: not kept
        self._twins: dict[Series, Series] = {}  # old name to present name
        self._keep = source.store.keep
        self._removals = source.removals
        self.descriptions: dict[str, Description] = {}
        self._described_at = -1  # how many lines were known when they were read

    def take(self, body: bytes, at_ms: int) -> int:
        """Record one scrape and return how many samples it held.

        Raises `Permanent`, and records nothing, if `body` is no exposition text.
        """
        self._forget_outdated()
        try:
            text = body.decode("utf-8")
            look = self._read(text)
        except ValueError as error:
            self._slots.clear()
            self.source.forget_empty()
            if isinstance(error, UnicodeDecodeError):
                raise Permanent("metrics are not UTF-8 text") from None
            raise Permanent(f"metrics are not in the exposition format: {error}") from None
        taken = look.taken
        if not taken:
            raise Permanent("metrics hold no sample")
        if len(set(look.series)) != len(look.series):
            _drop_repeated(look)
        if self._twins:
            self._add_twins(look)
        if look.timed:
            look.timed = {s: v for s, v in look.timed.items() if v[1] <= at_ms + AHEAD_MS}
        self.source.write(look.series, look.values, at_ms, look.timed)
        if len(self._slots) != self._described_at:
            self.descriptions, self._described_at = descriptions_in(text), len(self._slots)
        if len(self._slots) > 2 * taken + SPARE_KEYS:
            self._slots.clear()
        return taken

    def missed(self, at_ms: int) -> None:
        """Record that the target could not be scraped."""
        self.source.missed(at_ms)

    def _forget_outdated(self) -> None:
        store = self.source.store
        if self._keep is not store.keep or self._removals != self.source.removals:
            self._slots.clear()
            self._twins.clear()
            self._keep, self._removals = store.keep, self.source.removals

    def _read(self, text: str) -> _Look:
        if text.count("\n") > LINES_A_SAMPLE * self._max_samples:
            raise ValueError(f"more than {self._max_samples} samples")
        slots = self._slots
        look = _Look()
        add_series, add_value = look.series.append, look.values.append
        for line in text.split("\n"):
            if line[:1] == "#":
                continue
            key, _, rest = line.rpartition(" ")
            try:
                series = slots[key]
            except KeyError:
                self._read_new(line, rest, look)
                continue
            if series is None:
                look.skipped += 1
            else:
                if "_" in rest:
                    raise ValueError(f"bad value in {_shown(line)}")
                add_value(float(rest))
                add_series(series)
        return look

    def _read_new(self, text: str, rest: str, look: _Look) -> None:
        text = text.strip(_SPACE)
        if not text or text.startswith("#"):
            return
        if look.taken >= self._max_samples:
            raise ValueError(f"more than {self._max_samples} samples")
        line = read_line(text)
        series = self._series_of(line)
        if series is None:
            look.skipped += 1
        elif line.at_ms is not None:
            look.timed.setdefault(series, (line.value, line.at_ms))
        else:
            look.values.append(line.value)
            look.series.append(series)
        if line.at_ms is None and line.value_text == rest and text == f"{line.key} {rest}":
            self._slots[line.key] = series

    def _series_of(self, line: Line) -> Series | None:
        store = self.source.store
        present = RENAMED.get(line.name)
        renamed = present is not None and store.keeps(present)
        if not renamed and not store.keeps(line.name):
            return None
        series = self.source.find(line.name, line.labels)
        if present is not None and renamed:
            self._twins[series] = self.source.find(present, line.labels)
        return series

    def _add_twins(self, look: _Look) -> None:
        """Give what an older vLLM prints its present name too, if that is not there."""
        there = {*look.series, *look.timed}
        twins = [(old, new) for old, new in self._twins.items() if new not in there]
        values = dict(zip(look.series, look.values, strict=True))
        for old, new in twins:
            if old in values:
                look.series.append(new)
                look.values.append(values[old])
            elif old in look.timed:
                look.timed[new] = look.timed[old]


def _drop_repeated(look: _Look) -> None:
    """Of two samples of one series the first counts."""
    first: dict[Series, float] = {}
    for series, value in zip(look.series, look.values, strict=True):
        first.setdefault(series, value)
    look.series, look.values = list(first), list(first.values())


def read_line(text: str) -> Line:
    """Read one sample. Raises `ValueError`."""
    found = _NAME.match(text)
    name, end = (found.group(), found.end()) if found else ("", 0)
    labels: dict[str, str] = {}
    brace = _skip(text, end)
    if text.startswith("{", brace):
        name, labels, end = _read_labels(text, brace + 1, name)
    if not name:
        raise ValueError(f"no metric name in {_shown(text)}")
    value_text, at_ms = _read_rest(text, end)
    return Line(text[:end], name, labels, _number(value_text, text), value_text, at_ms)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _read_labels(text: str, at: int, name: str) -> tuple[str, dict[str, str], int]:
    labels: dict[str, str] = {}
    while (close := _CLOSE.match(text, at)) is None:
        found = _LABEL.match(text, at)
        if found is None:
            raise ValueError(f"bad labels in {_shown(text)}")
        bare, quoted, value = found.groups()
        label = bare if quoted is None else _unescape(quoted)
        if value is None:
            if quoted is None or name:
                raise ValueError(f"label without a value in {_shown(text)}")
            name = label
        elif label in labels or label == "__name__":
            raise ValueError(f"label {label!r} twice in {_shown(text)}")
        else:
            labels[label] = _unescape(value)
        at = found.end()
    return name, labels, close.end()


def _read_rest(text: str, at: int) -> tuple[str, int | None]:
    rest = _EXEMPLAR.sub("", text[at:])
    fields = rest.split()
    if not fields or len(fields) > 2 or (rest[0] not in _SPACE and text[at - 1] != "}"):
        raise ValueError(f"no value in {_shown(text)}")
    if len(fields) == 1:
        return fields[0], None
    if _TIMESTAMP.fullmatch(fields[1]) is None:
        raise ValueError(f"bad timestamp in {_shown(text)}")
    return fields[0], int(fields[1])


def _number(value: str, text: str) -> float:
    try:
        if "_" not in value:
            return float(value)
    except ValueError:
        pass
    raise ValueError(f"bad value in {_shown(text)}")


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], text) if "\\" in text else text


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
