"""From files to settings: read, put together, check, complete.

Either everything is right and there are settings, or nothing is taken and all faults are
told at once. Secret files are looked at but are never a reason to refuse: the daemon starts
without one, and `unready` says what would fail when it is used.
"""

import hashlib
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sentinel.config import places
from sentinel.config.alertmanager import settle
from sentinel.config.concerns import unready, warnings
from sentinel.config.crosscheck import crosscheck
from sentinel.config.document import LIMIT_BYTES, Entries, Place, compose
from sentinel.config.fault import ConfigRefused, Fault
from sentinel.config.merge import merge
from sentinel.config.routing import root_route
from sentinel.config.settings import Settings
from sentinel.config.validate import validate


@dataclass(frozen=True)
class Loaded:
    settings: Settings
    warnings: tuple[Fault, ...]  # the daemon runs with these
    unready: tuple[Fault, ...]  # secrets that could not be used now; `config check` refuses these
    files: tuple[Path, ...]
    fingerprint: str  # of the files' content


def load_settings(
    path: Path | None,
    *,
    env: Mapping[str, str],
    state_dir: Path | None = None,
    socket_path: Path | None = None,
) -> Loaded:
    """Load the configuration at `path`, else where `env` says, else the default one.

    `state_dir` and `socket_path` are flags. Raises `ConfigRefused` with every fault.
    """
    main, asked_for = places.config_file(path, env)
    main = main.absolute()
    contents = _read_all(main, asked_for=asked_for)
    root, faults = _put_together(contents, main)
    root, left_out = settle(root)
    settings = _validate(root, faults)
    concerns = [*left_out, *warnings(settings, root)]
    not_ready = unready(settings, root, env)
    settings = _complete(settings, main.parent)
    socket_file = places.socket(socket_path, env, settings.api.socket)
    settings = settings.model_copy(
        update={
            "state_dir": places.state_dir(state_dir, env, settings.state_dir),
            "api": settings.api.model_copy(update={"socket": socket_file}),
        }
    )
    return Loaded(
        settings, _once(concerns), _once(not_ready), tuple(contents), _fingerprint(contents)
    )


def _read_all(main: Path, *, asked_for: bool) -> dict[Path, bytes]:
    """The main file and its drop-ins, by name. What cannot be read is refused at once."""
    contents: dict[Path, bytes] = {}
    faults: list[Fault] = []
    for file in (main, *_drop_ins(main.parent / "sentinel.d", faults)):
        try:
            contents[file] = _read(file)
        except OSError as error:
            if file != main or asked_for or not isinstance(error, FileNotFoundError):
                faults.append(_unreadable(file, error))
    if faults:
        raise ConfigRefused(_once(faults))
    return contents


def _drop_ins(folder: Path, faults: list[Fault]) -> list[Path]:
    try:
        files = list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        faults.append(_unreadable(folder, error))
        return []
    return sorted(
        file for file in files if file.suffix in (".yaml", ".yml") and file.name[0] != "."
    )


def _read(file: Path) -> bytes:
    if file.exists() and not file.is_file():
        raise OSError(0, "not a file")
    with file.open("rb") as opened:
        return opened.read(LIMIT_BYTES + 1)


def _unreadable(file: Path, error: OSError) -> Fault:
    says = f"cannot be read: {error.strerror or error}"
    return Place(file, 1, 1).fault((), says, "what Sentinel may read")


def _put_together(contents: Mapping[Path, bytes], main: Path) -> tuple[Entries, list[Fault]]:
    """One tree. A file that is no YAML ends it: without it the others cannot be judged."""
    root = Entries(Place(main, 1, 1))
    faults: list[Fault] = []
    not_yaml: list[Fault] = []
    for file, content in contents.items():
        entries, found = compose(content, file)
        (faults if entries.keys else not_yaml).extend(found)
        root, disagreements = merge(root, entries)
        faults += disagreements
    if not_yaml:
        raise ConfigRefused(_once(not_yaml))
    return root, faults


def _validate(root: Entries, faults: list[Fault]) -> Settings:
    settings, found = validate(root)
    faults = [*faults, *crosscheck(root), *found]
    if faults or settings is None:
        raise ConfigRefused(_once(faults))
    return settings


def _once(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """In the order of the files; what two keys say of one place is said once."""
    told: dict[Fault, Fault] = {}
    for fault in sorted(faults, key=lambda f: (f.file, f.line, f.column)):
        told.setdefault(replace(fault, key=""), fault)
    return tuple(told.values())


def _complete(settings: Settings, folder: Path) -> Settings:
    """Fill in what depends on other keys, or on the host."""
    everywhere, rules = settings.global_, settings.rules
    labels = {"host": socket.gethostname(), **everywhere.external_labels}
    rule_files = tuple(str(folder / pattern) for pattern in rules.files)
    pattern_files = tuple(str(folder / pattern) for pattern in settings.log_patterns)
    return settings.model_copy(
        update={
            "route": root_route(settings.route, settings.receivers),
            "global_": everywhere.model_copy(update={"external_labels": labels}),
            "rules": rules.model_copy(update={"files": rule_files}),
            "log_patterns": pattern_files,
        }
    )


def _fingerprint(contents: Mapping[Path, bytes]) -> str:
    digest = hashlib.sha256()
    for file, content in contents.items():
        digest.update(os.fsencode(file) + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()
