"""Turns what pydantic found into faults that name a key, a place and a way out.

The wording is ours: pydantic's speaks of inputs and types, and may repeat a value that is a
secret.
"""

import difflib
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sentinel.config.document import Entries, Items, Node, Place, Scalar
from sentinel.config.fault import Fault, quoted
from sentinel.config.reference import every_section
from sentinel.config.section import Loc, keys_of
from sentinel.config.settings import Settings

_SHAPES = {
    "dict_type": ("is not a mapping", "a mapping: key: value"),
    "model_type": ("is not a mapping", "a mapping: key: value"),
    "model_attributes_type": ("is not a mapping", "a mapping: key: value"),
    "tuple_type": ("is not a list", "a list: [a, b] or lines that begin with -"),
    "string_type": ("is not a text", "a text"),
    "path_type": ("is not a path", "a path"),
}


def blame(error: ValidationError, root: Entries, *, only_of_keys: bool = False) -> list[Fault]:
    """One fault for each thing that is wrong; or only for what is said of one key's value."""
    return [
        _fault(found, root)
        for found in error.errors(include_url=False)
        if found["type"] != "default_factory_not_called"  # what it depends on is at fault
        and (not only_of_keys or found.get("ctx", {}).get("at"))
    ]


def _fault(found: ErrorDetails, root: Entries) -> Fault:
    kind, context = found["type"], found.get("ctx", {})
    on_key = kind == "extra_forbidden" or found["loc"][-1:] == ("[key]",)
    at: Loc = (*(part for part in found["loc"] if part != "[key]"), *context.get("at", ()))
    if kind == "extra_forbidden":
        message, allowed = _unknown(at)
    elif kind == "missing":
        message, allowed = "is missing", _meaning(at)
    elif kind == "wrong":
        message, allowed = context["message"], context["allowed"]
    elif kind in ("literal_error", "enum"):
        message = f"{quoted(found['input'])} is not known"
        allowed = context["expected"].replace("'", "")
    else:
        message, allowed = _SHAPES.get(kind, (found["msg"], "see the manual of this key"))
    return place_of(root, at, on_key=on_key).fault(at, message, allowed)


def place_of(root: Entries, at: Loc, *, on_key: bool = False) -> Place:
    """Where that value stands; the nearest thing around it if there is none.

    A mapping or a list is pointed at by its key, which is where the eye should go.
    """
    node: Node = root
    place = root.place
    for part in at:
        if isinstance(node, Entries) and part in node.keys:
            place, node = node.keys[str(part)], node.values[str(part)]
        elif isinstance(node, Items) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            place = node.place
        else:
            return place
    return node.place if isinstance(node, Scalar) and not node.is_null and not on_key else place


def _unknown(at: Loc) -> tuple[str, str]:
    key = str(at[-1])
    known = list(keys_of(_model_at(at[:-1])))
    receivers = [name for name in known if name.endswith("_configs")]
    if receivers and key.endswith("_configs"):
        way_out = "or leave it in an Alertmanager, and send there with alertmanager_configs"
        return "Sentinel has no such receiver", f"{', '.join(receivers)}; {way_out}"
    elsewhere = [f"{path}.{key}" for path, section in every_section() if key in keys_of(section)]
    near = difflib.get_close_matches(key, known, n=1) or (elsewhere if len(elsewhere) == 1 else [])
    meant = f", did you mean {near[0]}?" if near else ""
    return f"unknown key{meant}", ", ".join(known)


def _meaning(at: Loc) -> str:
    here = _model_at(at[:-1])
    description = here.model_fields[keys_of(here)[str(at[-1])]].description or ""
    return f"{at[-1]}: {description.splitlines()[0].rstrip('.')}"


def _model_at(at: Loc) -> type[BaseModel]:
    here: Any = Settings
    for part in at:
        if get_origin(here) in (tuple, dict):
            here = get_args(here)[1 if get_origin(here) is dict else 0]
        else:
            here = here.model_fields[keys_of(here)[str(part)]].annotation
        while not isinstance(here, type) and get_origin(here) not in (tuple, dict):
            here = get_args(here)[0]  # the M of `M | None` and of `Annotated[M, …]`
    found: type[BaseModel] = here
    return found
