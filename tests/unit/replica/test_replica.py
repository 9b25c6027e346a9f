"""A replica at any pin, compared with a dict that takes single records in sequence."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import spark_jobs.engine.operators.lookup_join.replica as replica_module
from grouping.model.table import Table
from spark_jobs.engine.index.key_tuples import KeyTuples
from spark_jobs.engine.operators.lookup_join import table_part
from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from tests.unit.replica.table_records import SETTINGS, MemoryLog, Record, table

PLAIN = table("symbol STRING", "industry STRING", "beta DOUBLE", key=["symbol"])
PAIRED = table("venue STRING", "industry STRING", "at INT", "beta DOUBLE", key=["at", "venue"])
TABLES = {"plain": PLAIN, "paired": PAIRED}
TEXTS = ["", "a", "b", "ab", "é", "z" * 40]

Row = dict[str, Any]


def _record(of: Table, rng: random.Random) -> Record:
    """Return a record that sets or removes one of few rows, now and then a bad record."""
    key: Row = {name: rng.randrange(4) if name == "at" else rng.choice(TEXTS) for name in of.key}
    kind = rng.random()
    if kind < 0.05:
        return None, b"{}"
    if kind < 0.3:
        named = next(iter(key.values())) if len(key) == 1 else json.dumps(key)
        return named.encode(), None
    industry = rng.choice(["Software", "Mining", None])
    beta = rng.choice([0.0, -0.0, 1.5, None])
    return None, json.dumps(key | {"industry": industry, "beta": beta}).encode()


def _rows_at(of: Table, log: MemoryLog, pin: dict[int, int]) -> list[Row]:
    """Return a table's rows at a pin, in the order of its keys; of a key in several partitions the highest's."""
    rows: dict[tuple[Any, ...], Row] = {}
    for number, records in enumerate(log.partitions):
        own: dict[tuple[Any, ...], Row] = {}
        for offset, (key, value) in sorted(records.items()):
            if offset >= pin.get(number, 0):
                break
            if value is None:
                assert key is not None
                named = json.loads(key) if len(of.key) > 1 else {of.key[0]: key.decode()}
                own.pop(tuple(named[name] for name in of.key), None)
            elif value != b"{}":
                row = json.loads(value)
                own[tuple(row[name] for name in of.key)] = {column.name: row[column.name] for column in of.columns}
        rows |= own
    return [rows[key] for key in sorted(rows, key=lambda key: [str(part).encode() for part in key])]


def _pairs_found(view: TableView, columns: tuple[str, ...], probes: list[tuple[Any, ...]]) -> list[tuple[int, Row]]:
    types = {column.name: pa.array([], _arrow_type(column.type_text)).type for column in view.table.columns}
    keys = [pa.array([probe[place] for probe in probes], types[name]) for place, name in enumerate(columns)]
    probe, row = view.find(columns, keys)
    taken = {column.name: view.take(column.name, row).to_pylist() for column in view.table.columns}
    return [(int(at), {name: values[place] for name, values in taken.items()}) for place, at in enumerate(probe)]


def _arrow_type(kind: str) -> pa.DataType:
    return {"STRING": pa.string(), "INT": pa.int32(), "DOUBLE": pa.float64()}[kind]


def _expected(rows: list[Row], columns: tuple[str, ...], probes: list[tuple[Any, ...]]) -> list[tuple[int, Row]]:
    return [
        (place, row)
        for place, probe in enumerate(probes)
        for row in rows
        if all(value is not None and row[name] == value for name, value in zip(columns, probe, strict=True))
    ]


def _same_at(view: TableView, rows: list[Row], rng: random.Random) -> None:
    """Look up by every combination of columns that matters, and compare."""
    of = view.table
    choices: list[tuple[str, ...]] = [
        of.key,
        ("industry",),
        ("industry", "beta"),
        ("beta",),
        (*of.key[::-1], "industry"),
    ]
    for columns in choices:
        values: dict[str, list[Any]] = {
            "industry": ["Software", "Mining", "None", None], "beta": [0.0, 1.5, 2.0, None], "at": [*range(5), None],
        }  # fmt: skip
        probes = [
            tuple(rng.choice(values.get(name, [*TEXTS, "absent", None])) for name in columns)
            for _ in range(rng.randint(0, 30))
        ]
        assert _expected(rows, columns, probes) == _pairs_found(view, columns, probes)


@pytest.fixture(params=["whole", "few", "clashing"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the rows are kept: small parts, few records at once and equal hashes make rare events happen often."""
    if request.param == "clashing":
        hashes = KeyTuples.hashes
        monkeypatch.setattr(KeyTuples, "hashes", lambda keys: hashes(keys) & np.uint64(3))
    if request.param != "whole":
        monkeypatch.setattr(replica_module, "AT_ONCE_ROWS", 5)
        monkeypatch.setattr(replica_module, "SUPERSEDED", 30)
        monkeypatch.setattr(table_part, "SMALL", 3)
        monkeypatch.setattr(table_part, "RATIO", 1)


def _check(of: Table, seed: int, partitions: int, *, strict: bool) -> None:
    """Let records and pins come in any order, and compare at each pin."""
    rng = random.Random(seed)
    log = MemoryLog([{} for _ in range(partitions)], rng)
    replica = Replica(of, log, SETTINGS)
    oldest: dict[int, int] = {}
    pins: list[dict[int, int]] = []
    for _ in range(rng.randint(1, 12)):
        for _ in range(rng.choice([0, 1, 3, 40])):
            record = _record(of, rng)
            home = sum(str(record).encode()) if not strict else _home(of, record)
            log.append(home % partitions, record, rng.choice([0, 0, 0, 2]))
        newest = {number: max(known, default=-1) + 1 for number, known in enumerate(log.partitions)}
        between = {
            number: rng.randint(oldest.get(number, 0), end)
            for number, end in newest.items()
            if oldest or rng.random() < 0.8
        }
        pin = rng.choice([newest, newest, between, rng.choice(pins or [newest])])
        if any(pin.get(number, 0) < offset for number, offset in oldest.items()):
            pin = newest
        pins.append(pin)
        view = replica.at(pin)
        rows = _rows_at(of, log, pin)
        _same_at(view, rows, rng)
        if strict:
            assert len(rows) == view.count
        if rng.random() < 0.2:
            oldest = {number: max(offset, oldest.get(number, 0)) for number, offset in pin.items()}
            replica.forget_before(oldest)


def _home(of: Table, record: Record) -> int:
    """Return a number that is the same for all records of a key."""
    key, value = record
    row = json.loads(value) if value is not None else None
    if row is None:
        row = json.loads(key or b"") if len(of.key) > 1 else {of.key[0]: (key or b"").decode()}
    return sum("".join(str(row.get(name)) for name in of.key).encode())


@pytest.mark.parametrize("name", TABLES)
@given(seed=st.integers(0, 2**32), partitions=st.integers(1, 3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("way")
def test_any_pin_shows_what_the_records_before_it_made(name: str, seed: int, partitions: int) -> None:
    """Whatever was asked for before: pins ahead, between and behind, rows set, set again and removed."""
    _check(TABLES[name], seed, partitions, strict=True)


@given(seed=st.integers(0, 2**32), partitions=st.integers(2, 3))
@example(seed=18_244, partitions=2)  # a row that another partition's change had ended, and an older pin
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("way")
def test_a_key_in_several_partitions_has_one_row(seed: int, partitions: int) -> None:
    """The row of the highest partition, whatever pins came before: nobody promised this, but replays must agree."""
    _check(PLAIN, seed, partitions, strict=False)


def _set(symbol: str, beta: float) -> Record:
    return None, json.dumps({"symbol": symbol, "industry": "Software", "beta": beta}).encode()


def _betas(view: TableView, *symbols: str) -> list[float | None]:
    probe, row = view.find(("symbol",), [pa.array(symbols, pa.string())])
    rows = np.full(len(symbols), -1)
    rows[probe] = row
    found: list[float | None] = view.take("beta", rows).to_pylist()
    return found


def test_nothing_is_read_twice() -> None:
    """A pin ahead reads new records, a pin behind nothing, and a pin before the horizon all, into a second replica."""
    log = MemoryLog([{}])
    for beta in range(10):
        log.append(0, _set("INTC", beta))
    replica = Replica(PLAIN, log, SETTINGS)
    assert [3, None] == _betas(replica.at({0: 4}), "INTC", "absent")
    assert [8, None] == _betas(replica.at({0: 9}), "INTC", "absent")
    assert [4] == _betas(replica.at({0: 5}), "INTC")
    assert [{}, {0: 4}] == log.reads
    assert [1] == _betas(replica.at({0: 2}), "INTC")
    assert [2] == _betas(replica.at({0: 3}), "INTC")
    assert [{}, {0: 4}, {}, {0: 2}] == log.reads
    loaded = replica.nbytes
    replica.forget_before({0: 9})
    assert replica.nbytes < loaded
    assert [9] == _betas(replica.at({0: 10}), "INTC")
    assert {0: 9} == log.reads[-1]


def test_views_stay_right_when_the_replica_goes_on() -> None:
    """An earlier view still shows the same rows, even rows superseded since."""
    log = MemoryLog([{}])
    replica = Replica(PLAIN, log, SETTINGS)
    views = []
    for beta in range(50):
        log.append(0, _set("INTC", beta))
        log.append(0, _set(f"S{beta}", beta))
        views.append(replica.at({0: 2 * beta + 2}))
    for beta, view in enumerate(views):
        assert [beta, beta, None] == _betas(view, "INTC", f"S{beta}", f"S{beta + 1}")
        assert beta + 2 == view.count


def test_a_log_that_fails_leaves_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call goes on there, and dead letters are reported once for applied records."""
    monkeypatch.setattr(replica_module, "AT_ONCE_ROWS", 1)
    monkeypatch.setattr(replica_module, "SUPERSEDED", 0)
    log = MemoryLog([{}], fails_after=3)
    for beta in range(200):
        log.append(0, (None, b"{}"))
        log.append(0, _set("INTC", beta))
    letters: list[pa.RecordBatch] = []
    replica = Replica(PLAIN, log, SETTINGS, letters.append)
    with pytest.raises(ConnectionError):
        replica.at({0: 400})
    log.fails_after = None
    assert [199] == _betas(replica.at({0: 400}), "INTC")
    assert 0 < log.reads[-1][0] < 400
    assert 200 == sum(records.num_rows for records in letters)


def test_half_a_change_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure within a change the replica loads afresh."""
    log = MemoryLog([{}])
    log.append(0, _set("INTC", 1))
    replica = Replica(PLAIN, log, SETTINGS)
    replica.at({0: 1})
    log.append(0, _set("INTC", 2))
    with monkeypatch.context() as broken, pytest.raises(MemoryError):
        broken.setattr(replica_module, "added", _no_memory)
        replica.at({0: 2})
    assert [2] == _betas(replica.at({0: 2}), "INTC")
    assert [1] == _betas(replica.at({0: 1}), "INTC")


def _no_memory(*_: Any) -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("column", "text", "other"),
    [
        ("n INT", "7", "8"), ("n BIGINT", "9007199254740993", "9007199254740992"), ("n BOOLEAN", "true", "false"),
        ("n DECIMAL(38,2)", "123456789012345678901234567890.12", "-123456789012345678901234567890.12"),
        ("n BINARY", '"AP8="', '"/w=="'), ("n BINARY", '""', '"AA=="'),
        ("n DATE", '"2026-11-22"', '"2026-11-23"'), ("n DOUBLE", "-0.0", "1e-300"),
        ("n TIMESTAMP", '"2026-11-22T10:00:00.000001Z"', '"2026-11-22T10:00:00Z"'),
    ],
)  # fmt: skip
def test_keys_of_every_type(column: str, text: str, other: str) -> None:
    """Set, found, ordered and removed."""
    of = table(column, "name STRING", key=["n"])
    log = MemoryLog([{}])
    for name, value in (("one", text), ("two", other), ("one again", text)):
        log.append(0, (None, f'{{"n": {value}, "name": "{name}"}}'.encode()))
    log.append(0, (f'{{"n": {other}}}'.encode(), None))
    replica = Replica(of, log, SETTINGS)
    view = replica.at({0: 3})
    assert 2 == view.count
    values = view.take("n", view.find(("name",), [pa.array(["one again", "two"])])[1])
    probe, row = view.find(("n",), [pa.concat_arrays([values, pa.nulls(1, values.type)])])
    assert [0, 1] == probe.tolist()
    assert ["one again", "two"] == view.take("name", row).to_pylist()
    assert ["one again"] == replica.at({0: 4}).take("name", replica.at({0: 4}).find(("n",), [values])[1]).to_pylist()


def test_texts_that_repeat_keep_a_dictionary_wherever_they_stand() -> None:
    """Even in the column that rows are sorted by first; whoever takes many gets it, of all parts together."""
    of = table("owner STRING", "symbol STRING", key=["owner", "symbol"])
    log = MemoryLog([{}])
    names = [(f"owner {number // 10}", f"S{number % 10}") for number in range(3_000)]
    for owner, symbol in names:
        log.append(0, (None, json.dumps({"owner": owner, "symbol": symbol}).encode()))
    replica = Replica(of, log, SETTINGS)
    replica.at({0: 3_000})
    log.append(0, (None, b'{"owner": "new", "symbol": "S1"}'))
    view = replica.at({0: 3_001})
    _, row = view.find(("symbol",), [pa.array(["S1"] * 2)])
    row = np.append(row, -1)
    owners = view.encoded("owner", row)
    assert pa.types.is_dictionary(owners.type)
    assert 301 == len(owners.dictionary.unique()) == len(owners.dictionary)
    assert owners.to_pylist() == view.take("owner", row).to_pylist()
    once = sorted([owner for owner, symbol in names if symbol == "S1"] + ["new"])
    assert [*once, *once, None] == owners.to_pylist()
    assert pa.types.is_string(view.encoded("owner", row[:5]).type), "few rows are not worth a dictionary of hundreds"
    assert pa.types.is_string(view.take("owner", row).type)


def test_nan_equals_itself_and_zero_has_no_sign() -> None:
    """As SQL compares DOUBLE; JSON has no NaN, Avro and computed probes have."""
    keys = KeyTuples([pa.array([float("nan"), 0.0, None, 1.0])])
    others = KeyTuples([pa.array([-float("nan"), -0.0, 2.0, 1.5])])
    assert [True, True] == keys.take(np.arange(2)).same(others.take(np.arange(2))).tolist()
    assert [1, 2, 0] == keys.take(np.array([0, 1, 3])).order().tolist()
    assert (keys.hashes()[:2] == others.hashes()[:2]).all()
