"""The little that has to be read out of Docker's description of a container.

Raw mappings on purpose: what is carried over is carried over whole, also keys that no version
of this file has heard of.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.core.recreate.commandline import CommandLine, environment_of

Raw = Mapping[str, Any]

TX = "sentinel.tx"
ORIGINAL = "sentinel.original-max-num-seqs"

SHORT = 12  # characters of an id that Docker uses as a host name and as an alias
OWN_STACKS = ("", "default", "bridge", "host", "none")  # no aliases there, no static addresses
JOINED = "container:"


def part(raw: Raw, *path: str) -> Raw:
    """The mapping at `path`; empty where there is none."""
    for key in path:
        found = raw.get(key)
        raw = found if isinstance(found, Mapping) else {}
    return raw


def rows(raw: Raw, key: str) -> Sequence[Any]:
    found = raw.get(key)
    return found if isinstance(found, list) else ()


def name_of(raw: Raw) -> str:
    return str(raw.get("Name") or "").lstrip("/")


def labels_of(raw: Raw) -> Raw:
    return part(raw, "Config", "Labels")


def is_ours(label: str) -> bool:
    """Written by Sentinel when it made this container, and to be written anew."""
    return label.startswith(TX) or label == ORIGINAL


def network_mode(raw: Raw) -> str:
    return str(part(raw, "HostConfig").get("NetworkMode") or "")


def joins(raw: Raw) -> Sequence[str]:
    """The containers, by id or name, whose network, IPC or processes it shares."""
    host = part(raw, "HostConfig")
    modes = (str(host.get(key) or "") for key in ("NetworkMode", "IpcMode", "PidMode"))
    return [mode.removeprefix(JOINED) for mode in modes if mode.startswith(JOINED)]


def borrows_from(raw: Raw) -> Sequence[str]:
    """The containers, by id or name, whose volumes it uses."""
    return [str(row).partition(":")[0] for row in rows(part(raw, "HostConfig"), "VolumesFrom")]


def links_of(raw: Raw) -> Sequence[str]:
    """Legacy links, as they are asked for: `source:alias`; told as `/source:/self/alias`."""
    told = (str(link).partition(":") for link in rows(part(raw, "HostConfig"), "Links"))
    return [f"{source.lstrip('/')}:{alias.rpartition('/')[2]}" for source, _, alias in told]


def chosen_ports(raw: Raw) -> list[str]:
    """Its ports (`8000/tcp`) that Docker publishes on whichever port of the host is free."""
    host = part(raw, "HostConfig")
    bound = part(host, "PortBindings")
    found = [port for port in bound if any(_is_free_choice(row) for row in rows(bound, port))]
    if host.get("PublishAllPorts") is True:
        found += [port for port in part(raw, "Config", "ExposedPorts") if port not in bound]
    return sorted(found)


def _is_free_choice(binding: Raw) -> bool:
    """Also a range is: `8000-8010`."""
    port = str(binding.get("HostPort") or "0")
    return port == "0" or not port.isdigit()


def command_line_of(raw: Raw) -> CommandLine:
    config = part(raw, "Config")
    entrypoint = _words(config.get("Entrypoint"))
    return CommandLine(
        entrypoint=() if entrypoint == ("",) else entrypoint,  # how one is switched off
        command=_words(config.get("Cmd")),
        environment=environment_of(_words(config.get("Env"))),
    )


def asked_of(network: str, endpoint: Raw, raw: Raw) -> dict[str, Any]:
    """What was asked for on a network, out of all that Docker says of it."""
    keys = ("IPAMConfig", "Links", "DriverOpts", "GwPriority")
    asked: dict[str, Any] = {key: endpoint[key] for key in keys if endpoint.get(key)}
    aliases = [] if network in OWN_STACKS else _aliases(endpoint, raw)
    return {**asked, "Aliases": aliases} if aliases else asked


def _aliases(endpoint: Raw, raw: Raw) -> list[str]:
    """Those that somebody asked for: Docker adds the short id by itself."""
    own = (str(raw.get("Id") or "")[:SHORT], part(raw, "Config").get("Hostname"))
    return sorted({str(alias) for alias in rows(endpoint, "Aliases") if alias not in own})


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(word) for word in value) if isinstance(value, list) else ()
