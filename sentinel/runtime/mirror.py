"""What Sentinel sees of itself, as series, so that rules watch the watcher.

A loop that stands still cannot say so here: for that there is systemd's watchdog.
"""

from datetime import datetime

from sentinel.core.model import series_names as series
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.ports import Clock
from sentinel.runtime.deliver import Deliver
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.plan import Plan
from sentinel.runtime.watch import Watch


class Mirror:
    def __init__(self, store: Store, watch: Watch, deliver: Deliver, clock: Clock) -> None:
        self._store, self._watch, self._deliver = store, watch, deliver
        self._clock = clock
        self._looked: float | None = None  # monotonic: a clock that is set is no lateness
        self._missed = 0
        self.published: list[WrittenSample] = []

    def look(self, plan: Plan, now: datetime) -> None:
        """Once a turn."""
        own = {"host": plan.host}
        self._count_missed(plan)
        self.published = [
            (series.DOCKER_UP, own, 0.0 if self._watch.lost_at else 1.0),
            (series.SLOTS_MISSED, own, float(self._missed)),
        ]
        for channel, is_up in self._deliver.condition().items():
            receiver, integration, _ = channel.rsplit("/", 2)
            labels = {**own, "receiver": receiver, "integration": integration, "channel": channel}
            self.published.append((series.RECEIVER_UP, labels, float(is_up)))
        self._store.source("sentinel", {}).put(self.published, millis(now))

    def _count_missed(self, plan: Plan) -> None:
        before, self._looked = self._looked, self._clock.monotonic()
        if before is not None:
            slots = (self._looked - before) / plan.evaluation_interval.total_seconds()
            self._missed += max(int(slots) - 1, 0)
