"""Docker, and the daemon's own faces."""

from datetime import timedelta
from typing import ClassVar, Self

from pydantic import Field, model_validator

from sentinel.config.addresses import EngineAddress, FilePath, HostPort, is_loopback
from sentinel.config.durations import Interval
from sentinel.config.quantities import Name
from sentinel.config.section import Section, wrong


class Docker(Section):
    host: EngineAddress = "unix:///var/run/docker.sock"
    """Address of the Docker engine."""

    reconcile_interval: Interval = timedelta(seconds=15)
    """How often all containers are listed, whatever events said."""


class Api(Section):
    SECRET_FILES: ClassVar = ("token_file",)

    socket: FilePath | None = Field(default=None, examples=["/run/sentinel/sentinel.sock"])
    """Unix socket. Default: `sentinel.sock` in `$RUNTIME_DIRECTORY`, else in `/run/sentinel`."""

    socket_group: Name = "sentinel"
    """Group that may use the socket, and read the state directory."""

    listen: HostPort | None = Field(default=None, examples=["127.0.0.1:9099"])
    """TCP address for HTTP as well. Default: none."""

    token_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/token"])
    """File with the bearer token that changes over TCP need."""

    @model_validator(mode="after")
    def _open_to_others_only_with_a_token(self) -> Self:
        if self.listen is None or self.token_file is not None:
            return self
        host = self.listen.rpartition(":")[0].strip("[]")
        if not is_loopback(host):
            raise wrong(
                "an address that is not loopback needs a token_file",
                allowed="a loopback address such as 127.0.0.1:9099, or a token_file",
                at=("listen",),
            )
        return self
