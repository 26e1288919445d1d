"""Snapshots: damaged bytes are refused with `ValueError`, whole, and sound ones say the same.

Damage under a right checksum counts too: what another version wrote, or a fault of our own
before the checksum was made, must not keep a daemon from starting.
"""

import json
import random
import zlib
from dataclasses import dataclass
from typing import Any

from sentinel.core.model.packed import pack, unpack
from sentinel.core.model.series import Store
from tests.fuzz.mutation import mutated


@dataclass(frozen=True, slots=True)
class Snapshot:
    data: bytes
    is_damaged: bool


def make(dice: random.Random) -> Snapshot:
    data = pack(_store(dice))
    kind = dice.randrange(4)
    if kind == 0:
        return Snapshot(data, is_damaged=False)
    if kind == 1:
        return Snapshot(mutated(data, dice), is_damaged=True)
    head, _, rest = data.partition(b"\n")
    if kind == 2:
        rest = mutated(rest, dice)
    else:
        described, _, body = rest.partition(b"\n")
        rest = json.dumps(_spoilt(json.loads(described), dice)).encode() + b"\n" + body
    words = head.rsplit(b" ", 1)[0]
    return Snapshot(b"%s %08x\n%s" % (words, zlib.crc32(rest), rest), is_damaged=True)


def _store(dice: random.Random) -> Store:
    store = Store(retention_ms=100_000)
    for n in range(dice.randrange(3)):
        source = store.source(f"s{n}", {"target": str(n)} if dice.random() < 0.5 else {})
        at = 0
        for _ in range(dice.randrange(40)):
            at += dice.choice((1_000, 5_000, -3_000))
            if dice.random() < 0.1:
                source.missed(at)
            else:
                names = [name for name in "abc" if dice.random() < 0.8]
                source.put([(name, {"x": "é"}, dice.random()) for name in names], at)
            store.trim(at)
    return store


_ODD: tuple[Any, ...] = (None, -1, 0, 1, 3, 10**6, 10**30, 1.5, "x", "", [], {}, [[]], True,
                         [["a", "b"]], [["a", 1]], {"a": 1}, "\ud800")  # fmt: skip


def _spoilt(value: Any, dice: random.Random) -> Any:
    """The description with one value changed for another, or left out."""
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        spoilt = list(value)
        if dice.random() < 0.1:
            del spoilt[at]
        else:
            spoilt[at] = _spoilt(spoilt[at], dice)
        return spoilt
    return dice.choice(_ODD)


def check(snapshot: Snapshot) -> None:
    store = Store(retention_ms=100_000)
    try:
        unpack(snapshot.data, store)
    except ValueError:
        assert snapshot.is_damaged, "refused what pack wrote"
        assert not list(store.every()), "refused, and restored all the same"
        assert not store.sources()
        return
    for series in store.every():
        assert len(series.times) >= series.first + len(series.values)
        assert series.own is None or len(series.own) == len(series.values)
        assert list(series.times) == sorted(set(series.times))
    for source in store.sources():
        source.missed(10**12)
    store.cut(None, 0)
    again = Store(retention_ms=100_000)
    unpack(pack(store), again)
    store.trim(1 << 61)
