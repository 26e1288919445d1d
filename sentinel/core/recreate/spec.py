"""From what Docker says of a container to the request that makes the same one again.

Everything is passed on as it is, known or not; only what the engine would take in another sense
than it says it is put right here. The list is what experiments on engines of API 1.41 and 1.51
found; `differences` proves for each container that nothing is missing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentinel.core.recreate.commandline import CommandLine
from sentinel.core.recreate.inspected import (
    JOINED,
    ORIGINAL,
    OWN_STACKS,
    SHORT,
    TX,
    Raw,
    asked_of,
    borrows_from,
    is_ours,
    labels_of,
    links_of,
    name_of,
    network_mode,
    part,
    rows,
)

Version = tuple[int, int]

# From this version on a container is created on all its networks, each with its own MAC address.
_ALL_AT_ONCE: Version = (1, 44)
_GATEWAY_PRIORITY: Version = (1, 48)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of the container that is to be made again.

    `image` is the one it runs, by id; `tagged` the id that its image's name means today.
    `others` are the containers it borrows volumes from, or more; `api` is the version spoken.
    """

    container: Raw
    image: Raw | None
    tagged: str | None = None
    others: Sequence[Raw] = ()
    api: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a container is asked for: the body of the request that creates it, and the networks
    that it is connected to afterwards, before it is started.
    """

    body: Mapping[str, Any]
    networks: Mapping[str, Raw] = field(default_factory=dict)


def recipe_of(
    source: Source, command_line: CommandLine, *, tx: str, original: str | None
) -> Recipe:
    """The same container with this command line. `original` is the limit its owner gave it, to
    be remembered as a label; None: it has that one again.
    """
    main, endpoints = _endpoints(source)
    at_once = {
        name: endpoint
        for name, endpoint in endpoints.items()
        if source.api >= _ALL_AT_ONCE or (name == main and endpoint)
    }
    labels = {TX: tx} | ({ORIGINAL: original} if original is not None else {})
    body = {
        **_config(source, command_line, labels),
        "HostConfig": _host_config(source),
        "NetworkingConfig": {"EndpointsConfig": at_once},
    }
    later = {n: e for n, e in endpoints.items() if n != main and n not in at_once}
    return Recipe(body=body, networks=later)


def own_volumes(source: Source) -> list[dict[str, Any]]:
    """The volumes that no part of the request names: without this the new one gets empty ones."""
    container, host = source.container, part(source.container, "HostConfig")
    named = {str(row.get("Target")) for row in rows(host, "Mounts") if row.get("Source")}
    named |= {_target(str(bind)) for bind in rows(host, "Binds")}
    lent = _lent(source)
    return [
        _as_request(mount)
        for mount in sorted(rows(container, "Mounts"), key=lambda m: str(m.get("Destination")))
        if mount.get("Type") == "volume"
        and mount.get("Destination") not in named
        and (mount.get("Destination"), mount.get("Name")) not in lent
    ]


def _config(source: Source, command_line: CommandLine, labels: Raw) -> dict[str, Any]:
    container = source.container
    config = dict(part(container, "Config"))
    config["Labels"] = {
        **{name: text for name, text in labels_of(container).items() if not is_ours(name)},
        **labels,
    }
    config["Cmd"] = list(command_line.command) or None
    config["Entrypoint"] = list(command_line.entrypoint) or _no_entrypoint(source)
    if source.tagged != container.get("Image"):
        config["Image"] = container.get("Image")
    if not _has_own_hostname(container):
        config["Hostname"] = ""
    if _shares_hostname(container):
        config["Hostname"] = config["Domainname"] = ""
    if network_mode(container).startswith(JOINED):
        config["ExposedPorts"] = {}
    if source.api >= _ALL_AT_ONCE:
        config.pop("MacAddress", None)  # belongs to the endpoint from here on
    return config


def _no_entrypoint(source: Source) -> list[str] | None:
    """None would bring the image's back, where it had been switched off."""
    return [""] if part(source.image or {}, "Config").get("Entrypoint") else None


def _has_own_hostname(container: Raw) -> bool:
    """One that somebody gave it: else Docker takes the short id, and must take the new one."""
    hostname = part(container, "Config").get("Hostname")
    return hostname != str(container.get("Id") or "")[:SHORT]


def _shares_hostname(container: Raw) -> bool:
    shares_stack = network_mode(container).startswith(JOINED)
    return shares_stack or part(container, "HostConfig").get("UTSMode") == "host"


def _host_config(source: Source) -> dict[str, Any]:
    container = source.container
    host = dict(part(container, "HostConfig"))
    host["Links"] = list(links_of(container)) or None
    volumes = own_volumes(source)
    if volumes:
        taken = {volume["Target"] for volume in volumes}
        kept = [mount for mount in rows(host, "Mounts") if mount.get("Target") not in taken]
        host["Mounts"] = [*kept, *volumes]
    if network_mode(container).startswith(JOINED):
        host["PortBindings"] = {}
    return host


def _as_request(mount: Raw) -> dict[str, Any]:
    options: dict[str, Any] = {"NoCopy": True}  # an emptied volume stays empty
    if mount.get("Driver") not in (None, "", "local"):
        options["DriverConfig"] = {"Name": mount["Driver"]}
    return {
        "Type": "volume",
        "Source": mount.get("Name"),
        "Target": mount.get("Destination"),
        "ReadOnly": mount.get("RW") is False,
        "VolumeOptions": options,
    }


def _lent(source: Source) -> set[tuple[Any, Any]]:
    lenders = set(borrows_from(source.container))
    return {
        (mount.get("Destination"), mount.get("Name"))
        for other in source.others
        if lenders & {other.get("Id"), name_of(other)}
        for mount in rows(other, "Mounts")
    }


def _target(bind: str) -> str:
    """The path inside, of `source:target[:options]`."""
    return bind.split(":")[1] if ":" in bind else bind


def _endpoints(source: Source) -> tuple[str, dict[str, dict[str, Any]]]:
    """The network it was created on, and what was asked for on each, by name.

    The first goes by the name that `NetworkMode` uses: the engine takes two names for two.
    """
    container, mode = source.container, network_mode(source.container)
    if mode.startswith(JOINED) or mode in ("host", "none"):
        return mode, {}
    main, endpoints = "", {}
    for name, endpoint in sorted(part(container, "NetworkSettings", "Networks").items()):
        asked = asked_of(name, endpoint, container)
        if source.api < _GATEWAY_PRIORITY:
            asked.pop("GwPriority", None)
        known_as, mac = name, _makers_mac(endpoint)
        if _is_main(name, endpoint, mode):
            main = known_as = name if mode in OWN_STACKS else mode
            mac = str(part(container, "Config").get("MacAddress") or mac)
        pinned = {"MacAddress": mac} if mac and source.api >= _ALL_AT_ONCE else {}
        endpoints[known_as] = asked | pinned
    return main, endpoints


def _makers_mac(endpoint: Raw) -> str:
    """Its MAC address, if Docker has certainly not made it up: those are marked as local."""
    mac = str(endpoint.get("MacAddress") or "")
    return mac if re.fullmatch(r"[0-9a-f][048c](:[0-9a-f]{2}){5}", mac.lower()) else ""


def _is_main(name: str, endpoint: Raw, mode: str) -> bool:
    if mode in OWN_STACKS:
        return name == "bridge"
    return mode in (name, endpoint.get("NetworkID"))
