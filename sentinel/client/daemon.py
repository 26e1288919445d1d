"""A running daemon, as a Python object; speaks HTTP over its unix socket.

Raises what the daemon raised: `Permanent` (fact `status`) when it refuses, `Transient` when
it does not answer, `Ambiguous` when a command was sent and no answer came. Standard library
only: `sentinel status` must start fast at 3 a.m.
"""

import errno
import http.client
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient

LONGEST_ANSWER = 64 * 1024 * 1024


class Daemon:
    def __init__(self, socket: Path, *, answer_within: float = 15.0) -> None:
        self._socket = socket
        self._answer_within = answer_within

    def status(self) -> dict[str, Any]:
        return self._call("GET", "status")

    def incidents(self, *, limit: int = 100, status: str | None = None) -> list[dict[str, Any]]:
        query = {"limit": str(limit), **({"status": status} if status else {})}
        found: list[dict[str, Any]] = self._call("GET", f"incidents?{urlencode(query)}")[
            "incidents"
        ]
        return found

    def incident(self, name: str) -> dict[str, Any]:
        return self._call("GET", f"incidents/{_segment(name)}")

    def intents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("GET", "intents")["intents"]
        return found

    def scorecard(self) -> dict[str, Any]:
        return self._call("GET", "scorecard")

    def explain(self, name: str) -> dict[str, Any]:
        return self._call("GET", f"explain/{_segment(name)}")

    def pause(self, target: str | None, for_: str | None) -> dict[str, Any]:
        return self._call("POST", "pause", {"target": target, "for": for_})

    def resume(self, target: str | None) -> dict[str, Any]:
        return self._call("POST", "resume", {"target": target})

    def reload(self) -> dict[str, Any]:
        return self._call("POST", "reload", {})

    def acknowledge(self, incident: str) -> dict[str, Any]:
        return self._call("POST", f"incidents/{_segment(incident)}/ack", {})

    def approve(self, intent: str) -> dict[str, Any]:
        return self._call("POST", f"intents/{_segment(intent)}/approve", {})

    def reject(self, intent: str, because: str) -> dict[str, Any]:
        return self._call("POST", f"intents/{_segment(intent)}/reject", {"because": because})

    def act(self, action: str, target: str, how: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("POST", f"act/{_segment(action)}/{_segment(target)}", how)

    def query(self, expression: str, more: Mapping[str, str]) -> dict[str, Any]:
        """The answer of Prometheus's API: at one time, or over time if `more` has a start.

        Raises `Ambiguous` if there was no answer in time.
        """
        path = "query_range" if "start" in more else "query"
        return self._call("GET", f"/api/v1/{path}?{urlencode({'query': expression, **more})}")

    def silences(self) -> list[dict[str, Any]]:
        """As Alertmanager's API tells them."""
        found: list[dict[str, Any]] = self._answer("GET", "/api/v2/silences")
        return found

    def silence(self, silence: Mapping[str, Any]) -> dict[str, Any]:
        """Make it. The answer has its `silenceID`."""
        made: dict[str, Any] = self._answer("POST", "/api/v2/silences", silence)
        return made

    def expire(self, silence: str) -> None:
        self._answer("DELETE", f"/api/v2/silence/{_segment(silence)}")

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        answer = self._answer(method, path, body)
        if not isinstance(answer, dict):
            raise self._no_answer(method, ValueError("not an object"))
        return answer

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What the daemon says, whatever it is; None if it says nothing."""
        connection = _UnixConnection(self._socket, self._answer_within)
        try:
            self._connect(connection)
            status, answer = self._exchange(connection, method, path, body)
        finally:
            connection.close()
        if status >= 400:
            raise _refusal(status, answer)
        return answer

    def _connect(self, connection: "_UnixConnection") -> None:
        try:
            connection.connect()
        except OSError as error:
            raise Transient(
                f"the daemon does not answer on {self._socket}: {error.strerror or error}",
                hint=_way_out(error),
            ) from error

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
    ) -> tuple[int, Any]:
        sent = None if body is None else json.dumps(body).encode()
        try:
            url = path if path.startswith("/") else f"/api/sentinel/v1/{path}"
            connection.request(method, url, sent, {"content-type": "application/json"})
            response = connection.getresponse()
            read = response.read(LONGEST_ANSWER)
            return response.status, json.loads(read) if read else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._no_answer(method, error) from error

    def _no_answer(self, method: str, error: Exception) -> SentinelError:
        says = str(error) or type(error).__name__
        if method != "GET":
            return Ambiguous(
                f"the daemon took the request but did not answer: {says}",
                hint="It may have been done: look with sentinel status before you try again.",
            )
        return Transient(
            f"the daemon does not answer on {self._socket}: {says}",
            hint="Is it stuck? systemctl status sentinel; journalctl -u sentinel -n 50",
        )


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("sentinel", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def _segment(name: str) -> str:
    return quote(name, safe="")


def _way_out(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "You may not use this socket: use sudo, or join its group (ls -l shows which)."
    return (
        "Is it running? systemctl status sentinel. On another socket? --socket or SENTINEL_SOCKET."
    )


def _refusal(status: int, answer: Any) -> SentinelError:
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, str):
        return _refusal_of_query(str(answer.get("errorType")), error)
    told = error if isinstance(error, dict) else _told_by_alertmanager(answer)
    message = str(told.get("message") or f"the daemon answered {status}")
    hint = str(told.get("hint") or "See sentinel status.")
    if status == 503:
        return Transient(message, hint=hint, status=status)
    if status == 504:
        return Ambiguous(message, hint=hint, status=status)
    return Permanent(
        message, hint=hint, status=status, guard=told.get("guard"), faults=told.get("faults")
    )


def _told_by_alertmanager(answer: Any) -> dict[str, Any]:
    """What Alertmanager's API tells in its own shapes: a text, or a text and a code."""
    message = answer.get("message") if isinstance(answer, dict) else answer
    return {"message": message} if isinstance(message, str) else {}


def _refusal_of_query(kind: str, message: str) -> SentinelError:
    """What Prometheus's API tells in its own shape."""
    if kind in ("timeout", "canceled"):
        return Ambiguous(message, hint="Ask for fewer series, or for less time.")
    if kind == "unavailable":
        return Transient(message, hint="Ask again in a moment; see sentinel status.")
    if kind == "bad_data":
        return Permanent(message, hint="See sentinel query --help.", status=400)
    hint = "The expression has no answer over the present series."
    return Permanent(message, hint=hint, status=409)
