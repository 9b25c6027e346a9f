"""Matches become records: values, headers, addresses, sizes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.catalog import RECORD_FIELDS
from grouping.model.expression import Call, Column, Expression
from grouping.plan.group import SelectItem, SelectList
from grouping.store.constant_table import MODES
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.results.split import split
from spark_jobs.engine.rows.edge_rows import EdgeRows
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import MAX_RECORD_BYTES, OUTPUT
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header, headers, stream

TYPED = stream("s STRING", "b BOOLEAN", "i INT", "l BIGINT", "d DOUBLE", "n DECIMAL(30,8)", "day DATE", "at TIMESTAMP")
TYPES = {column.name: str(column.type) for column in TYPED.columns} | {
    name: str(sql_type) for name, sql_type in RECORD_FIELDS.items()
}
NULLS = '{"s":null,"b":null,"i":null,"l":null,"d":null,"n":null,"day":null,"at":null}'


def select(*names: str, **expressions: Expression) -> SelectList:
    """Return a SELECT list of plain columns, then of expressions under an alias."""
    items = [SelectItem(name, Column(name, TYPES[name])) for name in names]
    return SelectList("", (*items, *(SelectItem(name, expression) for name, expression in expressions.items())))


def matching(
    rows: Sequence[tuple[int, bytes, str, int, int, int]],
    selects: Sequence[SelectList],
    groups: Sequence[str] = ("g_a",),
) -> Matches:
    """Return matches of (event, destination, mode, partition, select, group)."""
    event, destination, mode, partition, chosen, group = zip(*rows, strict=True) if rows else ((),) * 6
    return Matches(
        np.array(event, np.int32),
        pa.array([name.ljust(12, b"\0") for name in destination], pa.binary(12)),
        np.array([MODES.index(name) for name in mode], np.int8),
        np.array(partition, np.int32),
        np.zeros(len(event), np.int32),
        np.array(chosen, np.int32),
        np.array(group, np.int32),
        tuple(selects),
        tuple(groups),
    )


def no_expressions(_expression: Expression, _events: Events, _rows: np.ndarray) -> pa.Array:
    """Fail: the test's SELECT lists are of plain columns."""
    raise AssertionError("a plain column was evaluated")


def written(events: Events, matches: Matches, evaluate=no_expressions) -> list[dict]:
    """Return all output rows, after a check of each batch's layout."""
    batches = list(split(events, matches, TYPED, SETTINGS, evaluate))
    for output in batches:
        output.validate(full=True)
        assert output.schema.equals(OUTPUT)
        assert output.num_rows > 0
    return [row for output in batches for row in output.to_pylist()]


def only_value(record: bytes, chosen: SelectList, evaluate=no_expressions) -> str:
    """Return the published value of one record."""
    events, _ = decode(batch([record]), TYPED, SETTINGS)
    [row] = written(events, matching([(0, b"d", "shared", 0, 0, 0)], [chosen]), evaluate)
    return row["value"].decode()


def test_shared_and_dedicated_addresses():
    """A shared result goes to the partition of the reply, a dedicated one to partition 0 of its own topic."""
    events, _ = decode(batch([b'{"s":"a"}', b'{"s":"b"}']), TYPED, SETTINGS)
    matches = matching(
        [
            (1, b"\x01\x00", "shared", 17, 0, 0),
            (0, b"\xff", "dedicated", 0, 0, 0),
            (0, b"\x01\x00", "shared", 17, 0, 0),
        ],
        [select("s")],
    )
    rows = written(events, matches)

    d1, d2 = "d_01" + "00" * 11, "d_ff" + "00" * 11
    assert [
        (d1.encode(), b'{"s":"a"}', "cq.results", 17),
        (d1.encode(), b'{"s":"b"}', "cq.results", 17),
        (d2.encode(), b'{"s":"a"}', f"cq.results.{d2}", 0),
    ] == [(row["key"], row["value"], row["topic"], row["partition"]) for row in rows]


def test_headers():
    """The headers are CloudEvents 1.0 of the source record, the same for each of its results."""
    events, _ = decode(batch([b"{}{}", b"{}"], partitions=[3, 12]), TYPED, SETTINGS)
    rows = written(events, matching([(0, b"a", "shared", 0, 0, 0), (0, b"b", "dedicated", 0, 0, 0)], [select("s")]))

    expected = {
        "ce_specversion": b"1.0",
        "ce_type": b"cq.match",
        "ce_source": b"quotes",
        "ce_id": f"quotes/12/{FIRST_OFFSET + 1}".encode(),
        "ce_time": b"2023-11-14T22:13:20.124Z",
    }
    assert [list(expected.items())] * 2 == [headers(row) for row in rows]


def test_stream_name_of_any_length():
    """Header offsets count bytes, whatever the stream's name."""
    source = stream("s STRING", name="größe.x-y")
    events, _ = decode(batch([b"{}"] * 3), source, SETTINGS)
    matches = matching([(row, b"a", "shared", 0, 0, 0) for row in range(3)], [select("s")])
    [output] = split(events, matches, source, SETTINGS, no_expressions)

    assert ["größe.x-y/3/100", "größe.x-y/3/101", "größe.x-y/3/102"] == [
        header(row, "ce_id") for row in output.to_pylist()
    ]
    assert "größe.x-y" == header(output.to_pylist()[2], "ce_source")


def test_virtual_is_once_for_event_and_group():
    """A virtual match writes all columns once for the event and its group, to the source's partition."""
    events, _ = decode(batch([b'{"i":1}', b'{"i":2}'], partitions=[4, 5]), TYPED, SETTINGS)
    rows = [(1, b"a", "virtual", 0, 0, 1), (0, b"b", "virtual", 0, 0, 1), (1, b"c", "virtual", 0, 0, 1)]
    rows += [(1, b"d", "virtual", 0, 0, 0)]
    out = written(events, matching(rows, [select("s")], ["g_a", "g_b"]))

    second = NULLS.replace('"i":null', '"i":2').encode()
    assert [
        (b"g_a", "cq.results.g_a", 5, second),
        (b"g_b", "cq.results.g_b", 4, NULLS.replace('"i":null', '"i":1').encode()),
        (b"g_b", "cq.results.g_b", 5, second),
    ] == sorted((row["key"], row["topic"], row["partition"], row["value"]) for row in out)


@pytest.mark.parametrize(
    ("record", "names", "expected"),
    [
        (b'{"s":"a","i":1}', ["i", "s"], '{"i":1,"s":"a"}'),
        (b"{}", list("sbildn") + ["day", "at"], NULLS),
        (b'{"d":100}', ["d"], '{"d":100.0}'),
        (b'{"d":0.1}', ["d"], '{"d":0.1}'),
        (b'{"l":9223372036854775807}', ["l"], '{"l":9223372036854775807}'),
        (b'{"n":0.00000001}', ["n"], '{"n":"0.00000001"}'),
        (b'{"n":1e10}', ["n"], '{"n":"10000000000.00000000"}'),
        (b'{"day":"20261121"}', ["day"], '{"day":"2026-11-21"}'),
        (b'{"at":"2026-11-21T10:00:00+01:00"}', ["at"], '{"at":"2026-11-21T09:00:00Z"}'),
        (b'{"at":"2026-11-21T10:00:00.00025"}', ["at"], '{"at":"2026-11-21T10:00:00.000250Z"}'),
        (b'{"at":"0001-01-01T00:00:00Z"}', ["at"], '{"at":"0001-01-01T00:00:00Z"}'),
        (b'{"s":"a\\n\\"\\u0000\\u00fc"}', ["s"], '{"s":"a\\n\\"\\u0000ü"}'),
        (
            b"{}",
            ["_key", "_time", "_partition", "_offset"],
            '{"_key":"k","_time":"2023-11-14T22:13:20.123000Z","_partition":3,"_offset":100}',
        ),
    ],
)
def test_value(record, names, expected):
    """Values are JSON in the order of the SELECT list, each type in the form of docs/results.md."""
    assert expected == only_value(record, select(*names))


def test_name_that_json_escapes():
    """An alias may be any text."""
    chosen = SelectList("", (SelectItem('a"\\\n', Column("i", "INT")), SelectItem("ü", Column("s", "STRING"))))

    assert {'a"\\\n': 1, "ü": None} == json.loads(only_value(b'{"i":1}', chosen))


def test_expressions():
    """Expressions are evaluated on the rows that are published, once each; NaN and infinity become null."""
    events, _ = decode(batch([b'{"d":1}', b'{"d":2}', b'{"d":3}']), TYPED, SETTINGS)
    doubled = Call("+", (Column("d", "DOUBLE"), Column("d", "DOUBLE")), "DOUBLE")
    seen: list[list[int]] = []

    def evaluate(expression: Expression, of: Events, rows: np.ndarray) -> pa.Array:
        assert doubled == expression
        seen.append(rows.tolist())
        numbers = of.column("d").take(pa.array(rows))
        return pc.if_else(pc.equal(numbers, 3.0), math.inf, pc.add(numbers, numbers))

    matches = matching(
        [(2, b"a", "shared", 0, 0, 0), (0, b"a", "shared", 0, 0, 0), (2, b"b", "shared", 0, 0, 0)],
        [select("d", twice=doubled)],
    )
    rows = written(events, matches, evaluate)

    assert [[0, 2]] == seen
    assert [b'{"d":1.0,"twice":2.0}', b'{"d":3.0,"twice":null}', b'{"d":3.0,"twice":null}'] == [
        row["value"] for row in rows
    ]


def test_too_large_result_is_a_dead_letter():
    """A result that no record can hold is one dead letter of its source record; the others are written."""
    text = b"x" * (MAX_RECORD_BYTES // 2)
    events, _ = decode(batch([b'{"s":"a"}', b'{"s":"%s"}' % text], keys=[b"k0", b"k1"]), TYPED, SETTINGS)
    twice = SelectList("", (SelectItem("s", Column("s", "STRING")), SelectItem("again", Column("s", "STRING"))))
    rows = [(event, name, "shared", 0, 0, 0) for event in (0, 1) for name in (b"a", b"b", b"c")]
    out = written(events, matching(rows, [twice]))

    assert ["cq.results"] * 3 + ["cq.deadletters"] == [row["topic"] for row in out]
    assert (b"k1", events.source["value"][1].as_py()) == (out[3]["key"], out[3]["value"])
    assert "result-too-large" == header(out[3], "code")
    assert "source/3/101" == header(out[3], "source")
    assert "d_61" + "00" * 11 + " (and 2 others)" in header(out[3], "detail")


def test_output_batches_are_bounded():
    """Many large results come in several batches, in source order, none of them lost."""
    events, _ = decode(batch([b'{"s":"%s"}' % (b"x" * 10_000)] * 100), TYPED, SETTINGS)
    rows = [(event, bytes([name]), "shared", 0, 0, 0) for name in range(50) for event in range(100)]
    batches = list(split(events, matching(rows, [select("s")]), TYPED, SETTINGS, no_expressions))

    assert len(batches) > 1
    assert all(output["value"].nbytes < 10 << 20 for output in batches)
    offsets: dict[bytes, list[int]] = {}
    for row in (row for output in batches for row in output.select(["key", "headers"]).to_pylist()):
        offsets.setdefault(row["key"], []).append(int(header(row, "ce_id").split("/")[2]))
    assert [list(range(FIRST_OFFSET, FIRST_OFFSET + 100))] * 50 == list(offsets.values())


def test_no_match_writes_nothing():
    """Without a match there is no output, also when there is no event."""
    events, _ = decode(batch([None]), TYPED, SETTINGS)

    assert [] == written(events, matching([], [select("s")]))


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 6), st.sampled_from(["shared", "dedicated"])),
        unique_by=lambda m: m[:2],
    )
)
def test_each_match_is_one_record(pairs):
    """Whatever the matches and their order: one record each, with its own SELECT list's value, in source order."""
    events, _ = decode(batch([b'{"i":%d,"s":"%d"}' % (row, row) for row in range(5)]), TYPED, SETTINGS)
    selects = [select("i"), select("s", "i"), select("d", "s")]
    mode = {name: kind for _, name, kind in pairs}
    rows = [(event, bytes([name]), mode[name], name, name % 3, 0) for event, name, _ in pairs]
    out = written(events, matching(rows, selects))

    expected: dict[int, list[str]] = {}
    for event, name, _ in sorted(pairs):
        value = [f'{{"i":{event}}}', f'{{"s":"{event}","i":{event}}}', f'{{"d":null,"s":"{event}"}}'][name % 3]
        expected.setdefault(name, []).append(f"{FIRST_OFFSET + event} {value}")
    found: dict[int, list[str]] = {}
    for row in out:
        offset = header(row, "ce_id").split("/")[2]
        found.setdefault(bytes.fromhex(row["key"].decode()[2:])[0], []).append(f"{offset} {row['value'].decode()}")
    assert expected == found


def test_a_row_far_larger_than_a_record_is_not_made():
    """A large column that is selected hundreds of times is a dead letter, not gigabytes; its neighbours are there."""
    large, small = b'{"s":"%s"}' % (b"x" * 900_000), b'{"s":"y"}'
    events, _ = decode(batch([large, small] * 10), TYPED, SETTINGS)
    twice = Call("concat", (Column("s", "STRING"), Column("s", "STRING")), "STRING")
    names = {f"a{number}": Column("s", "STRING") for number in range(200)} | {
        f"b{number}": twice for number in range(200)
    }
    rows = [(row, b"d", "shared", 3, 0, 0) for row in range(20)]
    written = [
        record
        for records in split(events, matching(rows, [select(**names)]), TYPED, SETTINGS, evaluate_expression)
        for record in records.to_pylist()
    ]
    letters = [record for record in written if record["topic"] == SETTINGS.topics.deadletters]
    assert [large] * 10 == [letter["value"] for letter in letters]
    assert {"result-too-large"} == {header(letter, "code") for letter in letters}
    results = [json.loads(record["value"]) for record in written if record not in letters]
    assert [{name: "y" * (1 + name.startswith("b")) for name in names}] * 10 == results


def test_an_edge_is_in_the_header_and_in_its_field() -> None:
    """A row that enters for one query and leaves for another makes two records, which tell the edges apart."""
    events, _ = decode(batch([b'{"i":1}', b'{"i":2}']), TYPED, SETTINGS)
    rows = EdgeRows(events, np.array([0, 0, 1]), np.array([0, 1, 1], np.int8))
    edges = SelectList("", (SelectItem("i", Column("i", "INT")), SelectItem("e", Column("_edge", "STRING"))))
    matches = matching([(place, b"d", "shared", 4, 0, 0) for place in range(3)], [edges])
    [written] = list(split(rows, matches, TYPED, SETTINGS, evaluate_expression))
    found = [(row["value"], header(row, "edge"), header(row, "ce_id")) for row in written.to_pylist()]
    first, second = (f"quotes/3/{FIRST_OFFSET + place}" for place in range(2))
    assert found == [
        (b'{"i":1,"e":"enter"}', "enter", first),
        (b'{"i":1,"e":"exit"}', "exit", first),
        (b'{"i":2,"e":"exit"}', "exit", second),
    ]
