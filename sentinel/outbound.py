"""One POST to the outside world, for every receiver that speaks HTTP.

The address of a receiver is a password, and a library's exception quotes it. So nothing a
library raises leaves this file: a failure is told in our own words, and raised where no
other exception is being handled, so that it has neither cause nor context.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from sentinel import __version__
from sentinel.core.model.errors import Permanent, SentinelError, Transient

WITHIN = timedelta(seconds=10)
MOST_READ = 64 * 1024

Secret = Callable[[], str]
"""Reads a secret at each use, so that a rotated file is taken up without a reload.

What it raises is quoted if it is ours, and makes a send fail for now: nothing owed is lost.
"""

_HEADERS = {
    "Content-Type": "application/json; charset=utf-8",
    "User-Agent": f"Sentinel/{__version__}",
    "Accept-Encoding": "identity",  # what is read is what is counted against MOST_READ
}
_LATER = frozenset({408, 425, 429})
_MOVED_FOR_GOOD = frozenset({301, 308})
_REFUSED = frozenset({401, 403, 404, 405, 407, 410})  # the address or its secret, not the message


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)  # at most MOST_READ of it

    @property
    def json(self) -> Any:
        """The body as JSON, or None if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def retry_after(self) -> float | None:
        """Seconds the other side asks us to wait. A date is read against its own clock."""
        said = self.headers.get("Retry-After", "").strip()
        if said.isascii() and said.isdigit():
            return float(said[:9])
        try:
            wait = parsedate_to_datetime(said) - parsedate_to_datetime(self.headers["Date"])
        except (ValueError, TypeError, KeyError):
            return None
        return max(0.0, wait.total_seconds())


async def post(
    http: aiohttp.ClientSession,
    address: Secret,
    payload: object,
    *,
    to: str,
    within: timedelta = WITHIN,
) -> Reply:
    """What the other side, called `to` in errors, answered about this message.

    Raises `Transient` if there was no answer, or one that asks to come again later.
    """
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    outcome = await _exchange(http, address, body, within)
    if isinstance(outcome, str):
        raise Transient(f"{to}: {outcome}")
    if outcome is None:
        raise Permanent(
            f"{to}: its address is not a URL",
            hint="Write the whole address, beginning with http:// or https://.",
            receiver_refused=True,
        )
    if outcome.status in _LATER or outcome.status >= 500:
        wait = outcome.retry_after
        asked: dict[str, Any] = {} if wait is None else {"retry_after": wait}
        raise Transient(f"{to}: answered {outcome.status}", status=outcome.status, **asked)
    return outcome


def refusal(reply: Reply, *, to: str) -> SentinelError:
    """What an answer means that is neither success nor a request to come again later.

    The fact `receiver_refused` says that no other message would be taken either.
    """
    said = f"{to}: answered {reply.status}"
    if reply.status in _MOVED_FOR_GOOD:
        return Permanent(
            said,
            hint="Redirects are not followed: write the final address.",
            status=reply.status,
            receiver_refused=True,
        )
    if reply.status // 100 == 4:
        known: dict[str, Any] = {"receiver_refused": True} if reply.status in _REFUSED else {}
        return Permanent(said, status=reply.status, **known)
    return Transient(said, status=reply.status)


async def _exchange(
    http: aiohttp.ClientSession, address: Secret, body: bytes, within: timedelta
) -> Reply | str | None:
    """The answer; or in words why there is none; or None if the address cannot have one."""
    try:
        url = address().strip()
    except SentinelError as error:
        return f"its address cannot be read: {error.message} {error.hint}".rstrip()
    except (OSError, ValueError) as error:
        return f"its address cannot be read ({type(error).__name__})"
    if not url.lower().startswith(("http://", "https://")):
        return None
    try:
        async with (
            asyncio.timeout(within.total_seconds()),
            http.post(url, data=body, headers=_HEADERS, allow_redirects=False) as answer,
        ):
            return Reply(answer.status, answer.headers, await _beginning(answer))
    except TimeoutError:
        return f"no answer within {within.total_seconds():g} s"
    except (aiohttp.InvalidURL, UnicodeError):
        return None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _in_words(error)


async def _beginning(answer: aiohttp.ClientResponse) -> bytes:
    """As much of the body as is worth reading; the rest is left with the connection."""
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) >= MOST_READ:
            break
    return bytes(body[:MOST_READ])


def _in_words(error: Exception) -> str:
    """The kind of a failure, from its type alone: its text may quote the address."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known"
        case aiohttp.ClientSSLError():
            return "no secure connection could be made"
        case aiohttp.ClientConnectorError():
            return "no connection could be made"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the connection was broken off"
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return "what came back is not HTTP"
        case OSError():
            return f"could not be reached ({type(error).__name__})"
        case _:
            return f"the request failed ({type(error).__name__})"
