"""Records that are broken in one or several ways: in a part of their JSON, in any byte, in the key and the headers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.mutations import broken_bytes
from tests.fuzz.record_kinds import KafkaRecord, RecordKind

__all__ = ["broken_json", "broken_record"]

_FOREIGN = (
    b"null", b"true", b"false", b"0", b"-0", b"1", b"-1", b"1.0", b"1.5", b"1e400", b"-1e400", b"1e-400", b"0.1e1",
    b"1e2", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"99999999999999999999.5",
    b"1e999999999", b"1e9999999999", b"1e-999999999", b"-1e99999999999999999999", b'"1e99999999999999999999"', b'"--5"',
    b"9" * 39, b"9" * 400, b"9" * 5_000,
    b"0." + b"9" * 5_000, b"1732000000", b"1732000000000", b"253402300800", b"1732000000000000000", b"NaN", b"Infinity",
    b"-Infinity", b"01", b"+1", b".5", b"1.", b"1_0", b"0x10", b"{}", b"[]", b"[[]]", b"[{}]", b"[null]", b'{"": 1}',
    b'""', b'" "', b'"x"', b'"1"', b'"1.5"', b'" 1"', b'"1_0"', b'"NaN"', b'"1e400"', b'"1e999999999"', b'"null"',
    b'"true"', b'"AQ=="', b'"AQ="', b'"2024-02-30"', b'"2024-02-29"', b'"0000-01-01"', b'"10000-01-01"',
    b'"0001-01-01T00:00:00+14:00"', b'"9999-12-31T23:59:59.9999999-23:59"', b'"2024-01-01T24:00:00Z"',
    b'"2024-01-01T00:00:60Z"', b'"2024-01-01T00:00:00.123456789Z"', b'"2024-01-01T00:00:00+99:99"',
    b'"' + b"1" * 5_000 + b'"',
    b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\\u00"', b'"\\x"', b'"\xff\xfe"',
    b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\xf4\x90\x80\x80"', b'"a\x00b"', b'"a\nb"', b'"__debezium_unavailable_value"',
    b"\xef\xbb\xbf1", b"'x'", b"/**/1", b"undefined", b"",
)  # fmt: skip
"""JSON values of all kinds, and texts that are no JSON; each takes the place of a value."""
_HUGE = (
    lambda rng: b"[" * rng.choice((40, 200, 900, 2_000, 100_000)),
    lambda rng: _nested(b"[", b"]", rng.choice((40, 200, 900, 2_000, 100_000))),
    lambda rng: _nested(b'{"a":', b"}", rng.choice((40, 200, 900, 2_000, 50_000))),
    lambda rng: b'"' + b"x" * rng.choice((1_000, 70_000, 1_100_000)) + b'"',
    lambda rng: b'"' + b"\\u0041" * rng.choice((1_000, 70_000)) + b'"',
    lambda rng: b"[" + b"{}," * rng.choice((100, 20_000)) + b"{}]",
    lambda rng: b"[" + b"null," * rng.choice((100, 20_000)) + b"1]",
    lambda rng: b"{" + b",".join(b'"k%d":1' % number for number in range(rng.choice((100, 20_000)))) + b"}",
    lambda rng: b"1" * rng.choice((20, 4_300, 4_301, 100_000)),
    lambda rng: b"1e" + b"9" * rng.choice((5, 20, 5_000)),
    lambda rng: b"0." + b"0" * rng.choice((400, 100_000)) + b"1",
)  # fmt: skip
_LONG = 10_000
_IDS = (0, 1, 2, 7, 8, 70_000, 2**31 - 1, 2**31, 2**32 - 1)


def broken_record(rng: random.Random, kind: RecordKind, record: KafkaRecord) -> KafkaRecord:
    """Return a record of a kind after some changes."""
    value, key, headers = record
    roll = rng.random()
    if roll < 0.55 and kind.json_from is not None and value is not None:
        value = value[: kind.json_from] + broken_json(rng, value[kind.json_from :])
    elif roll < 0.85 and value is not None:
        value = broken_bytes(rng, value)
    elif roll < 0.88:
        value = rng.choice((None, b"", b"null", b" ", b"\xef\xbb\xbf{}", b"{}", b"\x00" * 5))
    if rng.random() < 0.1 and value:
        value = rng.choice((b"\0", b"\0", b"\1")) + rng.choice(_IDS).to_bytes(4, "big") + value[5:]
    if rng.random() < 0.3:
        key = rng.choice((None, b"", b"7", b'"7"', broken_json(rng, b'{"id": 7}'), broken_bytes(rng, b'{"id": 7}')))
    if rng.random() < 0.3:
        headers = tuple((name, _broken_header(rng, text)) for name, text in headers if rng.random() < 0.8)
    return KafkaRecord(value, key, headers)


def _broken_header(rng: random.Random, text: bytes | None) -> bytes | None:
    return rng.choice((None, text, rng.choice(_FOREIGN), broken_bytes(rng, text or b"")))


def broken_json(rng: random.Random, text: bytes) -> bytes:
    """Return JSON after one to three changes of any of its parts."""
    value = json.loads(text, object_pairs_hook=_Members)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _changed(rng, value, rng.randrange(4))
    return _written(rng, value)


class _Members(list[tuple[Any, Any]]):
    """The members of an object; a name may be there twice."""


def _changed(rng: random.Random, value: Any, depth: int) -> Any:
    """Return a value with one change, up to some levels down."""
    if depth == 0 or not isinstance(value, list) or not value:
        return rng.choice(_CHANGES)(rng, value)
    at = rng.randrange(len(value))
    parts = list(value)
    if isinstance(value, _Members):
        name, part = value[at]
        parts[at] = (name, _changed(rng, part, depth - 1))
        return _Members(parts)
    parts[at] = _changed(rng, value[at], depth - 1)
    return parts


def _foreign(rng: random.Random, _: Any) -> Any:
    return rng.choice(_FOREIGN)


def _huge(rng: random.Random, _: Any) -> Any:
    return rng.choice(_HUGE)(rng)


def _other_parts(rng: random.Random, value: Any) -> Any:
    """Return a value with a part doubled, renamed, left out or moved; of a value without parts, an array."""
    if not isinstance(value, list) or not value:
        return [value] * _times(rng, value, 300)
    parts = list(value)
    at = rng.randrange(len(parts))
    other = rng.randrange(len(parts))
    match rng.randrange(5):
        case 0:
            del parts[at]
        case 1:
            parts.append(parts[at])
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3 if isinstance(value, _Members):
            parts.append((parts[at][0], rng.choice(_FOREIGN)))
        case 4 if isinstance(value, _Members):
            name = str(parts[at][0])
            names = (
                name.upper(),
                f"{name} ",
                rng.choice(_FOREIGN),
                _escaped(name),
                name * (5_000 if len(name) < 50 else 2),
            )
            parts[at] = (rng.choice(names), parts[at][1])
        case _:
            parts = parts * _times(rng, value, 100)
    return _Members(parts) if isinstance(value, _Members) else parts


def _times(rng: random.Random, value: Any, most: int) -> int:
    """Return how often a value is repeated; a long value at most twice, since changes may repeat a value again."""
    return rng.choice((1, 2, most)) if len(_written(rng, value)) < _LONG else 2


_CHANGES: tuple[Callable[[random.Random, Any], Any], ...] = (_foreign,) * 12 + (_other_parts,) * 6 + (_huge,)


def _escaped(name: str) -> bytes:
    return b'"' + b"".join(b"\\u%04x" % ord(letter) for letter in name) + b'"'


def _nested(begin: bytes, end: bytes, depth: int) -> bytes:
    return begin * depth + b"1" + end * depth


def _written(rng: random.Random, value: Any) -> bytes:
    """Write JSON with spaces in some places; bytes are written as they are."""
    blank = b" " if rng.random() < 0.2 else b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, _Members):
        members = [_written(rng, name) + b":" + blank + _written(rng, part) for name, part in value]
        return b"{" + (b"," + blank).join(members) + b"}"
    if isinstance(value, list):
        return b"[" + (b"," + blank).join(_written(rng, part) for part in value) + b"]"
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
