"""A replica at any pin, beside a dict that takes one record after the other."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spark_jobs.replica.replica as replica_module
from grouping.model.table import Table
from spark_jobs.replica import table_part
from spark_jobs.replica.replica import Replica
from spark_jobs.replica.table_view import TableView
from tests.unit.replica.table_records import SETTINGS, MemoryLog, Record, table

PLAIN = table("symbol STRING", "industry STRING", "beta DOUBLE", key=["symbol"])
PAIRED = table("venue STRING", "industry STRING", "at INT", "beta DOUBLE", key=["at", "venue"])
TABLES = {"plain": PLAIN, "paired": PAIRED}
TEXTS = ["", "a", "b", "ab", "é", "z" * 40]

Row = dict[str, Any]


def _record(of: Table, rng: random.Random) -> Record:
    """Return a record that sets or removes one of few rows, now and then a bad one."""
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
    """Return what the table is at a pin, in the order of its keys; of a key in several partitions the highest's."""
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
    types = {column.name: pa.array([], _arrow_type(column.type)).type for column in view.table.columns}
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


@pytest.fixture(params=[False, True], ids=["whole", "few"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether parts stay small and few records are applied at once, so that all that is rare happens often."""
    if request.param:
        monkeypatch.setattr(replica_module, "_AT_ONCE_ROWS", 5)
        monkeypatch.setattr(replica_module, "_SUPERSEDED", 30)
        monkeypatch.setattr(table_part, "_SMALL", 3)
        monkeypatch.setattr(table_part, "_RATIO", 1)
    return bool(request.param)


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
def test_any_pin_shows_what_the_records_before_it_made(few: bool, name: str, seed: int, partitions: int) -> None:
    """Whatever was asked for before: pins ahead, between and behind, rows set, set again and removed."""
    _check(TABLES[name], seed, partitions, strict=True)
