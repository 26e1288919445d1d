"""What the GPUs of each target draw, and the least they ever drew while it worked.

A hung kernel shows full utilisation; only power tells that nothing is computed. The band is
learned anew in each launch, from looks at which the engine had moved.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.gpu.samples import POWER
from sentinel.core.model.labels import value_of
from sentinel.core.model.series import Store
from sentinel.core.policy.hang import Power
from sentinel.runtime.target import Target

_LOOKS = 12  # at work, before the band is believed


@dataclass(slots=True)
class _Band:
    launch: object
    moved_at: datetime | None = None
    least: float = float("inf")
    looks: int = 0


class Powers:
    def __init__(self, store: Store, gpus_of: Callable[[str], Sequence[str]]) -> None:
        self._store, self._gpus_of = store, gpus_of
        self._bands: dict[str, _Band] = {}

    def read(self, targets: Mapping[str, Target], now: datetime) -> None:
        """Bring up to date what each target's own GPUs draw."""
        drawn = {
            value_of(series.labels, "uuid"): watts
            for series in self._store.named(POWER)
            if (watts := series.latest) is not None
        }
        if not drawn:
            return
        of = {name: self._gpus_of(name) for name in targets}
        users = Counter(uuid for uuids in of.values() for uuid in uuids)
        for name, uuids in of.items():
            if uuids and all(uuid in drawn and users[uuid] == 1 for uuid in uuids):
                self._learn(targets[name], sum(drawn[uuid] for uuid in uuids), now)
        for name in self._bands.keys() - targets.keys():
            del self._bands[name]

    def _learn(self, target: Target, watts: float, now: datetime) -> None:
        band = self._bands.get(target.name)
        if band is None or band.launch != target.key:
            band = self._bands[target.name] = _Band(target.key)
        moved = [p.moved_at for p in target.engines.values() if p.counted.running]
        moved_at = max(moved, default=None)
        if moved_at is not None and moved_at != band.moved_at:
            if band.moved_at is not None:
                band.least, band.looks = min(band.least, watts), band.looks + 1
            band.moved_at = moved_at
        known = band.least if band.looks >= _LOOKS else None
        target.power = Power(at=now, drawn=watts, least_at_work=known)
