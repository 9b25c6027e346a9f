"""Streams with `explode`: each element of an array is an event, read as a record of its own would be."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.scripts.definitions import create_statement
from gateway.evaluation.task import evaluated
from gateway.sources.streams import describe_stream
from gateway.testing import ACCEPTED_AT, InputError, Record, Stream, Table, digests, evaluate
from gateway.testing.query import checked
from gateway.testing.records import placed
from grouping.model.catalog import Stream as CatalogStream
from grouping.model.explode import explode_levels, explode_text
from spark_jobs.engine.decode.decode import decode, decode_pieces
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.headers import event_ids, unpacked_headers
from spark_jobs.engine.rows.output import dead_letters
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header


class Streams(NamedTuple):
    """A stream with arrays in arrays, and streams of the values that its columns lie in."""

    nested: Stream
    own: Stream
    scope: Stream
    total: Stream

    @classmethod
    def of(cls, options: str) -> Streams:
        """Declare them with further options."""
        own = "n INT, p DECIMAL(5,2), v VARIANT, at TIMESTAMP, deep STRING FROM '$.x[1].y'"
        with_explode = f"explode = '$.a[*].b[*]'{options}"
        return cls(
            _declared(f"{own}, scope STRING FROM '^.s', total BIGINT FROM '^^.t', id STRING FROM KEY", with_explode),
            _declared(f"{own}, id STRING FROM KEY", options.removeprefix(", ")),
            _declared("scope STRING FROM '$.s'", options.removeprefix(", ")),
            _declared("total BIGINT FROM '$.t'", options.removeprefix(", ")),
        )


def _declared(columns: str, options: str) -> Stream:
    rest = f", {options}" if options else ""
    return Stream(f"CREATE STREAM logs ({columns}) WITH (topic = 'logs', format = 'json'{rest})")


STRICT = Streams.of("")
LENIENT = Streams.of(", lenient = true, timestamps = 'millis'")

ODD = st.sampled_from([None, 1, 1.5, "text", True, [], {}, [1], "\ud800", 10**400, {"y": 1}])
ELEMENTS = ODD | st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-5, 5) | ODD,
        "p": st.sampled_from(["1.25", 2.5, 1000, None]),
        "v": ODD,
        "at": st.sampled_from(["2026-11-21T10:00:00.1234567Z", 1763719200000, "", "x"]),
        "x": st.lists(st.fixed_dictionaries({"y": st.text(max_size=2)}) | ODD, max_size=3) | ODD,
        "ignored": ODD,
    },
)
SCOPES = ODD | st.fixed_dictionaries(
    {}, optional={"b": st.lists(ELEMENTS, max_size=4) | ODD, "s": st.text(max_size=2) | ODD}
)
RECORDS = ODD | st.fixed_dictionaries(
    {}, optional={"a": st.lists(SCOPES, max_size=3) | ODD, "t": st.integers(0, 2**63 - 1) | ODD}
)


def text(value: object, *, ascii_only: bool = True) -> bytes:
    """Return a value as JSON, in one of its spellings."""
    return json.dumps(value, ensure_ascii=ascii_only, indent=None if ascii_only else 1).encode("utf-8", "surrogatepass")


def one_row(stream: Stream, value: object, *, ascii_only: bool) -> tuple[object, ...] | None:
    """Return the columns of a record of its own, None for a dead letter."""
    events, letters = decode(batch([text(value, ascii_only=ascii_only)]), stream.declared, SETTINGS)
    return None if letters is not None else next(iter(rows_of(events)))


def rows_of(events: Events) -> list[tuple[object, ...]]:
    """Return all declared columns of events."""
    return list(zip(*(events.values(column.name) for column in events.stream.columns), strict=True))


def exploded(record: Any, streams: Streams, *, ascii_only: bool) -> tuple[list[tuple[int, tuple[object, ...]]], bool]:
    """Return number and columns of each event of a record, and whether the record is a dead letter."""
    if not isinstance(record, dict):
        return [], True
    scopes = record.get("a")
    if scopes is not None and not isinstance(scopes, list):
        return [], True
    elements: list[tuple[Any, Any]] = []
    for scope in scopes or ():
        some = scope.get("b") if isinstance(scope, dict) else None
        if some is not None and not isinstance(some, list):
            return [], True
        elements += [(scope, each) for each in some or ()]
    found: list[tuple[int, tuple[object, ...]]] = []
    for number, (scope, element) in enumerate(elements):
        places = ((streams.own, element), (streams.scope, scope), (streams.total, record))
        own, outer, total = (one_row(stream, value, ascii_only=ascii_only) for stream, value in places)
        if own is not None and outer is not None and total is not None:
            found.append((number, (*own[:5], *outer, *total, own[5])))
    return found, len(found) < len(elements)


@settings(deadline=None, max_examples=150)
@given(st.lists(RECORDS, min_size=1, max_size=3), st.booleans(), st.sampled_from([STRICT, LENIENT]))
def test_each_element_is_read_as_a_record_of_its_own(records: list[Any], ascii_only: bool, streams: Streams) -> None:
    """Events, their numbers and the dead letters are those of a Python program that takes the arrays apart."""
    expected: list[tuple[int, int, tuple[object, ...]]] = []
    bad: list[int] = []
    for offset, record in enumerate(records, FIRST_OFFSET):
        found, is_bad = exploded(record, streams, ascii_only=ascii_only)
        expected += [(offset, number, values) for number, values in found]
        bad += [offset] * is_bad
    events: list[tuple[int, int, tuple[object, ...]]] = []
    letters: list[int] = []
    texts = [text(each, ascii_only=ascii_only) for each in records]
    for piece, dead in decode_pieces(batch(texts), streams.nested.declared, SETTINGS):
        assert piece.number is not None
        events += zip(piece.offsets.tolist(), piece.number.tolist(), rows_of(piece), strict=True)
        letters += [] if dead is None else _offsets(dead)
    assert (events, letters) == (expected, bad)


def _offsets(letters: pa.RecordBatch) -> list[int]:
    packed = (dict(unpacked_headers(each)) for each in letters["headers"].to_pylist())
    return [int(each["source"].rpartition(b"/")[2]) for each in packed]


TRADES = Stream(
    "CREATE STREAM trades (s STRING, n INT, venue STRING FROM '^.venue') "
    "WITH (topic = 'trades', format = 'json', explode = '$.list')"
)
BATCH = {"venue": "x", "list": [{"s": "a", "n": 1}, {"s": "b", "n": 2}, {"s": "a", "n": 3}]}


def test_a_record_has_a_result_for_each_element_that_matches() -> None:
    """Columns outside of the element repeat; an empty array, a missing one and null are no event."""
    sent = [BATCH, {"venue": "y", "list": []}, {"venue": "y"}, {"list": None}, {"list": [{"s": "a"}]}]
    found = evaluate("SELECT s, n, venue, _offset, _value FROM trades WHERE s = 'a'", TRADES, sent)
    assert [[(one["n"], one["venue"], one["_offset"]) for one in each.results] for each in found] == [
        [(1, "x", 0), (3, "x", 0)], [], [], [], [(None, None, 4)],
    ]  # fmt: skip
    assert [each.why for each in found[1:4]] == ["the record has no elements"] * 3
    assert found[0].results[1]["_value"] == {"n": 3, "s": "a"}
    [missed] = evaluate("SELECT s FROM trades WHERE s = 'c'", TRADES, [BATCH])
    assert (missed.matches, missed.why) == (False, "s = 'c' is FALSE")


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (b'{"list": [{"n": 1}, {"n": "x"}, 7, {"n": 2}]}',
         'Element 1: Column "n" of type INT cannot hold the value: a string is no number. (and 1 other)'),
        (b'{"list": [{}], "venue": 5}',
         """Column "venue" of type STRING cannot hold the value at ^.venue: a number is no string."""),
        (b'{"list": {"n": 1}}', "The value has an object at $.list, and explode takes an array."),
        (b'{"list": [{"n": 1},]}', "The value is not one JSON object: "),
        (b'[{"n": 1}]', "The value is JSON but no object."),
        (None, "The record has no value."),
    ],
)  # fmt: skip
def test_a_bad_element_is_a_dead_letter_of_its_record(value: bytes | None, detail: str) -> None:
    """A record is one dead letter, whatever number of its elements is bad; its good elements are events."""
    [found] = evaluate("SELECT n FROM trades WHERE n > 0", TRADES, [value])
    assert found.dead_letter == "undecodable"
    assert (found.why or "").startswith(f"undecodable: {detail}")
    assert [one["n"] for one in found.results] == ([1, 2] if value and b'"x"' in value else [])


def test_a_value_in_place_of_an_inner_array_is_named_by_the_whole_path() -> None:
    """The path begins at the record, on every level."""
    stream = Stream("CREATE STREAM t (n INT) WITH (topic = 't', format = 'json', explode = '$.a[*].b[*].c')")
    values = [{"a": [{"b": {}}]}, {"a": [{"b": [{"c": 7}]}]}]
    assert [found.why for found in evaluate("SELECT n FROM t", stream, values)] == [
        "undecodable: The value has an object at $.a[*].b, and explode takes an array.",
        "undecodable: The value has a number at $.a[*].b[*].c, and explode takes an array.",
    ]


def test_ids_end_with_the_number_of_the_element() -> None:
    """The number is that of the element in its record, whichever elements are bad or match."""
    sent = b'{"list": [{"s": "a"}, 5, {"s": "b"}, {"s": "a"}]}'
    pieces = list(decode_pieces(batch([sent]), TRADES.declared, SETTINGS))
    [(events, letters)] = pieces
    assert letters is not None
    assert event_ids("trades", events, np.arange(3, dtype=np.int32)).to_pylist() == [
        f"trades/3/{FIRST_OFFSET}/{number}" for number in (0, 2, 3)
    ]


def test_a_record_of_many_elements_comes_in_pieces() -> None:
    """Their numbers go on; what they have in common is held once, and repeated for a bounded part of them."""
    count = 25_000
    sent = json.dumps({"venue": "v" * 20_000, "list": [{"n": n} for n in range(count)]}).encode()
    numbers: list[int] = []
    sizes = []
    for events, letters in decode_pieces(batch([b'{"list": [{"n": 1}]}', sent]), TRADES.declared, SETTINGS):
        assert letters is None and events.number is not None
        numbers += events.number[events.offsets > FIRST_OFFSET].tolist()
        sizes.append(events.column("venue").nbytes)
        assert events.source.nbytes < 2 * len(sent) + 400_000
    assert numbers == list(range(count))
    assert max(sizes) < 80 << 20


def test_bad_elements_in_several_pieces_are_one_dead_letter() -> None:
    """The dead letter counts all of them, whatever records the batch has before."""
    values = [b'{"list": [{"n": 1}]}', json.dumps({"list": [7] * 12_000}).encode()]
    for records in (values, values[1:]):
        found = [letters for _, letters in decode_pieces(batch(records), TRADES.declared, SETTINGS) if letters]
        [letter] = found[0].to_pylist()
        assert header(letter, "detail") == "Element 0: The value is JSON but no object. (and 11999 others)"
        assert len(found) == 1


def test_a_record_without_elements_counts_no_misfit() -> None:
    """The key of a record in between is read only for its events."""
    of = Stream(
        "CREATE STREAM s (n INT, id INT FROM KEY '$.id') WITH (topic = 't', format = 'json', lenient = true, "
        "explode = '$')"
    )
    records = batch([b'[{"n": 1}]', b"[]", b'[{"n": 2}]'], [b'{"id": 1}', b'{"id": "x"}', b'{"id": "y"}'])
    [(events, letters)] = decode_pieces(records, of.declared, SETTINGS)
    assert (letters, events.misfits) == (None, {"id": 1})
    assert events.column("id").to_pylist() == [1, None]


def test_digests_take_each_element_once_and_in_order() -> None:
    """Rows and aggregates of an exploded stream, also where a join gives an element several rows."""
    again = [Record(BATCH, key="k"), Record(BATCH, key="k")]
    [rows] = digests("SELECT n, venue FROM trades WHERE s = 'a' EVERY '1 minute'", TRADES, again)
    assert (rows["count"], [row["n"] for row in rows["rows"]]) == (4, [1, 3, 1, 3])
    aggregates = "count(*) AS c, sum(n) AS total, first(n) AS f, last(n) AS l, min_by(n, venue) AS m"
    [groups] = digests(f"SELECT s, {aggregates} FROM trades GROUP BY s EVERY '1 minute'", TRADES, again)
    assert groups["rows"] == [
        {"s": "a", "c": 4, "total": 8, "f": 1, "l": 3, "m": 1},
        {"s": "b", "c": 2, "total": 4, "f": 2, "l": 2, "m": 2},
    ]
    owners = Table("owners (s STRING, who STRING, PRIMARY KEY (s, who))", [
        {"s": "a", "who": "ann"}, {"s": "a", "who": "bob"}, {"s": "b", "who": "cem"},
    ])  # fmt: skip
    select = "SELECT t.n, o.who FROM trades t JOIN owners o ON o.s = t.s"
    [joined] = evaluate(select, TRADES, [BATCH], tables=[owners])
    expected = [(1, "ann"), (1, "bob"), (2, "cem"), (3, "ann"), (3, "bob")]
    assert [(one["n"], one["who"]) for one in joined.results] == expected
    [digest] = digests(f"{select} EVERY '1 minute'", TRADES, [BATCH], tables=[owners])
    assert [(one["n"], one["who"]) for one in digest["rows"]] == expected


def test_fields_of_the_record_repeat_and_letters_do_not() -> None:
    """Key and headers are the record's for each element; results that are too large are one dead letter."""
    sent = Record(BATCH, key="k", headers={"h": "x"})
    [found] = evaluate("SELECT _key, _headers['h'] AS h, n FROM trades WHERE _key = 'k'", TRADES, [sent])
    assert found.results == [{"_key": "k", "h": "eA==", "n": n} for n in (1, 2, 3)]
    large, sent = "venue AS a, upper(venue) AS b", Record({**BATCH, "venue": "x" * 600_000}, key="k")
    kinds = Table("kinds (s STRING PRIMARY KEY)", [{"s": "a"}])
    for select in (f"SELECT {large} FROM trades", f"SELECT {large} FROM trades JOIN kinds ON kinds.s = trades.s"):
        standing = checked(select, TRADES, ACCEPTED_AT, [kinds])
        [output] = evaluated(standing, placed([sent], TRADES, ACCEPTED_AT), "d_" + "0" * 24, "shared")
        assert (output.letters[0, 0].code, output.values) == ("result-too-large", {})
    columns = {row: "too large" for row in range(3)}
    [(events, _)] = decode_pieces(batch([json.dumps(BATCH).encode()]), TRADES.declared, SETTINGS)
    assert dead_letters(events.source, columns, "result-too-large", TRADES.declared, SETTINGS).num_rows == 1


LEVELS = [
    ("$", "$[*]", ((),)),
    ("$.Records", "$.Records[*]", (("Records",),)),
    ("$['a[*]'][*].b[0]", '$["a[*]"][*].b[0][*]', (("a[*]",), ("b", 0))),
    ("$[*][*]", "$[*][*]", ((), ())),
]


@pytest.mark.parametrize(("given_text", "shown", "levels"), LEVELS)
def test_paths_of_explode(given_text: str, shown: str, levels: object) -> None:
    """A path has one form, which is read as the same path."""
    assert (explode_levels(given_text), explode_text(explode_levels(given_text))) == (levels, shown)
    assert explode_levels(shown) == levels


def test_arrays_at_the_top_and_within_arrays() -> None:
    """The record may be an array; a value around an event may be one, too."""
    stream = Stream(
        "CREATE STREAM t (n INT FROM '$', first INT FROM '^[0]', top INT FROM '^^[0][0]') "
        "WITH (topic = 't', format = 'json', explode = '$[*][*]')"
    )
    [found] = evaluate("SELECT * FROM t", stream, [b"[[1, 2], 5, [], [3]]"])
    assert (found.dead_letter, found.results) == ("undecodable", [])
    [found] = evaluate("SELECT * FROM t", stream, [b"[[1, 2], null, [], [3]]"])
    assert [tuple(one.values()) for one in found.results] == [(1, 1, 1), (2, 1, 1), (3, 3, 1)]


@pytest.mark.parametrize(
    ("columns", "options", "code"),
    [
        ("n INT FROM '^.n'", "format = 'json'", "stream-mismatch"),
        ("n INT FROM '^^.n'", "format = 'json', explode = '$.a'", "stream-mismatch"),
        ("n INT FROM KEY '^.n'", "format = 'json', explode = '$.a'", "syntax-error"),
        ("n INT", "format = 'json', explode = 'a'", "syntax-error"),
        ("n INT", "format = 'json', explode = '$.a[*]b'", "syntax-error"),
        ("n INT", "format = 'json', explode = '$[*][*][*][*][*][*][*][*][*]'", "syntax-error"),
        ("n INT", "format = 'avro', schema = '{}', explode = '$.a'", "stream-mismatch"),
    ],
)
def test_refusals(columns: str, options: str, code: str) -> None:
    """CREATE STREAM names the wrong path."""
    with pytest.raises(InputError) as refused:
        Stream(f"CREATE STREAM t ({columns}) WITH (topic = 't', {options})")
    assert refused.value.code == code


def test_the_stream_is_stored_shown_and_made_again() -> None:
    """The catalog, DESCRIBE and `cq export` have the path; a stream without the option is stored as before."""
    declared = TRADES.declared
    stored = msgspec.json.encode(declared)
    assert msgspec.json.decode(stored, type=CatalogStream) == declared
    assert b"explode" not in msgspec.json.encode(STRICT.own.declared)
    shown = describe_stream(declared)
    assert shown["explode"] == "$.list[*]" and "explode" not in describe_stream(STRICT.own.declared)
    again = Stream(create_statement({**shown, "schema": None}))
    assert (again.declared.explode, again.declared.columns) == (declared.explode, declared.columns)


def test_the_edge_is_that_of_the_result() -> None:
    """A record with several elements may have several edges; `edge` and `result` are of the first."""
    stream = Stream(
        "CREATE STREAM nested (device STRING, temp DOUBLE, PARTITION KEY (device)) "
        "WITH (topic = 'nested', format = 'json', explode = '$.many')"
    )
    record = {"many": [{"device": "a", "temp": temp} for temp in (95.0, 20.0, 96.0)]}
    query = "SELECT device, _edge FROM nested WHERE temp > 90 EMIT ON ENTER OR EXIT BY device"
    [row] = evaluate(query, stream, [record])
    assert ["enter", "exit", "enter"] == [each["_edge"] for each in row.results]
    assert "enter" == row.edge
