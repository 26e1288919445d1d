"""Carries out what people ask of the running daemon, on the loop's thread."""

from collections.abc import Callable
from typing import Any

from sentinel import __version__
from sentinel.core.model.command import (
    Acknowledge,
    Act,
    Approve,
    Command,
    ExpireSilence,
    Pause,
    PostAlerts,
    Reject,
    Reload,
    Resume,
    SetSilence,
)
from sentinel.core.model.errors import Permanent
from sentinel.core.model.incident import incident_number
from sentinel.core.model.intent import Intent, Outcome, intent_number
from sentinel.core.model.moment import stamp_or_none
from sentinel.core.policy.guard import holds
from sentinel.ports import Clock
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.decide import Decider
from sentinel.runtime.dispatch import Dispatch
from sentinel.runtime.history import History
from sentinel.runtime.order import Later, Orders
from sentinel.runtime.watch import Watch
from sentinel.store.journal import Pause as PauseRow
from sentinel.store.memory import Memory
from sentinel.telemetry import events

Json = dict[str, Any]
Noted = Pause | Resume | Acknowledge | Approve | Reject | SetSilence | ExpireSilence


class Obedience:
    def __init__(  # noqa: PLR0913, PLR0917 - one part of each kind
        self,
        clock: Clock,
        memory: Memory,
        history: History,
        watch: Watch,
        decider: Decider,
        casebook: Casebook,
        dispatch: Dispatch,
        reload: Callable[[str], Json],
    ) -> None:
        self._clock, self._memory, self._history = clock, memory, history
        self._watch, self._decider, self._casebook = watch, decider, casebook
        self._dispatch = dispatch
        self._reload = reload
        self._orders = Orders(clock, memory, watch, decider, casebook)

    def obey(self, command: Command) -> Json | Later:
        """Raises `Permanent` with fact `status` if it is refused."""
        match command:
            case Reload():
                return self._reload(command.by)
            case PostAlerts():
                return self._post(command)
            case Act():
                return self._orders.take(command)
        with self._memory.together():
            return self._note(command)

    def _note(self, command: Noted) -> Json:
        match command:
            case Pause():
                return self._pause(command)
            case Resume():
                return self._resume(command)
            case Acknowledge():
                return self._acknowledge(command)
            case Approve():
                return self._approve(command)
            case Reject():
                return self._reject(command)
            case SetSilence():
                return {"silenceID": self._dispatch.set_silence(command, self._clock.now())}
            case ExpireSilence():
                self._dispatch.expire_silence(command, self._clock.now())
                return {}

    def _post(self, command: PostAlerts) -> Json:
        """What is valid is kept, also where something else beside it is not."""
        now = self._clock.now()
        with self._memory.together():
            refused = self._dispatch.post(command.alerts, self._watch.targets, now)
        if refused:
            raise Permanent("; ".join(refused), status=400)
        return {}

    def _pause(self, command: Pause) -> Json:
        now = self._clock.now()
        self._known(command.target)
        until = now + command.for_ if command.for_ is not None else None
        self._memory.journal.pause(PauseRow(target=command.target, until=until, by=command.by), now)
        return {"paused": command.target or "everything", "until": stamp_or_none(until)}

    def _resume(self, command: Resume) -> Json:
        self._known(command.target)
        was_paused = self._memory.journal.resume(command.target)
        return {"resumed": command.target or "everything", "was_paused": was_paused}

    def _acknowledge(self, command: Acknowledge) -> Json:
        now, number = self._clock.now(), incident_number(command.incident)
        if number is None or not self._memory.incidents.acknowledge(number, command.by, now):
            raise Permanent(
                f"there is no open incident {command.incident}",
                hint="See sentinel incidents.",
                status=404,
            )
        self._casebook.refresh_incident(number)
        self._history.write(
            events.INCIDENT_ACKNOWLEDGED, "seen by a person", at=now, incident=number, by=command.by
        )
        return {"acknowledged": command.incident, "by": command.by}

    def _approve(self, command: Approve) -> Json:
        """Agreed once, while it waits, and with every guard but the mode asked again."""
        now, waiting = self._clock.now(), self._waiting(command.intent)
        target = self._watch.targets.get(waiting.wish.target)
        if target is None:
            raise Permanent(f"{waiting.wish.target} is gone", status=409)
        situation = self._decider.situation(
            target,
            waiting.wish.action,
            waiting.wish.mode,
            now,
            change=self._decider.prospects.known(target) if waiting.wish.is_made_anew else None,
        )
        held = holds(situation, but=frozenset({"mode"}))
        if held:
            raise Permanent(
                f"held by {held[0].guard}: {held[0].because}", status=409, guard=held[0].guard
            )
        approved = self._memory.journal.approve(waiting.number, now)
        if approved is None:
            raise Permanent(f"{waiting.id} no longer waits", status=409)
        self._tell(approved, events.INTENT_APPROVED, "a person agreed", command.by)
        self._tell(approved, events.INTENT_RESERVED, approved.wish.because, command.by)
        return {"approved": approved.id, "by": command.by}

    def _reject(self, command: Reject) -> Json:
        now, waiting = self._clock.now(), self._waiting(command.intent)
        because = command.because or "a person said no"
        self._memory.journal.close(waiting, Outcome.REJECTED, because, now)
        self._tell(waiting, events.INTENT_REJECTED, because, command.by)
        return {"rejected": waiting.id, "by": command.by}

    def _waiting(self, text: str) -> Intent:
        number = intent_number(text)
        intent = self._memory.journal.get(number) if number is not None else None
        if intent is None:
            raise Permanent(f"there is no intent {text}", hint="See sentinel intents.", status=404)
        if intent.proposed_at is None or intent.reserved_at or intent.closed_at:
            says = f"already {intent.outcome}" if intent.outcome else "already under way"
            raise Permanent(f"{intent.id} does not wait for anybody: {says}", status=409)
        if intent.expires_at is not None and self._clock.now() >= intent.expires_at:
            says = f"nobody agreed by {intent.expires_at:%H:%M:%S} UTC"
            raise Permanent(f"{intent.id} does not wait for anybody: {says}", status=409)
        return intent

    def _known(self, target: str | None) -> None:
        if target is not None and target not in self._watch.targets:
            raise Permanent(f"there is no target {target}", hint="See sentinel status.", status=404)

    def _tell(self, intent: Intent, event: str, because: str, by: str) -> None:
        self._history.write(
            event,
            because,
            at=self._clock.now(),
            target=intent.wish.target,
            incident=intent.wish.incident,
            by=by,
            intent=intent.id,
            action=intent.wish.action,
            config=self._decider.plan.fingerprint[:12] or None,
            version=__version__,
        )
