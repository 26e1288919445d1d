"""What a new container has otherwise than the old one, apart from what has to be.

Asked of the candidate before the old one is touched: an answer that is not empty ends the
attempt. What has to differ is listed here and nowhere else. Values of the environment are
never told.
"""

from collections.abc import Callable, Iterator, Mapping

from sentinel.core.recreate.commandline import CommandLine
from sentinel.core.recreate.inspected import (
    JOINED,
    SHORT,
    Raw,
    asked_of,
    command_line_of,
    is_ours,
    labels_of,
    links_of,
    network_mode,
    part,
    rows,
)


def differences(old: Raw, new: Raw, *, expected: CommandLine) -> list[str]:
    """`old` and `new` as inspected; `expected` is what the new one runs. Empty: the same."""
    ran = command_line_of(new)
    wrong = [
        f"{name} is not what was asked for"
        for name, is_, wanted in (
            ("Config.Entrypoint", ran.entrypoint, expected.entrypoint),
            ("Config.Cmd", ran.command, expected.command),
            ("Path and Args", _runs(new), expected.argv),
        )
        if is_ != wanted
    ]
    return wrong + [
        difference
        for name, view in _VIEWS.items()
        for difference in _between(name, view(old), view(new))
    ]


_CHANGING = ("Cmd", "Entrypoint", "Image", "Labels", "Hostname", "Env")
_SECRET = ("Env",)
_EMPTY: tuple[object, ...] = (None, "", [], {}, ())


def _runs(raw: Raw) -> tuple[str, ...]:
    return (str(raw.get("Path") or ""), *map(str, rows(raw, "Args")))


def _between(name: str, old: Raw, new: Raw) -> Iterator[str]:
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before == after or (before in _EMPTY and after in _EMPTY):
            continue
        values = "" if name.endswith(_SECRET) else f": {before!r} became {after!r}"
        yield f"{name}.{key} differs{values}"


def _container(raw: Raw) -> Raw:
    return {key: raw.get(key) for key in ("Image", "Driver", "Platform")}


def _config(raw: Raw) -> Raw:
    config = part(raw, "Config")
    return {key: value for key, value in config.items() if key not in _CHANGING}


def _environment(raw: Raw) -> Raw:
    return command_line_of(raw).environment


def _labels(raw: Raw) -> Raw:
    return {name: text for name, text in labels_of(raw).items() if not is_ours(name)}


def _names(raw: Raw) -> Raw:
    """The host name, where it is one that somebody gave."""
    hostname = part(raw, "Config").get("Hostname")
    is_given = hostname != str(raw.get("Id") or "")[:SHORT]
    shares = network_mode(raw).startswith(JOINED)
    return {"Hostname": hostname if is_given and not shares else None}


def _host_config(raw: Raw) -> Raw:
    host = dict(part(raw, "HostConfig"))
    host["Links"] = sorted(links_of(raw))
    host["Mounts"] = sorted(
        (mount for mount in rows(host, "Mounts") if mount.get("Type") != "volume"), key=repr
    )  # volumes are compared as they are mounted
    return host


def _mounts(raw: Raw) -> Raw:
    keys = ("Type", "Name", "Source", "Driver", "RW", "Propagation")
    return {
        str(mount.get("Destination")): {key: mount.get(key) or "" for key in keys}
        for mount in rows(raw, "Mounts")
    }


def _networks(raw: Raw) -> Raw:
    if network_mode(raw).startswith(JOINED):
        return {}
    networks = part(raw, "NetworkSettings", "Networks")
    return {name: asked_of(name, endpoint, raw) for name, endpoint in networks.items()}


_VIEWS: Mapping[str, Callable[[Raw], Raw]] = {
    "Container": _container,
    "Config": _config,
    "Config.Env": _environment,
    "Config.Labels": _labels,
    "Config.names": _names,
    "HostConfig": _host_config,
    "Mounts": _mounts,
    "Networks": _networks,
}
