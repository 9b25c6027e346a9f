"""Declarations of sources with broken paths, descriptors and schemas: each is refused, or decodes whatever comes in."""

from __future__ import annotations

import json
import random
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2

from gateway.sources.stream_statement import stream_statement
from grouping.model.catalog import Stream
from tests.fuzz.mutations import broken_bytes, broken_text
from tests.fuzz.record_kinds import record_kinds
from tests.fuzz.record_mutations import broken_json

__all__ = ["broken_declaration", "hostile_schema", "inferred_declaration"]

_STEPS = (
    ".a", ".data", "..", ".", "[0]", "[255]", "[256]", "[-1]", "[01]", "[*]", "[*", "['a b']", "[''a'']", '["a"]',
    '["a', "[]", '["\\u0041"]', "[999999999]", "[9999999999]", ".*", ".?(@.a)", "[?(@.a)]", " ", "^", "$", ".é",
    ".\x00", ".'", '["\\n"]', '[""]', ".A", ".rows", ".a" * 40, "[0]" * 40, "[*]" * 9, "." + "n" * 2_000, "[1:2]",
    "[0,1]", ".length()", "\U0001f600",
)  # fmt: skip
_FROM = re.compile(r"(?<=FROM )'(?:[^']|'')*'|(?<=KEY )'(?:[^']|'')*'|(?<=explode = )'(?:[^']|'')*'")
_OPTION = re.compile(r"(?<=descriptor = )'[^']*'|(?<=schema = )'[^']*'|(?<=schemas = )'[^']*'")
_TYPES = (
    "STRING", "INT", "TINYINT", "DECIMAL(38,38)", "DECIMAL(1,0)", "VARIANT", "BINARY", "TIMESTAMP", "DATE", "FLOAT",
    "ARRAY<ARRAY<STRING>>", "MAP<STRING, STRUCT<a: INT>>", "STRUCT<a: STRUCT<b: ARRAY<VARIANT>>>",
    "ARRAY<DECIMAL(10,2)>",
)  # fmt: skip
_NAMES = ("x.Trade", "x.Other", "x.Trade.Leg", "x.Trade.TagsEntry", "google.protobuf.Timestamp", "", ".x.Trade", "x")


def broken_declaration(rng: random.Random) -> tuple[str, str]:
    """Return the name of a kind of records, and a CREATE STREAM that is like the kind's, but broken in some parts."""
    name, text = rng.choice(_declarations())
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(_CHANGES)(rng, text)
    return name, text


def inferred_declaration(rng: random.Random) -> tuple[str, str]:
    """Return the name of a kind of records, and a CREATE STREAM … FROM TOPIC with a broken schema or descriptor."""
    name, text = rng.choice([each for each in _declarations() if _OPTION.search(each[1])])
    options = text[text.index(" WITH (") :].replace("topic = 'source', ", "")
    return name, _with_other_schema(rng, f"CREATE STREAM s FROM TOPIC 'source'{options}")


@cache
def _declarations() -> list[tuple[str, str]]:
    sources = ((name, kind.source) for name, kind in record_kinds().items())
    return [(name, stream_statement(source)) for name, source in sources if isinstance(source, Stream)]


def _with_other_path(rng: random.Random, text: str) -> str:
    path = rng.choice(("$", "$", "$", "^", "^^", "", "$$")) + "".join(
        rng.choice(_STEPS) for _ in range(rng.randrange(4))
    )
    return _replaced(rng, _FROM, text, path)


def _with_other_schema(rng: random.Random, text: str) -> str:
    found = _OPTION.search(text)
    if found is None:
        return _with_other_path(rng, text)
    return _replaced(rng, _OPTION, text, rng.choice(_OTHERS)(rng, found[0][1:-1], "descriptor" in text))


def _with_other_type(rng: random.Random, text: str) -> str:
    kinds = [*re.finditer(r"\b(?:STRING|DOUBLE|BIGINT|INT|DECIMAL\([\d,]+\)|TIMESTAMP|BOOLEAN)\b", text)]
    if not kinds:
        return text
    found = rng.choice(kinds)
    return text[: found.start()] + rng.choice(_TYPES) + text[found.end() :]


def _with_other_word(rng: random.Random, text: str) -> str:
    words = ("json", "avro", "protobuf", "debezium-json", "confluent", "raw", "millis", "single-object", *_NAMES)
    return _replaced(rng, re.compile(r"(?<== )'[a-zA-Z-.]{0,20}'"), text, rng.choice(words))


def _broken(rng: random.Random, text: str) -> str:
    return broken_text(rng, text).encode("utf-8", "ignore").decode()


_CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    _with_other_path, _with_other_path, _with_other_schema, _with_other_type, _with_other_word, _broken,
)  # fmt: skip


def _replaced(rng: random.Random, pattern: re.Pattern[str], text: str, by: str) -> str:
    found = [*pattern.finditer(text)]
    if not found:
        return text
    one = rng.choice(found)
    return f"{text[: one.start()]}'{by.replace(chr(39), chr(39) * 2)}'{text[one.end() :]}"


def _broken_option(rng: random.Random, given: str, is_descriptor: bool) -> str:
    if is_descriptor:
        return b64encode(broken_bytes(rng, b64decode(given))).decode()
    try:
        return broken_json(rng, given.encode()).decode("utf-8", "replace")
    except (ValueError, RecursionError):  # an earlier change has left no JSON, or JSON that is too deep
        return _broken(rng, given)


def _broken_letters(rng: random.Random, given: str, _: bool) -> str:
    return _broken(rng, given)


def _hostile_option(rng: random.Random, _: str, is_descriptor: bool) -> str:
    return _hostile_descriptor(rng) if is_descriptor else hostile_schema(rng)


_OTHERS = (_broken_option, _broken_option, _broken_letters, _hostile_option)


def hostile_schema(rng: random.Random) -> str:
    """Return the text of a schema that is deep, wide, or contains itself; a third of them under the id 7."""
    node: Any = rng.choice(("string", "Node", {"type": "array", "items": "Node"}, ["null", "Node"], "null", "Other"))
    depth = rng.choice((1, 50, 127, 200, 900, 5_000))
    nested = rng.choice(('{"type": "array", "items": ', '{"type": "map", "values": ', '["null", ', '{"type": '))
    end = "]" if nested[0] == "[" else "}"
    width = rng.choice((1, 50, 1_200))
    records = rng.choice((0, 3, 200))
    fields = [
        {"name": f"r{at}", "type": {"type": "record", "name": f"R{at}", "fields": [
            {"name": name, "type": f"R{at - 1}" if at else "long"} for name in ("a", "b")]}}
        for at in range(records)
    ]  # fmt: skip
    fields += [{"name": f"f{at}", "type": node} for at in range(width)]
    written = json.dumps({"type": "record", "name": "Node", "fields": [{"name": "symbol", "type": "@"}, *fields]})
    written = written.replace('"@"', nested * depth + '"string"' + end * depth)
    return rng.choice((written, written, f'{{"7": {written}}}'))


def _hostile_descriptor(rng: random.Random) -> str:
    """Return a descriptor of messages that are deep, wide, or contain themselves; files may import in a circle."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="trade.proto", package="x", syntax=rng.choice(("proto2", "proto3", ""))
    )
    depth = rng.choice((1, 20, 200, 990, 3_000))
    for at in range(depth):
        message = file.message_type.add(name=f"M{at}" if at else "Trade")
        below = rng.choice((at + 1, at + 1, at, 0)) if at + 1 < depth else 0
        of = f".x.M{below}" if below else ".x.Trade"
        message.field.add(name="symbol", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
        for name in ("leg", "legs", "i")[: rng.choice((1, 2, 3))]:
            label = kinds.LABEL_REPEATED if name == "legs" else kinds.LABEL_OPTIONAL
            kind = (
                kinds.TYPE_MESSAGE
                if name != "i"
                else rng.choice((kinds.TYPE_GROUP, kinds.TYPE_MESSAGE, kinds.TYPE_ENUM))
            )
            message.field.add(name=name, number=len(message.field) + 1, type=kind, label=label, type_name=of)
    if rng.random() < 0.3:
        trade = file.message_type[0]
        for number in range(rng.choice((10, 1_500))):
            kind = rng.choice((kinds.TYPE_GROUP, kinds.TYPE_INT32, kinds.TYPE_BYTES, kinds.TYPE_FIXED64))
            trade.field.add(name=f"f{number}", number=10 + number, type=kind, label=kinds.LABEL_OPTIONAL)
    files = [file]
    for number in range(rng.choice((0, 0, 3, 1_100))):
        files.append(descriptor_pb2.FileDescriptorProto(name=f"f{number}.proto", dependency=[f"f{number + 1}.proto"]))
    if len(files) > 1:
        files[-1].dependency[:] = rng.choice(([], ["f0.proto"], ["no.proto"], ["google/protobuf/any.proto"]))
    return b64encode(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()).decode()
