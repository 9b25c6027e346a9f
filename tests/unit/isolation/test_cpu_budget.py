"""An expression that takes too much CPU time is stopped midway and left out; the others have all their results."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from grouping.model.errors import OperationalError
from grouping.model.expression import Call, Column, Expression, Slot, Value
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.settings.settings import Settings
from grouping.store.quarantine import CulpritSearch, Quarantine
from grouping.store.work_units import SLOW, unit_of
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.expressions.functions import FUNCTIONS
from spark_jobs.engine.expressions.types import Operand
from spark_jobs.engine.isolation.hang_guard import HangGuard
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.rows.columns import SingleColumn
from spark_jobs.engine.rows.cpu_budget import CpuBudget, CpuExceeded, StoppedEvaluation, charged, check_cpu, checked
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.runtime.worker.quarantine_notes import QuarantineNotes
from tests.unit.isolation.tasks import records_of, task_of
from tests.unit.matching.event_batches import FIRST_OFFSET, SETTINGS, batch, header, stream
from tests.unit.matching.matching import Store, apart, compare, destination, entry

_STREAM = stream("a INT")
_A = Column("a", "INT")
_KEY = compare("a", "=", "INT", 0)
_LASTING = Call("lasting", (_A,), "INT")
_EVENTS = 4
_WANTED = list(range(FIRST_OFFSET, FIRST_OFFSET + _EVENTS))


class _Clock:
    """CPU time, which goes on where a value of the function `lasting` is computed: a second for each."""

    def __init__(self) -> None:
        self.now = 0.0
        self.computed = 0

    def __call__(self) -> float:
        return self.now

    def last(self, columns: list[pl.Series]) -> pl.Series:
        for _ in columns[0]:
            check_cpu()
            self.now += 1.0
            self.computed += 1
        return columns[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """Return a clock, and let expressions have a function that takes its time."""
    ticking = _Clock()

    def lasting(args: list[Operand], _: object) -> Operand:
        return Operand(pl.map_batches([args[0].expr], ticking.last, return_dtype=pl.Int32), args[0].type)

    compile_expression.cache_clear()
    monkeypatch.setitem(FUNCTIONS, "lasting", lasting)
    return ticking


class _Tables(Store):
    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists of the column `a`, or of an expression that takes time."""
        wanted: dict[str, Expression] = {name: _LASTING if name == "s_slow" else _A for name in ids}
        return {name: SelectList(name, (SelectItem("a", item),)) for name, item in wanted.items()}


def _snapshot(residuals: dict[str, Expression], selects: Iterable[str] = ("s_1",)) -> Snapshot:
    """Return tables of groups met by all events whose residual holds."""
    store = _Tables()
    store.known_plans = {group: GroupPlan(group, "s", "", (_KEY, rest)) for group, rest in residuals.items()}
    entries = [
        entry(f"{group} {select}", ("BIGINT", "BIGINT"), (1, 0), group=group, select=select)
        for group in residuals
        for select in selects
    ]
    return ConstantTables("s").at(store.commit((), entries), store)


def _at_least(value: Expression) -> Call:
    return Call(">=", (value, Slot(1)), "BOOLEAN")


def _evaluated(
    snapshot: Snapshot, budget: CpuBudget, selection: UnitSelection | None = None
) -> tuple[dict[str, list[int]], dict[str, set[str]]]:
    """Return by destination the offsets of its results, and by work unit left out the reasons."""
    events, _ = decode(batch([b'{"a": 1}'] * _EVENTS), _STREAM, SETTINGS)

    guard = UnitGuard(selection or UnitSelection(), NotEvaluatedLetters(_STREAM, SETTINGS), set(), budget)
    task = task_of(_STREAM, guard, snapshot)
    results: dict[str, set[int]] = {}
    letters: dict[str, set[str]] = {}
    for rows in records_of(task, events):
        for row in rows.to_pylist():
            if dead_letter_code(rows) is not None:
                who, _, why = header(row, "detail").partition(" was not evaluated for this event: ")
                letters.setdefault(who, set()).add(why)
            else:
                results.setdefault(row["key"].decode(), set()).add(int(header(row, "ce_id").split("/")[2]))
    return {name: sorted(offsets) for name, offsets in results.items()}, letters


@pytest.mark.parametrize("alone", [True, False])
def test_a_slow_group_is_left_out(clock: _Clock, alone: bool) -> None:
    """With or without an index of its own, the group is stopped after its time, and nobody else is left out."""
    residuals = {f"g_{n}": _at_least(_A) for n in range(5)} | {"g_slow": _at_least(_LASTING)}
    snapshot = _snapshot(residuals)
    quarantined: list[str] = []
    selection = UnitSelection(quarantine=quarantined.extend)
    results, outcomes = _evaluated(apart(snapshot) if alone else snapshot, CpuBudget(2.5, clock=clock), selection)
    assert {destination(f"g_{n} s_1"): _WANTED for n in range(5)} == results
    assert {'Group "g_slow"': {f"{SLOW}."}} == outcomes
    assert (3, ["g_slow"]) == (clock.computed, quarantined), "the others did not wait longer"
    _evaluated(snapshot, CpuBudget(2.5, clock=clock), selection)
    assert 3 == clock.computed, "it is not tried again"


def test_what_takes_its_time_is_not_stopped(clock: _Clock) -> None:
    """Each group has its time for each batch, also where groups check one conjunct together, and others are slow."""
    residuals = {f"g_{n}": _at_least(_LASTING) for n in range(3)}
    residuals["g_slow"] = _at_least(Call("lasting", (_LASTING,), "INT"))
    results, outcomes = _evaluated(_snapshot(residuals), CpuBudget(1.0, 1.0, clock=clock))
    assert {destination(f"g_{n} s_1"): _WANTED for n in range(3)} == results
    assert {'Group "g_slow"': {f"{SLOW}."}} == outcomes


def test_a_slow_select_list_is_left_out(clock: _Clock) -> None:
    """In whatever group the list is; it is evaluated once for all groups."""
    snapshot = _snapshot({f"g_{n}": _at_least(_A) for n in range(3)}, ("s_1", "s_slow"))
    results, outcomes = _evaluated(snapshot, CpuBudget(2.5, clock=clock))
    assert {destination(f"g_{n} s_1"): _WANTED for n in range(3)} == results
    assert {f'SELECT list "s_slow" of group "g_{n}"': {f"{SLOW}."} for n in range(3)} == outcomes
    assert 3 == clock.computed


def test_slow_units_of_one_user_take_less_than_twice_the_time_of_one(clock: _Clock) -> None:
    """The n-th stopped unit has 1/n² of the budget; units of others have all of it."""
    slow = [f"g_{n}" for n in range(12)]
    residuals = {name: _at_least(_nested(n)) for n, name in enumerate(slow)}
    stopped: list[str] = []

    def part_of(item_id: str) -> float:
        return 1 / (1 + len(stopped)) ** 2 if item_id in slow else 1.0

    budget = CpuBudget(10.0, clock=clock, part_of=part_of)
    snapshot = apart(_snapshot({"g_fine": _at_least(_LASTING)} | residuals))
    _, outcomes = _evaluated(snapshot, budget, UnitSelection(quarantine=stopped.extend))
    assert {f'Group "{name}"' for name in slow} == outcomes.keys()
    assert clock.computed - _EVENTS * len(stopped) <= 20, "the healthy group is evaluated again after each of them"


@pytest.mark.parametrize(("unit", "seconds"), [("g_fine", 4.0 + 2.0), ("g_slow", 1.0 + 0.5)])
def test_the_time_to_come_back_shrinks_with_the_budget(unit: str, seconds: float) -> None:
    """A unit with a quarter of the budget ends its worker after a quarter of the further time."""
    now = [0.0]
    budget = CpuBudget(4.0, clock=lambda: now[0], part_of=lambda unit: 0.25 if unit == "g_slow" else 1.0)
    with budget.batch(0), budget.charge(unit, lambda: [unit], alike=True):
        now[0] = seconds - 0.01
        assert budget.overdue(2.0) is None
        now[0] = seconds
        assert budget.overdue(2.0) == StoppedEvaluation(frozenset({unit}), alike=True)


def test_suspects_of_one_step_are_searched_in_bounded_time(clock: _Clock) -> None:
    """Where groups check a conjunct together, halves of them have half of the time."""
    residuals = {f"g_{n}": _at_least(_A) for n in range(31)} | {"g_slow": _at_least(_LASTING)}
    residuals |= {f"g_much_{n}": _at_least(_nested(40)) for n in range(3)}
    _, outcomes = _evaluated(_snapshot(residuals), CpuBudget(8.0, clock=clock))
    assert {f'Group "g_much_{n}"' for n in range(3)} == outcomes.keys()
    assert clock.computed <= 100


def _nested(times: int) -> Expression:
    """Return an expression that takes ten and some seconds for each event, and unlike others."""
    expression: Expression = Call("+", (_A, Value(times, "INT")), "INT")
    for _ in range(10):
        expression = Call("lasting", (expression,), "INT")
    return expression


def test_an_account_within_another_is_charged_itself() -> None:
    """The time of a computed key is charged to all its users, not only to the first: the others are told at once."""
    clock = _Clock()
    budget = CpuBudget(10.0, clock=clock)
    with budget.batch(1):
        with charged("group", lambda: ["g_1"]), charged("key"):
            clock.now += 9
            check_cpu()
        with charged("group", lambda: ["g_1"]):
            clock.now += 9
            check_cpu()
        for group in ("g_1", "g_2"):
            with pytest.raises(CpuExceeded), charged(group, lambda group=group: [group]), charged("key"):
                clock.now += 1
                check_cpu()
            assert ({group}, True) == budget.stopped
    check_cpu()  # without a batch there is no limit


def test_values_that_are_computed_one_by_one_are_interrupted() -> None:
    """A function of values asks now and then."""
    clock = _Clock()

    def each() -> Iterator[int]:
        for number in range(1_000):
            clock.now += 1
            yield number

    with CpuBudget(100.0, clock=clock).batch(1), pytest.raises(CpuExceeded), charged("g", lambda: ["g"]):
        list(checked(each()))
    assert 100 <= clock.now <= 200


def test_a_long_text_is_no_match_for_a_large_pattern() -> None:
    """NULL where elements and bytes multiply to too much; the same pattern on others is searched for."""
    texts = ["ab" * 60_000, "ab" * 1_000 + "z", None]
    pattern = Value("a[^z]{999}[^z]{999}[^z]{999}", "STRING")
    source = SingleColumn(pa.array(texts))
    found = evaluate_expression(Call("rlike", (Column("s", "STRING"), pattern), "BOOLEAN"), source, np.arange(3))
    count = evaluate_expression(Call("regexp_count", (Column("s", "STRING"), pattern), "INT"), source, np.arange(3))
    assert [None, False, None] == found.to_pylist()
    assert [None, 0, None] == count.to_pylist()


@pytest.mark.parametrize(
    ("function", "of_type"),
    [("regexp_count", "INT"), ("regexp_replace", "STRING"), ("split by pattern", "ARRAY<STRING>")],
)
def test_a_pattern_that_looks_far_ahead_is_stopped_between_texts(function: str, of_type: str) -> None:
    """All its occurrences in a text take the square of the text's length: each long one is a step of its own."""
    texts = Column("s", "STRING")
    more = {"regexp_replace": (Value("", "STRING"),), "split by pattern": (Value(-1, "INT"),)}.get(function, ())
    call = Call(function, (texts, Value("[^x]*x|[^x]", "STRING"), *more), of_type)
    rows = np.arange(200)
    began = time.process_time()
    with CpuBudget(0.1).batch(1), pytest.raises(CpuExceeded), charged("g", lambda: ["g"]):
        evaluate_expression(call, SingleColumn(pa.array([f"{row}{'a' * 20_000}" for row in range(200)])), rows)
    assert time.process_time() - began < 20.0, "some of the two hundred, half a second each"


class _Redis:
    """The state of the store of quarantines, or an outage."""

    def __init__(self) -> None:
        self.known: dict[str, Quarantine] = {}
        self.away = False

    def quarantined(self, stream_id: str) -> dict[str, Quarantine]:
        """Return the known quarantines."""
        if self.away:
            raise OperationalError("away")
        return dict(self.known)

    def put(self, stream_id: str, units: dict[str, Quarantine]) -> None:
        """Note quarantines."""
        if self.away:
            raise OperationalError("away")
        self.known |= units

    def sole_user_of(self, stream_id: str, units: Collection[str]) -> str:
        """Return that alice alone uses each unit."""
        return "alice" if len(units) == 1 else ""

    def sole_users(self, stream_id: str) -> dict[str, str]:
        """Return the users of two groups."""
        return {"g_2": "alice", "g_3": "bob"}

    def search(self, stream_id: str) -> CulpritSearch:
        """Return that no worker died."""
        return CulpritSearch()

    def count_dead_letters(self, counts: dict[str, int]) -> None:
        """Count nothing."""


def test_slow_units_are_left_out_for_a_while_each_time_longer() -> None:
    """A worker knows its own quarantines even while Redis is away; quarantines by several workers count once."""
    redis, now = _Redis(), [0]
    notes = [QuarantineNotes("s", redis, lambda: now[0]) for _ in range(2)]  # type: ignore[arg-type]
    guard = HangGuard(Settings().evaluator.hang_seconds)
    unit = unit_of("g_1", "s_1")  # type: ignore[arg-type]
    for each in notes:
        each.quarantine(SLOW, [unit])
    known = redis.known[unit]
    assert (1, SLOW, "alice") == (known.times, known.reason, known.user)
    assert {unit: SLOW} == notes[0].selection(guard).left_out
    now[0], redis.away = 60_000, True
    selection = notes[0].selection(guard)
    assert ({}, [[unit]]) == (selection.left_out, selection.divide([unit, "g_2"], ()).apart)
    notes[0].quarantine(SLOW, [unit])
    now[0] += 119_999
    assert {unit: SLOW} == notes[0].selection(guard).left_out


def test_units_that_are_slow_together_count_for_nobody() -> None:
    """The join that they are over was too slow: none of their users is at fault."""
    redis = _Redis()
    QuarantineNotes("s", redis, lambda: 0).quarantine(SLOW, ["g_1", "g_2"])  # type: ignore[arg-type]
    assert {"g_1": "", "g_2": ""} == {unit: state.user for unit, state in redis.known.items()}


def test_the_budget_of_a_user_shrinks_with_its_quarantines() -> None:
    """All tasks that know of them, in the same batch and later; the budgets of others stay."""
    redis, guard = _Redis(), HangGuard(60.0)
    notes = QuarantineNotes("s", redis, lambda: 0)  # type: ignore[arg-type]
    notes.selection(guard)
    assert [1.0, 1.0, 1.0] == [notes.part_of_budget(name) for name in ("g_2", "g_3", "s_4")]
    for unit in ("g_7", "g_8"):
        notes.quarantine(SLOW, [unit])
    assert [1 / 9, 1.0, 1.0] == [notes.part_of_budget(name) for name in ("g_2", "g_3", "s_4")]
    other = QuarantineNotes("s", redis, lambda: 0)  # type: ignore[arg-type]
    other.shared_selection(0, guard, 0.0)
    assert [1 / 9, 1.0] == [other.part_of_budget(name) for name in ("g_2", "g_3")]
