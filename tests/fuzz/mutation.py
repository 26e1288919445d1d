"""Damage to bytes and text: the small changes that real corruption and typing errors make."""

import random
from collections.abc import Callable, Sequence

_INTERESTING = (b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\n", b"\r\n", b" ", b"\t", b'"',
                b"\\", b"{", b"}", b"#", b"_", b"-", b"e", b"9" * 20, b"NaN", b"\xe2\x80\xa8",
                b"\xf0\x9f\x98\x80", b"\xc2\xa0", b"\x1c", b"\x85", b"\xef\xbb\xbf")  # fmt: skip


def _flip(data: bytearray, dice: random.Random) -> None:
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _insert(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = dice.choice(_INTERESTING)


def _delete(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    del data[at : at + dice.choice((1, 1, 2, 8, 64))]


def _repeat(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    piece = data[at : at + dice.choice((1, 4, 32))]
    data[at:at] = piece * dice.choice((1, 2, 16))


def _move(data: bytearray, dice: random.Random) -> None:
    at, to = dice.randrange(len(data)), dice.randrange(len(data))
    piece = data[at : at + dice.choice((1, 4, 32))]
    del data[at : at + len(piece)]
    data[to:to] = piece


def _cut(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


_CHANGES: Sequence[Callable[[bytearray, random.Random], None]] = (
    _flip, _insert, _insert, _delete, _repeat, _move, _cut,
)  # fmt: skip


def mutated(data: bytes, dice: random.Random, *, most: int = 6) -> bytes:
    """`data` with one to `most` changes."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, most)):
        if changed:
            dice.choice(_CHANGES)(changed, dice)
        else:
            changed += dice.choice(_INTERESTING)
    return bytes(changed)


def mutated_text(text: str, dice: random.Random, *, most: int = 6) -> str:
    """Text with damage; what is no UTF-8 any more becomes lone surrogates."""
    errors = dice.choice(("replace", "surrogateescape"))
    return mutated(text.encode("utf-8", "surrogatepass"), dice, most=most).decode("utf-8", errors)
