"""Everything an operator may set. The descriptions are the manual.

Settings are read once, checked as a whole, and never change under the code that uses them; a
reload builds new ones. They do not travel whole: each part of the daemon is handed its own
section.
"""

from pathlib import Path
from typing import Any

from pydantic import Field

from sentinel.config.addresses import FilePath, FilePattern
from sentinel.config.audit import Audit
from sentinel.config.daemon import Api, Docker
from sentinel.config.evaluation import MetricsSource, Retention, Rules, Store
from sentinel.config.globals import Global
from sentinel.config.guards import Guards
from sentinel.config.intervals import TimeInterval
from sentinel.config.pools import Pool
from sentinel.config.quantities import Flag
from sentinel.config.receivers import Receiver
from sentinel.config.remedies import Remedy
from sentinel.config.routing import InhibitRule, Route, root_route
from sentinel.config.schedule import Maintenance, Schedule
from sentinel.config.section import Section
from sentinel.config.targets import TargetOverride, Targets
from sentinel.core.model.intent import Mode, strictest


def _route(given: dict[str, Any]) -> Route:
    return root_route(Route(), given.get("receivers", ()))


_EXAMPLE_OF_A_ROUTE = {
    "receiver": "oncall",
    "group_by": ["incident"],
    "group_wait": "0s",
    "group_interval": "5s",
    "repeat_interval": "4h",
    "routes": [
        {
            "matchers": ['severity="info"'],
            "receiver": "log",
            "mute_time_intervals": ["nights"],
            "continue": False,
        }
    ],
}


class Settings(Section):
    mode: Mode = Mode.WATCH
    """`watch` says what would be done, `approve` asks first, `act` acts. The strictest of this,
    the target's and the remedy's holds."""

    state_dir: FilePath = Path("/var/lib/sentinel")
    """Where Sentinel keeps its state; on a local disk. `STATE_DIRECTORY` wins over it."""

    docker: Docker = Docker()
    """The Docker engine."""

    api: Api = Api()
    """Sentinel's own faces."""

    global_: Global = Field(default=Global(), alias="global")
    """What holds everywhere, and what receivers use that do not say their own."""

    targets: Targets = Targets()
    """Which containers are supervised."""

    pools: dict[str, Pool] = Field(default={})
    """Name → targets that serve one model behind one switch."""

    rules: Rules = Rules()
    """Alerting and recording rules."""

    log_patterns: tuple[FilePattern, ...] = ("patterns.d/*.yaml",)
    """Files with patterns of your own for the reader of logs; `*` may stand in a name."""

    metrics_source: MetricsSource = MetricsSource()
    """Who evaluates the rules: `embedded`, or a Prometheus."""

    store: Store = Store()
    """What is kept of the series that were seen."""

    remedies: tuple[Remedy, ...] = ()
    """What is done about alerts; looked at before the shipped ones."""

    accept_external: Flag = False
    """Alerts posted by others reach a ladder, if Sentinel's own witnesses agree."""

    guards: Guards = Guards()
    """What holds Sentinel back."""

    maintenance: tuple[Maintenance, ...] = ()
    """Times in which targets are left alone."""

    receivers: tuple[Receiver, ...] = ()
    """Who can be told."""

    route: Route = Field(default_factory=_route, examples=[_EXAMPLE_OF_A_ROUTE])
    """Who is told of what. Default: everything to the only receiver, else to Sentinel's log."""

    inhibit_rules: tuple[InhibitRule, ...] = ()
    """Which alerts keep which others quiet."""

    time_intervals: tuple[TimeInterval, ...] = ()
    """Named times, for routes and maintenance."""

    mute_time_intervals: tuple[TimeInterval, ...] = ()
    """Older name of `time_intervals`."""

    templates: tuple[FilePattern, ...] = ()
    """Files with templates for messages; `*` may stand in a name."""

    schedule: Schedule = Schedule()
    """Planned restarts, the digest, the heartbeat."""

    audit: Audit = Audit()
    """Who is told every deed, line by line, beside the log."""

    retention: Retention = Retention()
    """How long things are kept."""

    share_logs: Flag = False
    """Let log lines leave the host in messages; prompts are stripped either way."""

    def override_for(self, target: str) -> TargetOverride:
        return self.targets.override_for(target)

    def mode_for(self, target: str, remedy_mode: Mode | None = None) -> Mode:
        return strictest(self.mode, self.override_for(target).mode, remedy_mode)

    def receiver(self, name: str) -> Receiver:
        """The receiver of that name; `log` is always there."""
        return next((r for r in self.receivers if r.name == name), Receiver(name=name))

    @property
    def intervals(self) -> dict[str, TimeInterval]:
        return {i.name: i for i in (*self.time_intervals, *self.mute_time_intervals)}
