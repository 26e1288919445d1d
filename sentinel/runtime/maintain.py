"""Sets lowered limits back in times of maintenance: never at another time for its own sake."""

from collections.abc import Mapping
from datetime import datetime

from sentinel.core.model.incident import Subject
from sentinel.core.model.intent import Action, Mode, Wish
from sentinel.core.model.record import SENTINEL
from sentinel.core.model.target import State
from sentinel.core.policy.change import Restore
from sentinel.core.policy.guard import holds
from sentinel.core.recreate.inspected import ORIGINAL
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.circumstances import maintenance_of
from sentinel.runtime.decide import Decider
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory


class Maintenance:
    def __init__(self, memory: Memory, casebook: Casebook, decider: Decider) -> None:
        self._memory, self._casebook, self._decider = memory, casebook, decider

    def look(self, targets: Mapping[str, Target], now: datetime) -> None:
        """Once a turn. Only what has no work in hand, and no trouble."""
        plan = self._decider.plan
        for target in targets.values():
            if ORIGINAL not in target.container.labels:
                continue
            interval = maintenance_of(target.name, plan, now)
            is_free = target.standing.state is State.IDLE
            if interval and is_free and self._casebook.case_of_target(target.name) is None:
                self._restore(target, interval, now)

    def _restore(self, target: Target, interval: str, now: datetime) -> None:
        mode, started_at = self._decider.plan.target(target.name).mode, target.container.started_at
        if mode is not Mode.ACT or started_at is None:
            return
        change = self._decider.prospects.of(target, Restore())
        if change is None or change.edited is None:
            return
        situation = self._decider.situation(target, Action.RESTORE, mode, now, change=change)
        if holds(situation):
            return
        because = f"maintenance ({interval}): its lowered --max-num-seqs is set back"
        wish = Wish(
            target=target.name,
            action=Action.RESTORE,
            mode=mode,
            because=because,
            by=SENTINEL,
            container_id=target.container.id,
            saw_started_at=started_at,
            incident=self._casebook.open(
                Subject(kind="target", name=target.name), "info", because, now
            ),
            limit=change.limit,
            restores=True,
        )
        self._decider.resolutions.write_down(wish, change, self._decider.plan, now)
