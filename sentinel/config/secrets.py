"""Secrets: where they come from, and that they are what they should be.

A secret is read when it is used, so that a new one is taken without a restart, and one that
is missing stops one receiver and not the daemon. Sources, in order: a systemd credential of
the file's name, the file, and for `${NAME}` written in place of a secret, the environment.
A file that everybody may read is refused: what is in it is no secret any more.
"""

import os
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import SecretStr, TypeAdapter, ValidationError

from sentinel.config.addresses import is_reference
from sentinel.config.section import Section
from sentinel.core.model.errors import Permanent

_LIMIT = 64 << 10


def read_secret(section: Section, key: str, env: Mapping[str, str]) -> str | None:
    """The secret `key` of `section`; None if it has none.

    Raises `Permanent`, which names the source and never the secret.
    """
    inline: SecretStr | None = getattr(section, key)
    if inline is not None and inline.get_secret_value():
        return _checked(section, key, _from_text(inline.get_secret_value(), env))
    file: Path | None = getattr(section, f"{key}_file")
    return None if file is None else _checked(section, key, read_secret_file(file, env))


def read_secret_file(file: Path, env: Mapping[str, str]) -> str:
    """Read a secret from a systemd credential of that name, or from the file itself."""
    credential = _credential(file, env)
    path = credential or file
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise Permanent(f"{path} is not a file")
        if credential is None and mode & stat.S_IROTH:
            raise Permanent(f"{path} may be read by everybody", hint=f"chmod o-rwx {path}")
        with path.open("rb") as opened:
            content = opened.read(_LIMIT + 1)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "cannot be read"
        raise Permanent(f"{path}: {reason}") from None
    return _text(content, path)


def _credential(file: Path, env: Mapping[str, str]) -> Path | None:
    folder = env.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    path = Path(folder) / file.name
    return path if path.is_file() else None


def _text(content: bytes, path: Path) -> str:
    if len(content) > _LIMIT:
        raise Permanent(f"{path} is too large for a secret")
    try:
        text = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise Permanent(f"{path} is not text") from None
    if not text:
        raise Permanent(f"{path} is empty")
    return text


def _from_text(text: str, env: Mapping[str, str]) -> str:
    if not is_reference(text):
        return text
    name = text[2:-1]
    if not env.get(name):
        raise Permanent(f"the environment has no {name}")
    return env[name]


def _checked(section: Section, key: str, text: str) -> str:
    """What a file or the environment holds is held to the rules of the key."""
    try:
        _adapter(type(section), key).validate_python(text)
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        says = context.get("message", "is not what it should be")
        hint = f"allowed: {context.get('allowed', '')}"
        raise Permanent(f"{key} {says}", hint=hint) from None
    return text


@cache
def _adapter(section: type[Section], key: str) -> TypeAdapter[Any]:
    annotation: Any = section.model_fields[key].annotation
    return TypeAdapter(annotation)
