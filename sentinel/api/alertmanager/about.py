"""`status`: what Sentinel says of itself where a client expects an Alertmanager.

The version is that of the Alertmanager whose API this is, since clients decide by it what
they may ask; Sentinel's own is beside it.
"""

from typing import Any

from sentinel import __version__
from sentinel.api.snapshot import rfc3339
from sentinel.core.dispatch.board import Board

SPEAKS = "0.28.1"


def status(board: Board) -> dict[str, Any]:
    return {
        "cluster": {"peers": [], "status": "disabled"},
        "config": {"original": board.config},
        "uptime": rfc3339(board.started_at),
        "versionInfo": {
            "branch": "",
            "buildDate": "",
            "buildUser": "",
            "goVersion": "",
            "revision": "",
            "version": SPEAKS,
            "sentinel": __version__,
        },
    }
