"""One target as the loop knows it now. Only the loop's thread touches it."""

from dataclasses import dataclass, field
from datetime import datetime

from sentinel.core.model.container import Container
from sentinel.core.model.launch import Ending, Launch
from sentinel.core.model.target import Answer, Completion, Endpoint, State
from sentinel.core.policy.guard import Held
from sentinel.core.policy.state import Load, Standing

Progress = dict[str, tuple[float | None, ...]]  # per engine label


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
    previous_ending: Ending | None = None
    previous_was_ready: bool = False
    standing: Standing = field(
        default_factory=lambda: Standing(state=State.UNKNOWN, because="not looked at yet")
    )
    since: datetime
    crashed: bool = False
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
    probing: bool = False
    probe: Completion | None = None
    # what its series say
    load: Load = field(default_factory=Load)
    ttft_p99: float | None = None
    model: str | None = None
    progress: Progress = field(default_factory=dict)
    progress_at: datetime | None = None
    # what is held back
    held_action: str | None = None
    held: tuple[Held, ...] = ()

    @property
    def key(self) -> tuple[str, datetime | None]:
        """The launch that answers belong to: one that came for another is thrown away."""
        return self.container.id, self.container.started_at

    def forget_answers(self) -> None:
        """A new launch begins: nothing that the last one said holds for it."""
        self.scraping = self.checking = self.probing = False
        self.scrape = self.health = self.probe = None
        self.scrape_ok_at = self.dead_since = self.progress_at = None
        self.load, self.ttft_p99, self.progress = Load(), None, {}
