#!/usr/bin/env python3
"""The main job, shown: two vLLM containers in real Docker, one dies, Sentinel puts it right.

Runs the real daemon against real containers; only vLLM itself is simulated. Ends with the
incident's timeline and status 0, and leaves nothing behind.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from deploy.testbed import Box, NoEngineError, Testbed, stop_engine, wait_until

LOADING = {"SIM_START_SECONDS": "6", "SIM_LOAD": "2"}
CONFIG = """
mode: act
targets: {{discover: [{{name: "{prefix}*"}}]}}
global: {{scrape_interval: 1s}}
receivers:
  - name: oncall
    webhook_configs: [{{url: "http://127.0.0.1:{port}/hook"}}]
"""


def say(text: str) -> None:
    print(f"\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"==> {text}", flush=True)


class Oncall:
    """Stands for the people on call: prints each message as it comes."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()
                show(told)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def show(told: dict[str, Any]) -> None:
    about = told["sentinel"]
    decision = about.get("decision") or {}
    words = [f"[{about['kind']}]", told["status"]]
    words += sorted({alert["labels"]["alertname"] for alert in told["alerts"]})
    if decision:
        verb = "would" if decision["would"] else "does"
        words.append(f"| {verb} {decision['action']}: {decision['because']}")
    print(f"    message to on call: {' '.join(words)}", flush=True)


class Daemon:
    def __init__(self, folder: Path, prefix: str, port: int) -> None:
        self.socket = folder / "s.sock"
        config = folder / "sentinel.yaml"
        config.write_text(CONFIG.format(prefix=prefix, port=port))
        self.log = folder / "log"
        command = ["run", "--config", str(config), "--state-dir", str(folder / "state")]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*self.sentinel, *command, "--socket", str(self.socket)], stderr=out, stdout=out
            )

    @property
    def sentinel(self) -> list[str]:
        return [sys.executable, "-m", "sentinel"]

    def show(self, *words: str) -> None:
        print(f"    $ sentinel {' '.join(words)}", flush=True)
        done = self._run(*words)
        print("\n".join(f"    {line}" for line in done.stdout.splitlines()), flush=True)

    def ask(self, *words: str) -> dict[str, Any]:
        done = self._run(*words, "--json")
        found = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        return found if isinstance(found, dict) else {}

    def state_of(self, box: Box) -> str:
        targets = self.ask("status").get("targets", [])
        return next((t["state"] for t in targets if t["name"] == box.name), "")

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        env = {**os.environ, "SENTINEL_SOCKET": str(self.socket)}
        command = [*self.sentinel, *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def story(bed: Testbed, daemon: Daemon) -> None:
    sick, well = (bed.run_simulated(name, env=LOADING) for name in ("a", "b"))
    say(f"two vLLM containers are loading: {sick.name}, {well.name}")
    wait_until(lambda: daemon.state_of(sick) == "starting", 30, "Sentinel to see them load")
    wait_until(
        lambda: {daemon.state_of(box) for box in (sick, well)} <= {"idle", "serving"},
        60,
        "both to serve",
    )
    say("both serve; this is what a person on call sees")
    daemon.show("status")

    say(f"the engine of {sick.name} is killed (kill -9 of VLLM::EngineCore): it will exit with 0")
    sick.kill_engine()
    began = time.monotonic()
    incident = wait_until(lambda: resolved(daemon), 90, "the incident to be resolved")
    took = time.monotonic() - began
    say(f"seen, told, restarted, proved by a real completion and resolved within {took:.0f} s")
    daemon.show("incidents", "show", incident["id"])
    restarts = [i for i in incident["intents"] if i["outcome"] == "verified"]
    if len(restarts) != 1:
        raise SystemExit("the restart was not verified")


def resolved(daemon: Daemon) -> dict[str, Any]:
    found = daemon.ask("incidents").get("incidents", [])
    return next((i for i in found if i["status"] == "resolved"), {})


def main() -> int:
    try:
        bed = Testbed(run=f"demo-{os.getpid()}")
    except NoEngineError as reason:
        print(f"The demonstration needs a Docker engine: {reason}", file=sys.stderr)
        return 2
    oncall = Oncall()
    with tempfile.TemporaryDirectory(prefix="sentinel-demo-") as folder:
        daemon = Daemon(Path(folder), bed.prefix, oncall.port)
        try:
            story(bed, daemon)
        except BaseException:
            print(daemon.log.read_text(errors="replace")[-4000:], file=sys.stderr)
            raise
        finally:
            daemon.stop()
            bed.clean()
            bed.client.close()
            oncall.server.shutdown()
            stop_engine()
    say("done; everything that the demonstration made has been removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
