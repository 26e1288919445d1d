"""What Sentinel says of a target for a while, seen from outside."""

import time
from collections import defaultdict

from tests.blackbox import Daemon

EVERY = 0.5  # seconds
CLAIMS = {  # words that a server which only has much to do must never hear
    *("hung", "failed", "unknown", "restarting", "stopping", "stopped", "starting"),
    *("VllmEngineHung", "VllmContainerExited", "VllmDown", "VllmDecodeStalled"),
    *("VllmAdmissionStalled", "VllmProbeFailing", "VllmMetricMissing"),
}


class Listener:
    """Counts for how many seconds it was in which state, and which alerts fired."""

    def __init__(self, sentinel: Daemon, name: str) -> None:
        self._sentinel, self._name = sentinel, name
        self.states: defaultdict[str, float] = defaultdict(float)
        self.alerts: defaultdict[str, float] = defaultdict(float)

    def listen(self, seconds: float) -> "Listener":
        deadline = heard_at = time.monotonic()
        deadline += seconds
        while time.monotonic() < deadline:
            time.sleep(EVERY)
            status = self._sentinel.ask("status")
            passed, heard_at = time.monotonic() - heard_at, time.monotonic()
            for target in status.get("targets", []):
                if target["name"] == self._name:
                    self.states[target["state"]] += passed
            for alert in status.get("alerts", []):
                if alert["state"] == "firing":
                    self.alerts[alert["alertname"]] += passed
        return self

    @property
    def words(self) -> set[str]:
        return {*self.states, *self.alerts}

    @property
    def claims(self) -> set[str]:
        return self.words & CLAIMS
