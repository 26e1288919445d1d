"""Who may ask what over TCP: changing state needs the token, reading only from outside.

On the unix socket the file's mode and group have decided already. A token that cannot be
read, or is empty, lets nobody in. New routes are guarded unless listed here.
"""

import hmac
from collections.abc import Callable

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel.api.answers import failure
from sentinel.core.model.errors import SentinelError

OPEN = frozenset({"/-/healthy", "/-/ready", "/metrics"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Prometheus's clients POST long queries; nothing is changed by one.
READ_BY_POST = frozenset(
    {
        f"/api/v1/{path}"
        for path in (
            "query",
            "query_range",
            "query_exemplars",
            "format_query",
            "series",
            "labels",
        )
    }
)


class Gate:
    """ASGI middleware of the TCP listener."""

    def __init__(self, app: ASGIApp, *, token: Callable[[], str] | None, open_reads: bool) -> None:
        self._app = app
        self._token = token
        self._open_reads = open_reads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        if self._needs_token(request):
            why, hint = self._refusal(request)
            if why:
                await failure(401, why, hint)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _needs_token(self, request: Request) -> bool:
        path, method = request.url.path, request.method
        reads = method in READING or (method == "POST" and path in READ_BY_POST)
        if reads and path in OPEN:
            return False
        return not (reads and self._open_reads)

    def _refusal(self, request: Request) -> tuple[str, str]:
        """Why not, and what to try; empty if the token is right."""
        if self._token is None:
            return (
                "this address takes no such request: no token is configured",
                "Set api.token_file, or use the unix socket.",
            )
        try:
            expected = self._token().strip()
        except (OSError, ValueError, SentinelError):
            return "the token cannot be read", "Check api.token_file; nobody is let in meanwhile."
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if not expected or kind.lower() != "bearer":
            return "this needs the token", "Send `Authorization: Bearer …` (api.token_file)."
        if not hmac.compare_digest(given.strip().encode(), expected.encode()):
            return "the token is wrong", "It is the content of api.token_file."
        return "", ""
