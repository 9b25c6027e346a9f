from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec import (
    Command,
    Encoding,
    MalformedCommand,
    Reply,
    decode_command,
    decode_reply,
    encode_command,
    encode_reply,
)
from schemas.single_object import SingleObject, load_schema

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
INSTANTS = st.integers(0, 2**42).map(lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms))
COMMANDS = st.builds(
    Command,
    TEXTS.filter(bool),
    NAMES,
    TEXTS,
    st.sampled_from(["json", "avro"]),
    st.none() | INSTANTS,
    st.none() | st.dictionaries(TEXTS, TEXTS),
)
RESULTS = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS | st.lists(TEXTS))
REPLIES = st.builds(
    Reply,
    command_id=st.none() | TEXTS,
    subscriber=TEXTS,
    status=st.sampled_from(["accepted", "rejected"]),
    code=TEXTS,
    message=TEXTS,
    detail=st.none() | TEXTS,
    hint=st.none() | TEXTS,
    result=st.none() | RESULTS,
    replied_at=INSTANTS,
)
AVRO = encode_command(Command("1", "alice", "SHOW CQS", "avro"))
HEADER = AVRO[:10]


@given(COMMANDS)
def test_command_is_read_back(command: Command) -> None:
    """A command in either encoding is read back unchanged, with its encoding."""
    assert decode_command(encode_command(command)) == command


@given(REPLIES, st.sampled_from(["json", "avro"]))
def test_reply_is_read_back(reply: Reply, encoding: Encoding) -> None:
    """A reply in either encoding is the same reply when read."""
    assert decode_reply(encode_reply(reply, encoding)) == reply


def test_json_command_needs_the_three_fields_only() -> None:
    """Unknown fields are ignored, for newer clients."""
    value = b' {"text": "SHOW CQS", "new": [1], "command_id": "1", "subscriber": "alice"}\n'
    assert decode_command(value) == Command("1", "alice", "SHOW CQS", "json")


@pytest.mark.parametrize("sent_at", ['"2026-11-21T10:00:00Z"', '"2026-11-21T11:00:00+01:00"', "1795255200000"])
def test_json_command_may_say_when_it_was_sent(sent_at: str) -> None:
    """In JSON the time is ISO 8601 or, as in Avro, milliseconds."""
    value = f'{{"command_id": "1", "subscriber": "a", "text": "b", "sent_at": {sent_at}}}'
    assert decode_command(value.encode()).sent_at == datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "command_id"),
    [
        (None, None),
        (b"", None),
        (b"null", None),
        (b"[]", None),
        (b"{}", None),
        (b"SHOW CQS", None),
        (b'{"command_id": "", "subscriber": "a", "text": "b"}', None),
        (b'{"command_id": null, "subscriber": "a", "text": "b"}', None),
        (b'{"command_id": 7, "subscriber": "a", "text": "b"}', None),
        (b'{"command_id": "7", "text": "b"}', "7"),
        (b'{"command_id": "7", "subscriber": "a", "text": ["b"]}', "7"),
        (b'{"command_id": "7", "subscriber": "a", "text": "b", "sent_at": "2026-11-21T10:00:00"}', "7"),
        (b'{"command_id": "7", "subscriber": "a", "text": "b", "sent_at": 99999999999999999}', "7"),
        (b'{"command_id": "7", "subscriber": "a", "text": "b", "properties": {"a": 1}}', "7"),
        (b'{"command_id": "7", "subscriber": "a", "text": "b"} {}', None),
        (b'{"command_id": "7", "subscriber": "a", "text": "b"', None),
        (b'\xef\xbb\xbf{"command_id": "7", "subscriber": "a", "text": "b"}', None),
        (b'{"command_id": "\xff", "subscriber": "a", "text": "b"}', None),
        (b'{"command_id": "\\ud800", "subscriber": "a", "text": "b"}', None),
        (b'{"x":' * 100_000, None),
        (b'{"command_id": "' + b"7" * 1025 + b'", "text": "b"}', None),
    ],
    ids=repr,
)
def test_malformed_json_is_refused(value: bytes | None, command_id: str | None) -> None:
    """A value that is not a JSON object with a command's fields is refused, with its id if readable."""
    with pytest.raises(MalformedCommand) as raised:
        decode_command(value)
    assert (raised.value.encoding, raised.value.command_id) == ("json", command_id)
    assert raised.value.detail.endswith(".")


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize(
    ("command_id", "subscriber", "expected"),
    [
        ("i" * 1025, "alice", None),
        ("1", "a" * 1025, "1"),
        ("1", "a\0b", "1"),
        ("1", "line\nbreak", "1"),
        ("1", "\x9f", "1"),
    ],
    ids=["id too long", "subscriber too long", "NUL", "line feed", "C1"],
)
def test_names_are_short_and_plain(command_id: str, subscriber: str, expected: str | None, encoding: Encoding) -> None:
    """Texts repeated in each reply are bounded, and no subscriber has a control character; at the bound all is well."""
    value = encode_command(Command(command_id, subscriber, "SHOW CQS", encoding))
    with pytest.raises(MalformedCommand) as raised:
        decode_command(value)
    assert (encoding, expected) == (raised.value.encoding, raised.value.command_id)
    assert len(raised.value.detail) < 200
    longest = Command("i" * 1024, "é" * 1024, "SHOW CQS", encoding)
    assert longest == decode_command(encode_command(longest))


@pytest.mark.parametrize(
    "value",
    [
        HEADER[:2],
        HEADER,
        HEADER[:2] + bytes(8) + AVRO[10:],
        AVRO[:-1],
        AVRO + b"\0",
        encode_command(Command("", "alice", "SHOW CQS", "avro")),
        HEADER + b"\x02\xff\x02a\x02b\0\0",
        HEADER + b"\x01",
        HEADER + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        HEADER + b"\x021\x02a\x02b\x04",
        HEADER + b"\x021\x02a\x02b\x02\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\0",
    ],
    ids=repr,
)
def test_malformed_avro_is_refused(value: bytes) -> None:
    """Another schema, a cut or longer body, broken UTF-8, and lengths and times out of range are refused as Avro."""
    with pytest.raises(MalformedCommand) as raised:
        decode_command(value)
    assert raised.value.encoding == "avro"


@given(st.binary() | st.binary().map(lambda data: HEADER + data) | st.binary().map(lambda data: AVRO + data))
def test_any_bytes_are_a_command_or_refused(value: bytes) -> None:
    """No bytes raise anything but MalformedCommand."""
    try:
        command = decode_command(value)
    except MalformedCommand:
        return
    assert command.command_id


def test_fingerprint_is_the_specification_s() -> None:
    """The header of schema "int" is that of the Avro specification's test: CRC 7275d51a3f395c8f, little-endian."""
    schema: Any = fastavro.parse_schema({"type": "int"})
    assert SingleObject(schema | {"name": "int"}).header.hex() == "c301" + bytes.fromhex("7275d51a3f395c8f")[::-1].hex()


def test_optional_fields_need_not_be_written() -> None:
    """A client that fills the three fields only, by the published schema, sends a whole command."""
    body = io.BytesIO()
    record = {"command_id": "1", "subscriber": "alice", "text": "SHOW CQS"}
    fastavro.schemaless_writer(body, load_schema("command"), record)
    assert decode_command(HEADER + body.getvalue()) == Command("1", "alice", "SHOW CQS", "avro")


def test_reply_fields_are_the_contract_s() -> None:
    """A JSON reply has all fields of docs/commands.md, the missing ones as null, and its time in milliseconds."""
    replied_at = datetime(2026, 11, 21, 10, 0, 0, 123_456, UTC)
    reply = Reply(
        command_id=None, subscriber="a", status="rejected", code="syntax-error", message="m", replied_at=replied_at
    )
    written = json.loads(encode_reply(reply, "json"))
    assert datetime.fromisoformat(written.pop("replied_at")) == replied_at - timedelta(microseconds=456)
    assert written == {
        "command_id": None,
        "subscriber": "a",
        "status": "rejected",
        "code": "syntax-error",
        "message": "m",
        "detail": None,
        "hint": None,
        "result": None,
    }
    assert decode_reply(encode_reply(reply, "avro")) == decode_reply(encode_reply(reply, "json"))


def test_digest_and_result_schemas_describe_what_the_contract_shows() -> None:
    """A digest's JSON value, and a match with its headers, are valid by the published schemas."""
    row = {"symbol": "INTC", "price": 99.5, "volume": 2**53 + 1, "ok": True, "note": None}
    at = "2026-11-21T10:00:00Z"
    digest = {"fired_at": at, "from": at, "to": at, "count": 1, "part": 1, "parts": 1, "rows": [row]}
    assert fastavro.validate(digest, load_schema("digest"), strict=True)
    result = {"destination": "d_1", "ce_specversion": "1.0", "ce_type": "cq.match", "ce_source": "quotes"}
    result |= {"ce_id": "quotes/0/7", "ce_time": at, "row": row}
    assert fastavro.validate(result, load_schema("result"), strict=True)
