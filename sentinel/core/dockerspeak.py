"""Docker's JSON in our words: list rows, inspects and events, of API 1.24 and up.

Total on purpose: a key that is missing, null or strange costs that one fact, never the
container. Whoever adds a field here must ask what an engine says that does not know it.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel.core.diagnosis.privacy import redacted
from sentinel.core.endpoint import env_port_of
from sentinel.core.host.mounts import written_paths
from sentinel.core.model.container import Container, EngineEvent, PublishedPort, Status, Summary

# What a follower asks for. Health probes make three events each and are left out: they would
# push everything else out of the engine's memory of the last 256.
ACTIONS = (
    "create",
    "start",
    "restart",
    "die",
    "oom",
    "kill",
    "stop",
    "destroy",
    "rename",
    "pause",
    "unpause",
    "update",
    "pull",
)
TYPES = ("container", "image")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63  # no number of Docker's is larger
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
_BELOW_MICROSECONDS = re.compile(r"(\.\d{6})\d+")
_STATUS_TEXT = (  # `docker ps` wording, for rows that have no usable State
    ("Restarting", Status.RESTARTING),
    ("Exited", Status.EXITED),
    ("Created", Status.CREATED),
    ("Removal", Status.REMOVING),
    ("Dead", Status.DEAD),
    ("Up", Status.RUNNING),
)


def instant(text: object) -> datetime | None:
    """Docker's time to ours, cut (not rounded) to microseconds; its zero time is None."""
    if not isinstance(text, str) or not text or text.startswith("0001-"):
        return None
    try:
        at = datetime.fromisoformat(_BELOW_MICROSECONDS.sub(r"\1", text))
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def summary_of(row: Mapping[str, Any]) -> Summary:
    return Summary(
        id=_text(row.get("Id")),
        name=_own_name(row.get("Names")),
        image=_text(row.get("Image")),
        command=_text(row.get("Command")),
        labels=_labels(row.get("Labels")),
        status=_status_of_row(row),
        fingerprint=_fingerprint(row),
    )


def container_of(raw: Mapping[str, Any], *, manually_stopped: bool | None = None) -> Container:
    config, host, state = (_map(raw.get(key)) for key in ("Config", "HostConfig", "State"))
    status = _status_of_state(state)
    argv = _argv(raw, config)
    environment = _environment(config.get("Env"))
    return Container(
        id=_text(raw.get("Id")),
        name=_text(raw.get("Name")).lstrip("/"),
        image=_text(config.get("Image")),
        image_id=_text(raw.get("Image")),
        argv=argv,
        labels=_labels(config.get("Labels")),
        env_port=env_port_of(argv, environment),
        status=status,
        pid=_number(state.get("Pid")) or None,
        exit_code=_exit_code(status, state),
        error=_text(state.get("Error")),
        oom_killed=state.get("OOMKilled") is True,
        created_at=instant(raw.get("Created")),
        started_at=instant(state.get("StartedAt")),
        finished_at=instant(state.get("FinishedAt")),
        restart_count=_number(raw.get("RestartCount")) or 0,
        restart_policy=_text(_map(host.get("RestartPolicy")).get("Name")) or "no",
        auto_remove=host.get("AutoRemove") is True,
        stop_timeout=_number(config.get("StopTimeout")),
        stop_signal=_text(config.get("StopSignal")) or "SIGTERM",
        tty=config.get("Tty") is True,
        host_network=host.get("NetworkMode") == "host",
        addresses=_addresses(raw),
        ports=_ports(raw, host),
        devices=_devices(host, environment),
        cuda_visible=environment.get("CUDA_VISIBLE_DEVICES"),
        manually_stopped=manually_stopped,
        environment={name: redacted(value, name) for name, value in environment.items()},
        memory_limit=_number(host.get("Memory")),
        shm_size=_number(host.get("ShmSize")) or None,
        shares_ipc=host.get("IpcMode") == "host",
        written_paths=written_paths(raw),
    )


def event_of(raw: Mapping[str, Any]) -> EngineEvent | None:
    """One event of a container, or the pull of an image; None if `raw` is neither.

    Engines from API 1.52 on send no `status`, `id`, `from`; the older say everything twice.
    """
    actor = _map(raw.get("Actor"))
    attributes = _map(actor.get("Attributes"))
    action = _text(raw.get("Action") or raw.get("status")).partition(":")[0].strip()
    container_id = _text(actor.get("ID") or raw.get("id"))
    at_ns = _number(raw.get("timeNano")) or (_number(raw.get("time")) or 0) * 1_000_000_000
    is_pull = raw.get("Type") == "image" and action == "pull"
    is_ours = is_pull or (raw.get("Type", "container") == "container" and action != "pull")
    if not (is_ours and action and container_id and 0 < at_ns <= _LARGEST):
        return None
    if is_pull:
        at = _EPOCH + timedelta(microseconds=at_ns // 1000)
        return EngineEvent(at=at, at_ns=at_ns, action=action, container_id="", name=container_id)
    return EngineEvent(
        at=_EPOCH + timedelta(microseconds=at_ns // 1000),
        at_ns=at_ns,
        action=action,
        container_id=container_id,
        name=_text(attributes.get("name")),
        exit_code=_number(attributes.get("exitCode")),
        signal=_text(attributes.get("signal")),
    )


def repository_of(image: str) -> str:
    """What an image is called whatever its version, as Docker's own short form has it."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    name = f"{folder}{slash}{last.partition(':')[0]}"
    return name.removeprefix("index.").removeprefix("docker.io/").removeprefix("library/")


def since_after(at_ns: int) -> str:
    """The `since` that asks for everything after `at_ns`: Docker's own bound is inclusive."""
    seconds, nanos = divmod(at_ns + 1, 1_000_000_000)
    return f"{seconds}.{nanos:09d}"


def _own_name(names: object) -> str:
    """A container's own name; a legacy link adds another of the form /other/alias."""
    found = [name.lstrip("/") for name in _texts(names)]
    return next((name for name in found if "/" not in name), found[0] if found else "")


def _fingerprint(row: Mapping[str, Any]) -> str:
    """Of the whole row, the human "Up 3 minutes" among it: a restart that no event told of
    shows there. Docker orders some lists at random, so order does not count.
    """
    text = json.dumps(_without_order(row), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _without_order(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _without_order(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return sorted((_without_order(inner) for inner in value), key=repr)
    return value


def _status_of_row(row: Mapping[str, Any]) -> Status:
    text = _text(row.get("Status"))
    said = _known_status(row.get("State"))
    if said is not None:
        return said
    if "(Paused)" in text:
        return Status.PAUSED
    return next((s for start, s in _STATUS_TEXT if text.startswith(start)), Status.EXITED)


def _status_of_state(state: Mapping[str, Any]) -> Status:
    said = _known_status(state.get("Status"))
    if said is not None:
        return said
    for flag, status in (  # Restarting and Paused are Running too, so they come first
        ("Dead", Status.DEAD),
        ("Restarting", Status.RESTARTING),
        ("Paused", Status.PAUSED),
        ("Running", Status.RUNNING),
    ):
        if state.get(flag) is True:
            return status
    return Status.EXITED if instant(state.get("StartedAt")) else Status.CREATED


def _known_status(text: object) -> Status | None:
    try:
        return Status(_text(text).lower())
    except ValueError:
        return None


def _argv(raw: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[str, ...]:
    """What is executed. `Path` and `Args` are after the image's entrypoint was applied;
    `Config` alone would show null for an entrypoint that was switched off.
    """
    if path := _text(raw.get("Path")):
        return (path, *_texts(raw.get("Args")))
    return (*_texts(config.get("Entrypoint")), *_texts(config.get("Cmd")))


def _exit_code(status: Status, state: Mapping[str, Any]) -> int | None:
    """None until it has exited: Docker says 0 of what is running, and of what never ran."""
    code = _number(state.get("ExitCode"))
    if status in (Status.RUNNING, Status.PAUSED) or (status is Status.CREATED and code == 0):
        return None
    return code


def _environment(env: object) -> dict[str, str]:
    pairs = (line.partition("=") for line in _texts(env))
    return {name: value for name, _, value in pairs}


def _addresses(raw: Mapping[str, Any]) -> tuple[str, ...]:
    networks = _map(_map(raw.get("NetworkSettings")).get("Networks"))
    found = [
        _text(_map(networks[name]).get(key))
        for name in sorted(networks)
        for key in ("IPAddress", "GlobalIPv6Address")
    ]
    return tuple(address for address in found if address)


def _ports(raw: Mapping[str, Any], host: Mapping[str, Any]) -> tuple[PublishedPort, ...]:
    """As they are; of a stopped container, as they will be again (fixed ones only)."""
    live = _published(_map(raw.get("NetworkSettings")).get("Ports"))
    return live or _published(host.get("PortBindings"))


def _published(table: object) -> tuple[PublishedPort, ...]:
    found = []
    for key, bindings in sorted(_map(table).items()):
        number, _, protocol = key.partition("/")
        if protocol not in ("", "tcp") or not isinstance(bindings, list):
            continue
        for binding in map(_map, bindings):
            inside, outside = _number(number), _number(binding.get("HostPort"))
            if inside and outside:
                found.append(
                    PublishedPort(
                        container_port=inside,
                        host_ip=_text(binding.get("HostIp")) or "0.0.0.0",  # noqa: S104 - what Docker means by ""
                        host_port=outside,
                    )
                )
    return tuple(found)


def _devices(host: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, ...]:
    """`gpu:all`, `gpu:2` (a count), `gpu=0` or `gpu=GPU-…` (one), `/dev/…`, CDI names."""
    found: list[str] = []
    for request in map(_map, _list(host.get("DeviceRequests"))):
        named = _texts(request.get("DeviceIDs"))
        count = _number(request.get("Count")) or 0
        if request.get("Driver") == "cdi":
            found += named
        elif named:
            found += [f"gpu={name}" for name in named]
        else:
            found.append("gpu:all" if count < 0 else f"gpu:{count}")
    visible = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    by_runtime = _text(host.get("Runtime")).startswith("nvidia")
    if not found and by_runtime and visible not in ("", "none", "void"):
        found += ["gpu:all"] if visible == "all" else [f"gpu={v}" for v in visible.split(",")]
    found += [_text(_map(device).get("PathOnHost")) for device in _list(host.get("Devices"))]
    return tuple(device for device in found if device)


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    """A list of strings; very old images have one plain string where a list belongs."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in _list(value) if isinstance(item, str))


def _labels(value: object) -> dict[str, str]:
    return {key: _text(label) for key, label in _map(value).items()}


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else None
    text = _text(value)
    return int(text) if _INTEGER.fullmatch(text) else None
