"""Names of labels, and texts as Go shows them in keys and errors."""

import re

_NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")
_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def is_label_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def quoted(text: str) -> str:
    """As Go's `%q` does."""
    return '"' + "".join(map(_shown, text)) + '"'


def _shown(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
