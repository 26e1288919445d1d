"""Values as Go's fmt prints them: `%v`, and Printf's verbs.

A float shows the fewest digits that tell it apart, and an exponent from 1e+06 on, so that
1234567 prints as 1.234567e+06. The messages of people's existing rules depend on it.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

_VERB = re.compile(
    r"%(?P<flags>[-+# 0]*)(?P<width>\d{1,4})?(?:(?P<point>\.)(?P<precision>\d{1,3})?)?"
    r"(?:\[(?P<index>\d{1,3})\])?(?P<verb>.?)",
    re.DOTALL,
)
_TYPES = {bool: "bool", int: "int", float: "float64", str: "string"}


def show(value: Any, nil: str = "<nil>") -> str:
    """`%v`."""
    if value is None:
        return nil
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_float(value)
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{show(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list | tuple):
        return "[" + " ".join(show(item) for item in value) + "]"
    return str(value)


def show_float(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    sign, shown, shift = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, shown))
    exponent = 0 if value == 0 else len(digits) + int(shift) - 1
    if -4 <= exponent < 6:
        return "-" * sign + _plain(digits, exponent)
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return f"{'-' * sign}{mantissa}e{exponent:+03d}"


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return whole + ("." + digits[exponent + 1 :] if digits[exponent + 1 :] else "")


def join(values: Sequence[Any]) -> str:
    """Print: a space between two operands of which neither is a string."""
    shown: list[str] = []
    for at, value in enumerate(values):
        apart = at and not isinstance(value, str) and not isinstance(values[at - 1], str)
        shown.append((" " if apart else "") + show(value))
    return "".join(shown)


def sprintf(text: str, arguments: Sequence[Any]) -> str:
    """Printf. Mistakes are printed, as Go prints them, and never raise."""
    place, reordered = 0, False

    def one(match: re.Match[str]) -> str:
        nonlocal place, reordered
        verb = match["verb"]
        if verb in ("%", ""):
            return verb or "%!(NOVERB)"
        if match["index"]:
            place, reordered = int(match["index"]) - 1, True
            if not 0 <= place < len(arguments):
                return f"%!{verb}(BADINDEX)"
        if place >= len(arguments):
            return f"%!{verb}(MISSING)"
        place += 1
        return _verb(verb, arguments[place - 1], match)

    shown = _VERB.sub(one, text)
    extra = () if reordered else arguments[place:]
    if extra:
        listed = ", ".join("<nil>" if v is None else f"{type_of(v)}={show(v)}" for v in extra)
        shown += f"%!(EXTRA {listed})"
    return shown


def type_of(value: Any) -> str:
    return _TYPES.get(type(value), "map[string]string" if isinstance(value, Mapping) else "object")


def _verb(verb: str, value: Any, match: re.Match[str]) -> str:
    flags, precision = match["flags"], match["precision"]
    digits = None if match["point"] is None else int(precision or 0)
    shown = _shown(verb, value, flags, digits)
    if shown is None:
        kind = "" if value is None else f"{type_of(value)}="
        return f"%!{verb}({kind}{show(value)})"
    return _pad(shown, flags, int(match["width"] or 0), numeric=isinstance(value, int | float))


def _shown(verb: str, value: Any, flags: str, digits: int | None) -> str | None:
    """The bare text of one verb, or None if the verb does not fit the value."""
    if verb == "T":
        return "<nil>" if value is None else type_of(value)
    if verb == "v" and not isinstance(value, float):
        return _signed(show(value), value, flags)
    if isinstance(value, bool):
        return show(value) if verb == "t" else None
    if isinstance(value, float):
        return _float(verb, value, flags, digits)
    if isinstance(value, int):
        return _int(verb, value, flags)
    if isinstance(value, str):
        return _string(verb, value, digits)
    return show(value) if verb == "s" and value is not None else None


def _signed(shown: str, value: Any, flags: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or shown[0] in "+-":
        return shown
    return ("+" if "+" in flags else " " if " " in flags else "") + shown


def _float(verb: str, value: float, flags: str, digits: int | None) -> str | None:
    if verb not in "vgGeEfF":
        return None
    if not math.isfinite(value):
        shown = show_float(value)
        return shown if "+" in flags or value != math.inf else "+Inf"
    if verb in "vgG" and digits is None:
        shown = show_float(value)
        return _signed(shown.upper() if verb == "G" else shown, value, flags)
    code = {"v": "g", "F": "f"}.get(verb, verb)
    return _signed(f"{value:.{6 if digits is None else digits}{code}}", value, flags)


def _int(verb: str, value: int, flags: str) -> str | None:
    if verb in "dxXob":
        return _signed(format(value, verb), value, flags)
    if verb in "cq" and 0 <= value <= 0x10FFFF:
        return chr(value) if verb == "c" else f"'{chr(value)}'"
    return f"U+{value:04X}" if verb == "U" else None


def _string(verb: str, value: str, digits: int | None) -> str | None:
    cut = value if digits is None else value[:digits]
    shown: dict[str, Callable[[], str]] = {
        "s": lambda: cut,
        "q": lambda: json.dumps(cut, ensure_ascii=False),
        "x": lambda: cut.encode().hex(),
        "X": lambda: cut.encode().hex().upper(),
    }
    return shown[verb]() if verb in shown else None


def _pad(shown: str, flags: str, width: int, *, numeric: bool) -> str:
    if "-" in flags:
        return shown.ljust(width)
    if "0" in flags and numeric and shown[-1].isdigit():
        sign = shown[0] if shown[0] in "+- " else ""
        return sign + shown[len(sign) :].rjust(width - len(sign), "0")
    return shown.rjust(width)
