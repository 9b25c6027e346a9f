"""Nothing that a query computes runs outside of the guard: each kind of expression is marked, stopped and left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pytest

from gateway.evaluation.one_entry import VERSION, snapshot_of
from gateway.evaluation.records import source_batch
from gateway.testing import Record
from gateway.testing.query import CheckedQuery, checked
from gateway.testing.records import placed
from grouping.settings.settings import Settings
from grouping.store.work_units import SLOW, group_of, unit_of
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.expressions.functions import FUNCTIONS
from spark_jobs.engine.expressions.types import Operand
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.pipeline import end_records, evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget, check_cpu
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.engine.stages.task import Task
from tests.unit.digests.aggregate_log import AT, STREAM

_SETTINGS = Settings.model_construct()
_EVENT: dict[str, Any] = {"k": "a", "f": True, "i": 1, "n": 1, "d": 0.5, "a": "1.00"}
_KINDS = {
    "a residual": "SELECT i FROM t WHERE i > 0 AND soundex(k) <> upper(k)",
    "a filter": "SELECT i FROM t WHERE soundex(k) <> k",
    "a computed key": "SELECT i FROM t WHERE soundex(k) = 'A000'",
    "an item of SELECT": "SELECT soundex(k) AS s FROM t WHERE i > 0",
    "an item of a digest": "SELECT soundex(k) AS s FROM t WHERE i > 0 EVERY '1 hour'",
    "a key of GROUP BY": "SELECT soundex(k) AS s, count(*) AS c FROM t GROUP BY soundex(k) EVERY '1 hour'",
    "an argument": "SELECT max(soundex(k)) AS m FROM t EVERY '1 hour'",
    "an argument of DISTINCT": "SELECT count(DISTINCT soundex(k)) AS m FROM t EVERY '1 hour'",
    "a condition of FILTER": "SELECT count(*) FILTER (WHERE soundex(k) <> k) AS c FROM t EVERY '1 hour'",
}


class _Task:
    """A task with a single event, in which `soundex` does harm."""

    def __init__(self, query: CheckedQuery, budget: CpuBudget) -> None:
        self.marked: list[str] = []
        self.quarantined: list[str] = []
        self.failed: set[str] = set()
        timed = query.trigger.timed
        self._snapshot = snapshot_of(query, f"{'p' if timed else 'd'}_{0:024x}", "pending" if timed else "shared")
        self.letters = NotEvaluatedLetters(STREAM.declared, _SETTINGS)
        selection = UnitSelection(suspects=(), mark=self._mark, quarantine=self.quarantined.extend)
        self._guard = UnitGuard(selection, self.letters, self.failed, budget)
        self._task = Task.of(STREAM.declared, _SETTINGS, VERSION, self._guard, self._snapshot, {})

    def run(self) -> list[str | None]:
        """Evaluate; return the codes of dead letters, None for other records."""
        made = [Record(_EVENT, time=AT, partition=0, offset=0)]
        batch = source_batch(placed(made, STREAM, AT))
        return [dead_letter_code(rows) for rows in (*evaluate(self._task, batch), *end_records(self._task))]

    def _mark(self, units: Sequence[str]) -> None:
        self.marked[:] = units


def _plant(monkeypatch: pytest.MonkeyPatch, harm: Any) -> None:
    def planted(columns: list[pl.Series]) -> pl.Series:
        harm()
        return columns[0]

    def soundex(args: list[Operand], _: object) -> Operand:
        return Operand(pl.map_batches([args[0].expr], planted, return_dtype=pl.String), args[0].type)

    compile_expression.cache_clear()
    monkeypatch.setitem(FUNCTIONS, "soundex", soundex)


@pytest.fixture(autouse=True)
def _forget_compiled() -> Iterator[None]:
    """Leave no planted function to others."""
    yield
    compile_expression.cache_clear()


def _is_of(query: CheckedQuery, units: Sequence[str]) -> bool:
    """Tell whether there is one unit: the query's group, or its SELECT list."""
    group, select = query.query.plan.group_id, query.query.select.select_id
    return len(units) == 1 and units[0] in (group, unit_of(group, select)) and group_of(units[0]) == group


@pytest.mark.parametrize("text", _KINDS.values(), ids=_KINDS)
def test_what_raises_is_left_out(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The event is a dead letter of the unit; nothing is raised, and nothing written."""
    query = checked(text, STREAM, AT)
    task = _Task(query, CpuBudget(100.0))

    def fail() -> None:
        raise MemoryError

    _plant(monkeypatch, fail)
    assert {"not-evaluated"} == {*task.run()}
    assert _is_of(query, [*task.failed])


@pytest.mark.parametrize("text", _KINDS.values(), ids=_KINDS)
def test_what_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The unit is quarantined, whatever it computes."""
    now = [0.0]
    query = checked(text, STREAM, AT)
    task = _Task(query, CpuBudget(1.0, clock=lambda: now[0]))

    def last() -> None:
        now[0] += 5.0
        check_cpu()

    _plant(monkeypatch, last)
    assert {"not-evaluated"} == {*task.run()}
    assert _is_of(query, task.quarantined)
    assert {SLOW} == {*task.letters.reasons.values()}


@pytest.mark.parametrize("text", _KINDS.values(), ids=_KINDS)
def test_what_may_kill_is_marked(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """After a worker's death, its unit is marked before any part of the unit is computed."""
    query = checked(text, STREAM, AT)
    task = _Task(query, CpuBudget(100.0))
    seen: list[list[str]] = []
    _plant(monkeypatch, lambda: seen.append([*task.marked]))
    assert "not-evaluated" not in task.run()
    assert seen
    assert all(_is_of(query, units) for units in seen)
