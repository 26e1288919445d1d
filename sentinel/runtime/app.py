"""Builds everything, starts it, stops it in reverse. The only place that names adapters.

What cannot be had at start (the state directory, the socket, a good configuration) ends the
process with a sentence; what fails later is a value the loop reasons about.
"""

import signal
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from sentinel import __version__
from sentinel.adapters.cgroups import Cgroups
from sentinel.adapters.clock import MachineClock
from sentinel.adapters.connections import Connections
from sentinel.adapters.docker_events import DockerEvents
from sentinel.adapters.docker_eyes import DockerEyes
from sentinel.adapters.docker_hands import DockerHands
from sentinel.adapters.docker_logs import DockerLogs
from sentinel.adapters.docker_recreate import DockerRecreation
from sentinel.adapters.host import Host
from sentinel.adapters.kernel_log import KernelLog
from sentinel.adapters.nvml import Nvml
from sentinel.adapters.proc import Proc
from sentinel.adapters.prometheus_source import PrometheusSource
from sentinel.adapters.systemd import Systemd
from sentinel.adapters.target_http import TargetHttp
from sentinel.api.server import ApiServer
from sentinel.api.snapshot import Snapshot
from sentinel.config.load import Loaded
from sentinel.config.secrets import read_secret_file
from sentinel.config.settings import Settings
from sentinel.core.model.errors import Permanent
from sentinel.core.model.moment import stamp
from sentinel.core.recreate.port import ContainerRecreation
from sentinel.ports import Clock, ContainerHands
from sentinel.runtime.assemble import (
    Outside,
    assemble,
)
from sentinel.runtime.channels import Book, book_of
from sentinel.runtime.evidence import Evidence
from sentinel.runtime.hostwatch import Surroundings
from sentinel.runtime.house import House
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.keep import StateDir
from sentinel.runtime.listen import Listener
from sentinel.runtime.loading import Flags, Loading
from sentinel.runtime.loop import Loop
from sentinel.runtime.net import Net
from sentinel.runtime.obey import Obedience
from sentinel.runtime.outlet import Outlet
from sentinel.runtime.outside import Place
from sentinel.runtime.plan import Plan
from sentinel.runtime.queries import Queries
from sentinel.runtime.remember import SeriesFile
from sentinel.store.memory import Memory, open_memory
from sentinel.telemetry import events
from sentinel.telemetry.metrics import Metrics

__all__ = ["App", "Flags"]

_log = structlog.get_logger("sentinel")


class App:
    """`hands_of` lets a test put itself between the daemon and what it does."""

    def __init__(
        self,
        flags: Flags,
        env: Mapping[str, str],
        *,
        hands_of: Callable[[str], ContainerHands] = DockerHands,
        recreation_of: Callable[[str], ContainerRecreation] = DockerRecreation,
        memory_of: Callable[[Path], Memory] = open_memory,
    ) -> None:
        self._env = env
        self._hands_of, self._memory_of = hands_of, memory_of
        self._recreation_of = recreation_of
        self.clock: Clock = MachineClock()
        self._systemd = Systemd(env)
        self._metrics = Metrics()
        self._loading = Loading(flags, env, self.clock, self._metrics)
        self._ready = False

    def run(self) -> None:
        """Raises `ConfigRefused` or `Permanent` if it cannot start."""
        loaded, plan = self._loading.read()
        settings = loaded.settings
        self._state = StateDir(settings.state_dir, settings.api.socket_group)
        self._state.take()
        watched_until = self._state.last_beat()
        memory = self._memory_of(self._state.database)
        self._outlet = Outlet()
        self._http = TargetHttp(self.clock)
        self._logs = Net(name="docker-logs")
        self._logs.start()
        host = settings.docker.host
        self._evidence = Evidence(self._state.evidence, DockerEyes(host))
        self._series = SeriesFile(self._state.path / "series.snapshot", self.clock)
        self._keep_evidence(settings)
        loop = assemble(
            Outside(
                clock=self.clock,
                eyes=DockerEyes(host),
                hands=self._hands_of(host),
                recreation=lambda: self._recreation_of(host),
                http=self._http,
                ask=self._outlet.ask,
                send=self._outlet.send,
                shown=self,
                metrics=self._metrics,
                evidence=self._evidence,
                series=self._series,
                logs=DockerLogs(host),
                follow=self._logs.submit,
                gpu_eyes=Nvml(self.clock),
                processes=Proc(),
                connections=Connections(),
                around=Surroundings(
                    eyes=Host(Cgroups().memory),
                    kernel=KernelLog(self.clock),
                    written_paths=[str(self._state.path)],
                ),
                rules_at=self._rules_at(settings),
            ),
            memory,
            plan,
            book_of(settings, self._outlet.session, self._env),
            daemon={"version": __version__, "started_at": stamp(self.clock.now())},
            watched_until=watched_until,
        )
        self._serve(loaded, loop, memory)

    def show(self, snapshot: Snapshot, samples: Sequence[WrittenSample], now: datetime) -> None:
        self._house.publish(snapshot, samples)
        self._state.show(snapshot, now)
        if not self._ready:
            self._ready = True
            self._systemd.ready(f"watching {len(snapshot.status['targets'])} targets")

    def beat(self, now: datetime) -> None:
        self._state.beat(now)
        self._systemd.alive()

    def problems(self) -> Sequence[str]:
        because = self._state.trouble
        return [f"nothing can be written in {self._state.path}: {because}"] if because else []

    def _serve(self, loaded: Loaded, loop: Loop, memory: Memory) -> None:
        self._loop, self._memory = loop, memory
        self._house = self._open_house(loop, memory)
        api = self._open_api(loaded)
        api.start()
        stream = DockerEvents(loaded.settings.docker.host)
        listener = Listener(
            stream,
            memory.launches.last_heard_ns(),
            heard=lambda event: loop.parts.inbox.put(lambda: loop.parts.watch.heard(event)),
            opened=lambda: loop.parts.inbox.put(loop.parts.watch.look_again),
        )
        listener.start()
        self._catch_signals(loop)
        self._say_started(loaded, loop)
        try:
            loop.run()
        finally:
            self._stop(loop, listener, api, memory)

    def _open_house(self, loop: Loop, memory: Memory) -> House:
        parts = loop.parts
        house = House(
            parts.inbox, self.clock, self._state.database, self._state.evidence, self._metrics
        )
        house.obey = Obedience(
            self.clock,
            memory,
            parts.history,
            parts.watch,
            parts.decider,
            parts.casebook,
            parts.dispatch,
            self._reload,
        ).obey
        house.board_of = lambda: parts.dispatch.board(self.clock.now())
        house.queries = Queries(loop, house.snapshot)
        return house

    def _open_api(self, loaded: Loaded) -> ApiServer:
        api = loaded.settings.api
        assert api.socket is not None
        token = api.token_file
        return ApiServer(
            self._house,
            socket=api.socket,
            socket_group=api.socket_group,
            listen=api.listen,
            token=(lambda: read_secret_file(token, self._env)) if token else None,
            now=self.clock.now,
        )

    def _catch_signals(self, loop: Loop) -> None:
        def stop(_signal: int, _frame: object) -> None:
            loop.stop()
            loop.parts.inbox.put(lambda: None)

        def reload(_signal: int, _frame: object) -> None:
            loop.parts.inbox.put(lambda: self._reload_quietly("SIGHUP"))

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)

    def _say_started(self, loaded: Loaded, loop: Loop) -> None:
        now = self.clock.now()
        for concern in (*loaded.warnings, *loop.problems()):
            _log.warning(events.PROBLEM_SEEN, because=str(concern))
        loop.parts.history.write(
            events.DAEMON_STARTED,
            f"mode {loop.plan.mode}",
            at=now,
            version=__version__,
            config=loaded.fingerprint[:12],
        )
        self._metrics.reload_successful.set(1)
        self._metrics.reloaded_at.set(now.timestamp())

    def _stop(self, loop: Loop, listener: Listener, api: ApiServer, memory: Memory) -> None:
        self._systemd.stopping()
        with suppress(sqlite3.Error):  # what is left of a disk must not keep us from going
            loop.parts.history.write(events.DAEMON_STOPPING, "told to stop", at=self.clock.now())
        with suppress(OSError):
            self._series.save_now(loop.parts.store)
        listener.stop()
        self._logs.stop(1.0)
        api.stop(2.0)
        self._outlet.close(self._http.close)
        memory.close()

    def _keep_evidence(self, settings: Settings) -> None:
        kept = settings.retention
        self._evidence.keep_for, self._evidence.keep_bytes = kept.evidence, kept.evidence_size

    def _rules_at(self, settings: Settings) -> Place | None:
        """The outside Prometheus that evaluates rules, if there is one."""
        there = settings.metrics_source.prometheus
        if there is None:
            return None
        source = PrometheusSource(there, self._env, self.clock)
        return Place(source=source, url=there.url, target_label=there.target_label)

    def _reload(self, by: str) -> dict[str, Any]:
        return self._loading.again(self._loop, by, self._use)

    def _use(self, settings: Settings, plan: Plan) -> Book:
        """What lies outside the loop goes on under other settings."""
        book = book_of(settings, self._outlet.session, self._env)
        self._loop.parts.elsewhere.use(self._rules_at(settings), plan)
        self._keep_evidence(settings)
        return book

    def _reload_quietly(self, by: str) -> None:
        try:
            self._reload(by)
        except Permanent:
            return  # it has been said
