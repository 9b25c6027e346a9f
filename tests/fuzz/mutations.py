"""Mutations of well-formed texts and bytes. All take a `random.Random`, so a seed always gives the same case."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.corpus import TOKENS

__all__ = ["broken_bytes", "broken_text"]


def broken_text(rng: random.Random, text: str) -> str:
    """Return a text after one to four changes; an eighth of all texts stays whole."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4))):
        text = rng.choice(_ON_TEXT)(rng, text)
    return text


def broken_bytes(rng: random.Random, value: bytes) -> bytes:
    """Return bytes after one to four changes; an eighth of all values stays whole."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4))):
        value = rng.choice(_ON_BYTES)(rng, value)
    return value


def _cut(rng: random.Random, size: int) -> tuple[int, int]:
    """Return where a piece of a text of that size begins and ends."""
    first, last = sorted(rng.randrange(size + 1) for _ in range(2))
    return first, min(last, first + 40)


def _without_piece(rng: random.Random, text: str) -> str:
    first, last = _cut(rng, len(text))
    return text[:first] + text[last:]


def _piece_twice(rng: random.Random, text: str) -> str:
    first, last = _cut(rng, len(text))
    return text[:last] + text[first:last] * rng.choice((1, 1, 2, 50)) + text[last:]


def _with_token(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return f"{text[:at]} {rng.choice(TOKENS)} {text[at:]}"


def _word_for_token(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    words[rng.randrange(len(words))] = rng.choice(TOKENS)
    return " ".join(words)


def _words_swapped(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    first, second = rng.randrange(len(words)), rng.randrange(len(words))
    words[first], words[second] = words[second], words[first]
    return " ".join(words)


def _with_character(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + chr(rng.choice((rng.randrange(32), rng.randrange(128), rng.randrange(0x110000)))) + text[at:]


def _nested(rng: random.Random, text: str) -> str:
    depth = rng.choice((2, 40, 2_000))
    first, last = _cut(rng, len(text))
    return text[:first] + "(" * depth + text[first:last] + ")" * depth + text[last:]


_ON_TEXT: tuple[Callable[[random.Random, str], str], ...] = (
    _without_piece, _piece_twice, _with_token, _with_token, _word_for_token, _words_swapped, _with_character, _nested,
)  # fmt: skip


def _byte_changed(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value) + 1)
    return value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]


def _shortened(rng: random.Random, value: bytes) -> bytes:
    return value[: rng.randrange(len(value) + 1)]


def _raw_inserted(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value) + 1)
    return value[:at] + rng.randbytes(rng.choice((1, 3, 200))) + value[at:]


def _run_repeated(rng: random.Random, value: bytes) -> bytes:
    first, last = _cut(rng, len(value))
    return value[:last] + value[first:last] * rng.choice((1, 7, 500)) + value[last:]


def _huge_length(rng: random.Random, value: bytes) -> bytes:
    at = rng.randrange(len(value) + 1)
    return value[:at] + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + value[at:]


def _from_nothing(rng: random.Random, value: bytes) -> bytes:
    return rng.randbytes(rng.randrange(64))


_ON_BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _byte_changed, _byte_changed, _shortened, _raw_inserted, _run_repeated, _huge_length, _from_nothing,
)  # fmt: skip
