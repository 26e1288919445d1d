"""Loads the configuration, and loads it again under a loop that runs.

A configuration is taken whole or not at all: what is refused leaves the old one in force.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sentinel.config.fault import ConfigRefused
from sentinel.config.load import Loaded, load_settings
from sentinel.config.rulefile import RuleFileError
from sentinel.config.settings import Settings
from sentinel.core.model.errors import Permanent
from sentinel.ports import Clock
from sentinel.runtime.assemble import keep_of, retention_of
from sentinel.runtime.channels import Book
from sentinel.runtime.configure import plan_of
from sentinel.runtime.loop import Loop
from sentinel.runtime.plan import Plan
from sentinel.runtime.resume import setting_of
from sentinel.telemetry import events
from sentinel.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What was said on the command line; wins over environment and file."""

    config: Path | None = None
    state_dir: Path | None = None
    socket: Path | None = None


class Loading:
    def __init__(
        self, flags: Flags, env: Mapping[str, str], clock: Clock, metrics: Metrics
    ) -> None:
        self._flags, self._env = flags, env
        self._clock, self._metrics = clock, metrics

    def read(self) -> tuple[Loaded, Plan]:
        """Raises `ConfigRefused` if any of it cannot be taken."""
        flags = self._flags
        loaded = load_settings(
            flags.config, env=self._env, state_dir=flags.state_dir, socket_path=flags.socket
        )
        try:
            return loaded, plan_of(loaded, self._env)
        except RuleFileError as error:
            raise ConfigRefused(tuple(error.faults)) from None

    def again(self, loop: Loop, by: str, use: Callable[[Settings, Plan], Book]) -> dict[str, Any]:
        """Swap in the configuration on disk, or keep the one in force and say why.

        `use` has what lies outside the loop go on under it.
        """
        try:
            loaded, plan = self.read()
        except ConfigRefused as refused:
            self._refuse(loop, by, [str(fault) for fault in refused.faults])
        loop.use(plan, use(loaded.settings, plan))
        parts, now = loop.parts, self._clock.now()
        parts.evaluator = parts.evaluator.successor(plan.rules, setting_of(plan))
        parts.store.keep, parts.store.retention_ms = keep_of(plan), retention_of(plan)
        self._metrics.reload_successful.set(1)
        self._metrics.reloaded_at.set(now.timestamp())
        parts.history.write(
            events.CONFIG_RELOADED, f"mode {plan.mode}", at=now, by=by, config=plan.fingerprint[:12]
        )
        return {"reloaded": True, "problems": list(plan.problems)}

    def _refuse(self, loop: Loop, by: str, faults: list[str]) -> NoReturn:
        self._metrics.reload_successful.set(0)
        loop.parts.history.write(
            events.CONFIG_REFUSED,
            f"the old configuration stays in force: {faults[0]}",
            at=self._clock.now(),
            by=by,
            faults=faults,
        )
        raise Permanent(
            "the configuration is refused; the old one stays in force",
            hint="Try sentinel config check.",
            faults=faults,
        ) from None
