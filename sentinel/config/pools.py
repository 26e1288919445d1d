"""Targets that serve one model behind one switch, and how that switch is thrown."""

from fnmatch import fnmatchcase
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from sentinel.config.addresses import FilePath, HostPort
from sentinel.config.quantities import Count, Name
from sentinel.config.section import Section, wrong


def _not_empty(argv: tuple[str, ...]) -> tuple[str, ...]:
    if not argv:
        raise wrong("is empty", allowed="a list: the program and its arguments")
    return argv


Argv = Annotated[tuple[Name, ...], AfterValidator(_not_empty)]


class HaproxySwitch(Section):
    socket: FilePath = Field(examples=["/run/haproxy/admin.sock"])
    """HAProxy's admin socket, `level admin`."""

    backend: Name = Field(examples=["vllm"])
    """Backend in HAProxy."""

    servers: dict[str, Name] = Field(examples=[{"t1-a": "s1", "t1-b": "s2"}])
    """Target → server in that backend."""


class NginxSwitch(Section):
    include: FilePath = Field(examples=["/etc/nginx/vllm-upstream.conf"])
    """File that holds the whole `upstream` block; there before the daemon, and Sentinel's alone."""

    upstream: Name = Field(examples=["vllm"])
    """Name of the upstream."""

    servers: dict[str, HostPort] = Field(examples=[{"t1-a": "127.0.0.1:8001"}])
    """Target → `host:port` in that block."""

    test: Argv = ("nginx", "-t")
    """Command that tests nginx's configuration."""

    reload: Argv = ("nginx", "-s", "reload")
    """Command that makes nginx read it."""


class CommandSwitch(Section):
    argv: Argv = Field(examples=[["/usr/local/bin/shift"]])
    """Program, called with `drain`, `active` or `weight=N` and the target."""


class Switch(Section):
    """One of these."""

    haproxy: HaproxySwitch | None = None
    """HAProxy, by its admin socket."""

    nginx: NginxSwitch | None = Field(default=None, examples=[])
    """nginx, by an include file."""

    command: CommandSwitch | None = Field(default=None, examples=[])
    """A program of your own; it answers `{"drained": bool, "active": n}` and exits 0."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(kind is not None for kind in (self.haproxy, self.nginx, self.command)) != 1:
            raise wrong("is not exactly one switch", allowed="one of haproxy, nginx, command")
        return self

    @property
    def servers(self) -> dict[str, str]:
        chosen = self.haproxy or self.nginx
        return chosen.servers if chosen else {}


class Pool(Section):
    targets: tuple[Name, ...] = Field(examples=[["t1-*"]])
    """Globs on container names."""

    min_healthy: Count = 1
    """No action may leave fewer healthy targets than this."""

    switch: Switch | None = None
    """How traffic is moved. Default: it cannot be."""

    @model_validator(mode="after")
    def _servers_are_targets(self) -> Self:
        if self.switch is None:
            return self
        kind = "haproxy" if self.switch.haproxy else "nginx"
        for target in self.switch.servers:
            if not any(fnmatchcase(target, glob) for glob in self.targets):
                raise wrong(
                    "is no target of this pool",
                    allowed=f"a name that fits {', '.join(self.targets)}",
                    at=("switch", kind, "servers", target),
                )
        return self
