"""WeCom (企业微信), by group robot.

WeCom answers HTTP 200 to everything: only a JSON `errcode` of 0 is success. Lengths are
bytes of UTF-8. The whole address is a password, and WeCom's `errmsg` may quote it, so
neither is ever repeated: errors carry the number alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import aiohttp

from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.message import Notice
from sentinel.core.voice.plain import cut
from sentinel.core.voice.say import Said, say
from sentinel.core.voice.words import Language
from sentinel.outbound import WITHIN, Secret, post, refusal

_TO = "WeCom"
_MOST_BYTES = {"markdown": 4096, "text": 2048}
_TOO_LONG = 40058
_TOO_OFTEN = frozenset({45009, 45033})
_NO_ROBOT = frozenset({93000, 93004, 93008})  # wrong key or removed, switched off, not in the group
_TRIES_IF_UNKNOWN = 8
_EVERYBODY = "@all"
# What WeCom would read as its own markup: a mention, a colour, a link.
_MARKUP = re.compile(r"<(?=[@/!A-Za-z])|\](?=\()")

Message = Literal["markdown", "text"]


@dataclass(frozen=True, slots=True)
class Mentions:
    users: Sequence[str] = ()  # user ids, or "@all"
    mobiles: Sequence[str] = ()

    @property
    def fit_markdown(self) -> bool:
        """Markdown can mention users one by one, but neither everybody nor a mobile number."""
        return not self.mobiles and _EVERYBODY not in self.users


class WeComNotifier:
    """Keeps the `Notifier` promise."""

    def __init__(
        self,
        url: Secret,
        http: aiohttp.ClientSession,
        *,
        language: Language = "en",
        message_type: Message = "markdown",
        mentions: Mentions = Mentions(),
        timeout: timedelta = WITHIN,
    ) -> None:
        self._url = url
        self._http = http
        self._language = language
        self._type = message_type
        self._mentions = mentions
        self._timeout = timeout

    async def send(self, notice: Notice) -> None:
        said = say(notice, language=self._language)
        code = await self._post(self.payload(said))
        if code == _TOO_LONG:
            code = await self._post(self.payload(said, shortened=True))
        if code != 0:
            raise _failure(code)

    def payload(self, said: Said, *, shortened: bool = False) -> dict[str, Any]:
        mentions = self._mentions if said.calls else Mentions()
        # Whom markdown cannot mention is called by a text message instead.
        kind = self._type if mentions.fit_markdown else "text"
        most = _MOST_BYTES[kind] // (2 if shortened else 1)
        if kind == "markdown":
            calls = "".join(f"<@{user}>" for user in mentions.users)
            rows = (f"**{defuse(said.title)}**", *(f"> {defuse(row)}" for row in said.rows))
            room = most - len(calls.encode()) - 1
            text = cut("\n".join(rows), room, _bytes)
            return {"msgtype": kind, kind: {"content": f"{calls}\n{text}" if calls else text}}
        text = cut("\n".join(map(defuse, (said.title, *said.rows))), most, _bytes)
        lists = {
            "mentioned_list": list(mentions.users),
            "mentioned_mobile_list": list(mentions.mobiles),
        }
        called = {key: whom for key, whom in lists.items() if whom}
        return {"msgtype": kind, kind: {"content": text, **called}}

    async def _post(self, payload: dict[str, Any]) -> int:
        reply = await post(self._http, self._url, payload, to=_TO, within=self._timeout)
        if reply.status // 100 != 2:
            raise refusal(reply, to=_TO)
        said = reply.json
        code = said.get("errcode") if isinstance(said, dict) else None
        if not isinstance(code, int) or isinstance(code, bool):
            raise Transient(f"{_TO}: answered, but not as WeCom does", status=reply.status)
        return code


def defuse(text: str) -> str:
    """`text` with a zero-width space inside whatever WeCom would take for markup."""
    return _MARKUP.sub("\\g<0>\u200b", text)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _failure(code: int) -> SentinelError:
    said = f"{_TO}: answered errcode {code}"
    if code in _NO_ROBOT:
        return Permanent(
            said,
            hint="The robot was removed or its key is wrong: put a new address in url_file.",
            errcode=code,
            receiver_refused=True,
        )
    if code == _TOO_LONG:
        return Permanent(said, hint="WeCom finds the message too long.", errcode=code)
    if code in _TOO_OFTEN:
        return Transient(said, errcode=code, retry_after=60.0)
    return Transient(said, errcode=code, at_most=_TRIES_IF_UNKNOWN)
