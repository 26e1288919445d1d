"""The receiver named `log`: one structured line a message, where the daemon logs.

It is the default, so that an installation without any receiver still says what it finds.
"""

import structlog

from sentinel.core.model.message import Notice
from sentinel.core.voice.say import say
from sentinel.core.voice.words import Language

MESSAGE_LOGGED = "message_logged"


class LogNotifier:
    """Keeps the `Notifier` promise. It cannot fail."""

    def __init__(self, *, language: Language = "en") -> None:
        self._language = language

    async def send(self, notice: Notice) -> None:
        said = say(notice, language=self._language)
        decision = notice.decision
        log = structlog.get_logger()
        tell = log.warning if said.calls else log.info
        tell(
            MESSAGE_LOGGED,
            kind=notice.kind,
            title=said.title,
            says=list(said.rows),
            incident=(notice.incident or {}).get("id"),
            target=notice.facts.get("target"),
            guard=decision.guard if decision else None,
            because=decision.because if decision else notice.facts.get("because", ""),
        )
