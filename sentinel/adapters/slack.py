"""Slack, by incoming webhook, as plain text.

Slack reads `<…>` as a command (`<!channel>` wakes everybody), so everything that is not
ours is escaped, and cut before it is escaped. The address is a password.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import aiohttp

from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.message import Notice
from sentinel.core.voice.plain import cut
from sentinel.core.voice.say import say
from sentinel.core.voice.words import Language
from sentinel.outbound import WITHIN, Reply, Secret, post, refusal

_LONGEST = 3000  # characters, as Slack counts them: after escaping
_TO = "Slack"
_CODE = re.compile(rb"[a-z_]{2,40}")
# What Slack says with 400 when it is the message that it will not have.
_BAD_MESSAGE = frozenset({b"invalid_payload", b"no_text", b"invalid_blocks", b"msg_too_long"})


class SlackNotifier:
    """Keeps the `Notifier` promise."""

    def __init__(
        self,
        url: Secret,
        http: aiohttp.ClientSession,
        *,
        language: Language = "en",
        mention: Sequence[str] = (),
        timeout: timedelta = WITHIN,
    ) -> None:
        self._url = url
        self._http = http
        self._language = language
        self._mention = tuple(mention)
        self._timeout = timeout

    async def send(self, notice: Notice) -> None:
        reply = await post(
            self._http, self._url, self.payload(notice), to=_TO, within=self._timeout
        )
        if not _took(reply):
            raise _failure(reply)

    def payload(self, notice: Notice) -> dict[str, Any]:
        said = say(notice, language=self._language)
        calls = (
            " ".join(map(_mention, self._mention)) + "\n" if said.calls and self._mention else ""
        )
        text = "\n".join((said.title, *said.rows))
        return {
            "text": calls + escape(cut(text, _LONGEST, lambda part: len(escape(part)))),
            "mrkdwn": False,
            "parse": "none",
            "link_names": False,
            "unfurl_links": False,
            "unfurl_media": False,
        }


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mention(who: str) -> str:
    """Ids of user groups begin with S."""
    return f"<!subteam^{escape(who)}>" if who.startswith("S") else f"<@{escape(who)}>"


def _took(reply: Reply) -> bool:
    if reply.status != 200:
        return False
    said = reply.json
    return reply.body.strip() == b"ok" or (isinstance(said, dict) and said.get("ok") is True)


def _failure(reply: Reply) -> SentinelError:
    said = reply.body.strip()
    code = said.decode() if _CODE.fullmatch(said) else ""
    if reply.status // 100 == 2:
        return Transient(f"{_TO}: answered {reply.status}, but not as Slack does", code=code)
    if reply.status in {400, 403, 404, 410}:
        about_us: dict[str, Any] = {} if said in _BAD_MESSAGE else {"receiver_refused": True}
        return Permanent(
            f"{_TO}: refuses this webhook: {code or reply.status}",
            hint="Create a new incoming webhook and put its address in api_url_file.",
            status=reply.status,
            **about_us,
        )
    return refusal(reply, to=_TO)
