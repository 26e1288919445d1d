"""One target as the loop knows it now. Only the loop's thread touches it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sentinel.core.model.container import Container
from sentinel.core.model.launch import Ending, Launch
from sentinel.core.model.target import Answer, Completion, Endpoint, Served, State
from sentinel.core.policy.guard import Held
from sentinel.core.policy.hang import Power
from sentinel.core.policy.progress import Pace
from sentinel.core.policy.witness import Load, Standing, Witnesses
from sentinel.core.sockets import Connections


@dataclass(slots=True, kw_only=True)
class Target:
    name: str
    container: Container
    seen_at: datetime
    seen_up_at: datetime | None = None  # in this launch
    looked_tick: float = 0.0  # monotonic: when the survey that last inspected it began
    heard_tick: float = 0.0  # when Docker last said something of it
    endpoint: Endpoint | None = None
    launch: Launch | None = None
    previous: Launch | None = None
    previous_ending: Ending | None = None
    previous_was_ready: bool = False
    standing: Standing = field(
        default_factory=lambda: Standing(state=State.UNKNOWN, because="not looked at yet")
    )
    since: datetime
    seen: Witnesses | None = None  # what it was last judged by
    crashed: bool = False
    start_failed: bool = False
    failing_since: datetime | None = None
    is_gone: bool = False  # Docker removed it when it exited; kept so that people hear of it
    # what it answered
    scraping: bool = False
    scrape: Answer | None = None
    scrape_ok_at: datetime | None = None
    last_body: bytes = b""  # of the last good scrape, of whichever launch
    checking: bool = False
    health: Answer | None = None
    dead_since: datetime | None = None
    probing: int = 0  # requests for one token that are out
    probe: Completion | None = None
    connections: Connections | None = None
    # what its series say
    load: Load = field(default_factory=Load)
    ttft_p99: float | None = None
    model: str | None = None
    answers_as_another: bool = False  # model than its command line names
    engines: dict[str, Pace] = field(default_factory=dict)  # by engine label
    read_at: datetime | None = None  # the scrape they were read from
    power: Power | None = None
    # what others say
    loading: str = ""  # how far a start has come, by its log
    pulled_at: datetime | None = None  # its image, by whomever
    told_to_stop_at: datetime | None = None  # Docker passed on a signal in this launch
    # what is held back
    held_action: str | None = None
    held: tuple[Held, ...] = ()

    @property
    def key(self) -> tuple[str, datetime | None]:
        """The launch that answers belong to: one that came for another is thrown away."""
        return self.container.id, self.container.started_at

    @property
    def is_awaited(self) -> bool:
        """Something that it has been asked is sure to be answered soon: it did so the last time."""
        well = self.scrape is not None and self.scrape.ok
        return well and (self.scraping or self.checking)

    @property
    def at_issue(self) -> Launch | None:
        """The launch an incident is about: the one that crashed, also after another began."""
        ended = self.launch is not None and self.launch.ending is not None
        return self.previous if self.crashed and not ended and self.previous else self.launch

    @property
    def served(self) -> Served | None:
        """What this launch has done for others, while ours had no answer.

        None unless each of its engines has completed requests, and has written tokens since.
        """
        paces, probe = self.engines.values(), self.probe
        if self.standing.state not in (State.SERVING, State.SATURATED) or probe is None:
            return None
        gave_up_at = probe.at + timedelta(seconds=probe.took)
        completed = [
            int(pace.counted.completed or 0) if pace.decoded_at > gave_up_at else 0
            for pace in paces
        ]
        if not all(completed) or not completed:
            return None
        waiting = int(self.load.waiting or 0)
        return Served(completed=min(completed), waiting=waiting, model=self.model)

    def begin_anew(self) -> None:
        """A new launch begins, or another container was made, perhaps not started yet."""
        if self.launch is not None:
            self.previous, self.previous_ending = self.launch, self.launch.ending
            self.previous_was_ready = self.launch.ready_at is not None
        self.launch = self.seen_up_at = None
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Nothing that the last one said holds for it."""
        self.scraping = self.checking = False
        self.probing = 0
        self.scrape = self.health = self.probe = self.seen = None
        self.scrape_ok_at = self.dead_since = self.read_at = None
        self.connections = self.power = self.told_to_stop_at = None
        self.load, self.ttft_p99, self.engines, self.loading = Load(), None, {}, ""
