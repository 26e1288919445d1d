"""What the loop speaks through. `assemble` builds each part; none of them knows the loop."""

from dataclasses import dataclass
from datetime import datetime

from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.model.series import Store
from sentinel.ports import Clock
from sentinel.runtime.act import Actor
from sentinel.runtime.announce import Announcer
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.connections import ConnectionWatch
from sentinel.runtime.decide import Decider
from sentinel.runtime.deliver import Deliver
from sentinel.runtime.depict import Painter
from sentinel.runtime.diagnose import Diagnoser
from sentinel.runtime.dispatch import Dispatch
from sentinel.runtime.follow import Follower
from sentinel.runtime.gpus import Gpus
from sentinel.runtime.hindsight import LookBack
from sentinel.runtime.history import History
from sentinel.runtime.hostwatch import HostWatch
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.judge import Judge
from sentinel.runtime.maintain import Maintenance
from sentinel.runtime.mirror import Mirror
from sentinel.runtime.outside import OutsideRules
from sentinel.runtime.probe import Prober
from sentinel.runtime.remember import SeriesFile
from sentinel.runtime.scrape import Scraper
from sentinel.runtime.sightcheck import SightCheck
from sentinel.runtime.tally import Tally
from sentinel.runtime.vitals import Vitals
from sentinel.runtime.watch import Watch
from sentinel.store.memory import Memory


@dataclass(slots=True, kw_only=True)
class Parts:
    clock: Clock
    inbox: Inbox
    memory: Memory
    store: Store
    history: History
    watch: Watch
    follower: Follower
    scraper: Scraper
    prober: Prober
    connections: ConnectionWatch
    gpus: Gpus
    hostwatch: HostWatch
    vitals: Vitals
    sight: SightCheck
    judge: Judge
    evaluator: Evaluator
    elsewhere: OutsideRules
    series: SeriesFile | None
    fed_since: datetime  # since when the store holds samples
    casebook: Casebook
    diagnoser: Diagnoser
    decider: Decider
    actor: Actor
    dispatch: Dispatch
    maintenance: Maintenance
    lookback: LookBack
    mirror: Mirror
    announcer: Announcer
    deliver: Deliver
    painter: Painter
    tally: Tally
