"""Counts what the loop did, for `/metrics`. Nothing is decided by these numbers."""

from collections import Counter
from collections.abc import Iterable

from sentinel.runtime.act import Settled
from sentinel.runtime.deliver import Delivery
from sentinel.runtime.target import Target
from sentinel.telemetry import events
from sentinel.telemetry.metrics import Metrics

_FAILURES = (events.MESSAGE_RETRIED, events.MESSAGE_DROPPED)


class Tally:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._guards: set[str] = set()

    def messages(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            integration = delivery.channel.split("/")[1]  # receiver/integration/position
            if delivery.event == events.MESSAGE_SENT:
                self._metrics.notifications.labels(integration).inc()
            elif delivery.event in _FAILURES:
                self._metrics.notifications_failed.labels(integration, delivery.reason).inc()

    def actions(self, settled: Iterable[Settled]) -> None:
        for done in settled:
            self._metrics.actions.labels(done.intent.wish.action, done.outcome).inc()

    def guards(self, targets: Iterable[Target]) -> None:
        holding = Counter(held.guard for target in targets for held in target.held)
        self._guards |= set(holding)
        for guard in self._guards:
            self._metrics.guard_holds.labels(guard).set(holding[guard])

    def rules(self, failed: Iterable[str]) -> None:
        for rule in failed:
            self._metrics.rule_failures.labels(rule).inc()

    def flaps(self, alertnames: Iterable[str]) -> None:
        for name in alertnames:
            self._metrics.alert_flaps.labels(name).inc()

    def turn(self, seconds: float, slots_missed: int) -> None:
        self._metrics.tick_duration.observe(max(seconds, 0.0))
        self._metrics.slots_missed.set(slots_missed)

    def clock_jump(self) -> None:
        self._metrics.clock_jumps.inc()
