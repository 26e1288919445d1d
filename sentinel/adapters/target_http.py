"""Asks targets over HTTP: a scrape, a health check, one token. Failures are values.

A target may be rude: dribble, never end, be huge, or answer something else than HTTP. So the
deadline is over everything from the name look-up to the last byte, and bytes are counted as
they come, after decompression too. Lives on the network thread's event loop.
"""

import asyncio
import errno
import ipaddress
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.http import HttpProcessingError

from sentinel import __version__
from sentinel.core.model.target import Answer, Completion
from sentinel.core.onetoken import (
    FORMS,
    Form,
    first_model,
    is_not_offered,
    is_refusal,
    short,
    why_no_token,
)
from sentinel.ports import Clock

MAX_BODY = 16 << 20  # bytes

_RANK = "X-data-parallel-rank"  # vLLM's own header: which engine is meant
_ROUNDS = 3  # of requests to all engines: a balancer of vLLM's own may not send each where we want
_MOST = 48  # of them at once

_FAILURES = (aiohttp.ClientError, HttpProcessingError, zlib.error, OSError, ValueError)


class _TooLargeError(Exception):
    """More bytes than the caller would take."""


class _MalformedError(ValueError):
    """Not the HTTP we speak."""


@dataclass(slots=True)
class _Got:
    """How far an exchange came before it ended, well or not."""

    connected: bool = False
    status: int | None = None
    body: bytes = b""


class TargetHttp:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._forms: dict[str, Form] = {}  # by url: what worked last time

    async def get(
        self,
        url: str,
        *,
        timeout: float,  # noqa: ASYNC109 - a total, and a value when it passes
        max_bytes: int = MAX_BODY,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One GET, within `timeout` seconds in all. Redirects are answers, not followed."""
        return await self._ask("GET", url, limit=timeout, max_bytes=max_bytes, headers=headers)

    async def complete(
        self, url: str, *, api_key: str | None, deadline: float, ranks: Sequence[str] = ()
    ) -> Completion:
        """Have the engine work for one token, within `deadline` seconds in all.

        `ranks`: the data-parallel engines that each have to. At the deadline connections are
        closed, so that no request stays queued.
        """
        at, begun = self._clock.now(), self._clock.monotonic()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

        def left() -> float:
            return max(deadline - (self._clock.monotonic() - begun), 0.0)

        form = None
        answer = await self._ask("GET", f"{url}/v1/models", limit=left(), headers=_own(headers))
        model = first_model(answer)
        if model is not None:
            form, answer = await self._of_all(url, model, headers, left, ranks)
        why_not = why_no_token(answer, form)
        unauthorised = answer.status in (401, 403)
        lists_none = model is None and answer.ok
        return Completion(
            at=at,
            took=self._clock.monotonic() - begun,
            ok=not why_not,
            model=model,
            says=why_not,
            refused=answer.failure == "refused",
            timed_out=answer.failure == "timeout",
            unauthorised=unauthorised,
            unsupported=lists_none or (is_refusal(answer) and not unauthorised),
        )

    async def _of_all(
        self,
        url: str,
        model: str,
        headers: Mapping[str, str],
        left: Callable[[], float],
        ranks: Sequence[str],
    ) -> tuple[Form, Answer]:
        """What one engine answered: the worst answer of all."""
        aimed = [{**headers, _RANK: rank} for rank in ranks] * _ROUNDS
        tries = [
            self._one_token(url, model, each, left)
            for each in aimed[: max(_MOST, len(ranks))] or [{**headers}]
        ]
        answers = await asyncio.gather(*tries)
        return next((one for one in answers if why_no_token(one[1], one[0])), answers[0])

    async def _one_token(
        self, url: str, model: str, headers: Mapping[str, str], left: Callable[[], float]
    ) -> tuple[Form, Answer]:
        known = self._forms.get(url, FORMS[0])
        for form in (known, *(form for form in FORMS if form is not known)):
            answer = await self._ask(
                "POST",
                url + form.path,
                limit=left(),
                headers=_own(headers),
                ask={"model": model, **form.ask},
            )
            if not is_not_offered(answer):
                self._forms[url] = form  # what was refused is not asked again and again
                break
        return form, answer

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(
        self,
        method: str,
        url: str,
        *,
        limit: float,
        max_bytes: int = MAX_BODY,
        headers: Mapping[str, str] | None = None,
        ask: Mapping[str, Any] | None = None,
    ) -> Answer:
        at, begun = self._clock.now(), self._clock.monotonic()
        got, failure, says = _Got(), "", ""
        try:
            async with asyncio.timeout(limit):
                options = {"headers": headers, "json": ask, "ssl": _verified(url)}
                await self._exchange(method, url, options, max_bytes, got)
        except TimeoutError:
            stage = "connected, but no complete answer" if got.connected else "no connection"
            failure, says = "timeout", f"{stage} within {limit:.3g} s"
        except _TooLargeError:
            failure, says = "too_large", f"the answer is larger than {max_bytes} bytes"
        except _FAILURES as error:
            failure, says = _sorted_out(error)
        took = self._clock.monotonic() - begun
        return Answer(
            at=at, took=took, status=got.status, body=got.body, failure=failure, says=says
        )

    async def _exchange(
        self, method: str, url: str, options: Mapping[str, Any], max_bytes: int, got: _Got
    ) -> None:
        request = self._opened().request(
            method, url, allow_redirects=False, trace_request_ctx=got, **options
        )
        async with request as response:
            got.status = response.status
            try:
                got.body = await _read(response, max_bytes)
            except BaseException:
                response.close()  # whatever is still to come is not wanted
                raise

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A connection of ours that outlives its request would pass for a client's. Nor is
                # one worth keeping: Uvicorn closes it after 5 s, in the face of the next request.
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),  # ours is over more than aiohttp's
                auto_decompress=False,  # ours stops in the middle of a bomb
                headers={
                    "User-Agent": f"vllm-sentinel/{__version__}",
                    "Accept-Encoding": "identity",
                },
                trust_env=False,
                trace_configs=[_connection_trace()],
            )
        return self._session


def _own(headers: Mapping[str, str]) -> dict[str, str]:
    """Each request under an id of its own: two of one id have killed engines."""
    return {**headers, "X-Request-Id": f"sentinel-probe-{uuid.uuid4().hex}"}


def _connection_trace() -> aiohttp.TraceConfig:
    async def connected(_session: object, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx.connected = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(connected)
    trace.on_connection_reuseconn.append(connected)
    return trace


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    if (response.content_length or 0) > max_bytes:
        raise _TooLargeError
    inflate = _inflater(response.headers.get("Content-Encoding", "identity"))
    body, raw = bytearray(), 0
    async for chunk in response.content.iter_any():
        raw += len(chunk)
        body += inflate.decompress(chunk, max_bytes + 1 - len(body)) if inflate else chunk
        if max(len(body), raw) > max_bytes:
            raise _TooLargeError
    if inflate and not inflate.eof:
        raise _MalformedError("the compressed answer broke off")
    return bytes(body)


def _inflater(encoding: str) -> Any:  # zlib's class has no public name
    """We ask for none, but a server may compress all the same."""
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(wbits=47)  # either header, found out by zlib
        case other:
            raise _MalformedError(f"the answer is encoded as {other[:20]!r}")


def _verified(url: str) -> bool:
    """A certificate can vouch for a name, and hardly ever for a container's address."""
    try:
        ipaddress.ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return True
    return False


def _sorted_out(error: Exception) -> tuple[str, str]:
    """A failure's kind, and the same in a few words."""
    if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
        return "refused", "connection refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "unreachable", "the connection was closed without an answer"
    if isinstance(error, OSError) and error.errno == errno.ECONNRESET:
        return "unreachable", "the connection was reset"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "malformed", "the answer broke off"
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "unreachable", "not an address that can be asked"
    if isinstance(error, aiohttp.ClientConnectionError | OSError):
        return "unreachable", short(str(error) or type(error).__name__)
    if isinstance(error, _MalformedError):
        return "malformed", str(error)
    return "malformed", "the answer is not HTTP"
