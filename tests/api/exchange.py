"""HTTP as any client speaks it, without Sentinel's own."""

import http.client
import json
import socket
from pathlib import Path
from typing import Any


def over_unix(path: Path) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("sentinel", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    return connection


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    url: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    try:
        connection.request(method, url, sent, headers or {})
        response = connection.getresponse()
        read = response.read()
    finally:
        connection.close()
    is_json = response.getheader("content-type", "").startswith("application/json")
    return response.status, json.loads(read) if is_json else read.decode()
