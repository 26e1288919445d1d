"""Minutes of every kind of heavy load on a real vLLM, and every word that Sentinel says meanwhile.

Nothing fails in it, so each word of a fault is a false one: the run ends with 1 if there was any.
Writes tests/soak/result.json and docs/soak.md.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sentinel
from deploy.testbed import Box, Testbed
from tests.blackbox import Daemon, Hook
from tests.e2e.clients import asking
from tests.e2e.conftest import PATIENCE, READY_WITHIN, SMALL
from tests.e2e.real_vllm import VLLM, install, run_real_vllm
from tests.e2e.watching import Listener
from tests.soak.page import GIVEN_UP, page

REPOSITORY = Path(__file__).parents[2]
LOADS: dict[str, dict[str, Any]] = {  # clients, and what each of them asks for
    "steady": {"count": 4, "prompt": 60, "tokens": 200},
    "saturating": {"count": 48, "prompt": 100, "tokens": 400},
    "burst": {"count": 96, "prompt": 30, "tokens": 20, "once": True},
    "long prompts": {"count": 12, "prompt": 1900, "tokens": 8},
    "aborting": {"count": 32, "prompt": 100, "tokens": 1500, "patience": 2},
    "quiet": {"count": 0, "prompt": 1, "tokens": 1},
}


def main() -> int:
    wanted = _arguments()
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="sentinel-soak-") as folder:
        bed = Testbed()
        stack.callback(bed.client.close)
        stack.callback(bed.clean)
        vllm = install()
        box = run_real_vllm(bed, vllm, "soak", args=SMALL).wait_ready(READY_WITHIN)
        hook = stack.enter_context(closing(Hook()))
        settings = {"prefix": box.name, "hook": hook.url, "override": PATIENCE}
        daemon = stack.enter_context(closing(Daemon(Path(folder), **settings).start()))
        daemon.wait_for_state(box.name, "idle")
        result = {**_facts(vllm.cuda), **_soak(box, daemon, wanted)}
    text = json.dumps(result, indent=2) + "\n"
    print(text)
    if wanted.write:
        (REPOSITORY / "tests/soak/result.json").write_text(text)
        (REPOSITORY / "docs/soak.md").write_text(page(result))
    return 1 if result["claims"] or result["restarts"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the order of loads")
    parser.add_argument("--no-write", dest="write", action="store_false")
    return parser.parse_args()


def _facts(cuda: bool) -> dict[str, Any]:
    return {
        "at": f"{datetime.now(UTC):%Y-%m-%d}",
        "sentinel": sentinel.__version__,
        "vllm": VLLM if not cuda else "GPU build",
    }


def _soak(box: Box, daemon: Daemon, wanted: argparse.Namespace) -> dict[str, Any]:
    dice, began = random.Random(wanted.seed), time.monotonic()
    started_at, over = box.state["StartedAt"], began + wanted.minutes * 60
    answers: dict[str, Counter[int]] = {name: Counter() for name in LOADS}
    listener = Listener(daemon, box.name)
    while time.monotonic() < over:
        name = dice.choice(list(LOADS))
        seconds = min(dice.uniform(15, 60), over - time.monotonic())
        print(f"{time.monotonic() - began:6.0f} s  {name} for {seconds:.0f} s", flush=True)
        with asking(box, **LOADS[name]) as clients:
            listener.listen(max(seconds, 1))
        answers[name].update(clients.answers)
    listener.listen(10)
    return {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "seed": wanted.seed,
        "requests": {name: _told(counted) for name, counted in answers.items() if counted},
        "seconds_in_state": _rounded(listener.states),
        "seconds_firing": _rounded(listener.alerts),
        "claims": sorted(listener.claims),
        "restarts": int(box.state["StartedAt"] != started_at),
        "actions": _actions(daemon),
    }


def _told(answers: Counter[int]) -> dict[str, int]:
    return {GIVEN_UP if status == 0 else str(status): n for status, n in answers.items()}


def _rounded(seconds: Mapping[str, float]) -> dict[str, int]:
    return {name: round(each) for name, each in seconds.items()}


def _actions(daemon: Daemon) -> int:
    found = daemon.ask("incidents").get("incidents", [])
    shown = [daemon.ask("incidents", "show", incident["id"]) for incident in found]
    return sum(len(incident.get("intents", [])) for incident in shown)


if __name__ == "__main__":
    sys.exit(main())
