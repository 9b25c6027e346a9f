"""The limits of a group: by the workers' figures and later changes, over a working copy on a real Redis."""

from __future__ import annotations

import secrets

import msgspec
import pytest
from pydantic import SecretStr

from gateway.model.records import Cq, Destination
from gateway.model.unit import CqKey
from gateway.registry.admission import Admission
from gateway.state.working_copy import WorkingCopy
from grouping.access.access_path import choose_index
from grouping.access.stream_statistics import ColumnSample, GroupLoad, PartitionStatistics
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.expression import Call, Column, Expression, Slot
from grouping.model.group import ConstantRow, canonical_constants
from grouping.model.sql_type import STRING
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.group import CompiledQuery, GroupPlan, SelectItem, SelectList
from grouping.plan.lookup_join import LookupJoin
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.limit_settings import LimitSettings
from grouping.settings.settings import RedisSettings, Settings
from grouping.statements.cq_text import CqText
from grouping.store.notes import ExecutorsNote, ReplicaNote
from grouping.store.table_store import TableStore
from tests.stack.server import Stack

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "")
_SELECT = SelectList("s00", (SelectItem("price", Column("price", "DOUBLE")),))


def _compared(op: str, column: str, kind: str) -> Expression:
    return Call(op, (Column(column, kind), Slot(0)), "BOOLEAN")


_BOUND = GroupPlan("g_bound", "s_1", "", (_compared(">", "price", "DOUBLE"),))
_EQUAL = GroupPlan("g_equal", "s_1", "", (_compared("=", "symbol", "STRING"),))
_LIKE = GroupPlan("g_like", "s_1", "", (_compared("like", "symbol", "STRING"),))


@pytest.fixture
def settings(stack: Stack) -> Settings:
    """A prefix of one's own on the stack's Redis; a group bears 100 matches per event and 1.2 µs of checking."""
    return Settings(
        prefix=f"ad{secrets.token_hex(4)}.",
        redis=RedisSettings(url=SecretStr(stack.redis_url)),
        limits=LimitSettings(matches_per_event=100, residual_micros=1.2),
    )


@pytest.fixture
def working(settings: Settings) -> WorkingCopy:
    """A working copy with one stream."""
    working = WorkingCopy(settings)
    working.open()
    working.unit.sources.add_stream(_STREAM)
    working.commit()
    return working


def _asked(plan: GroupPlan, constant: object, mode: str = "shared") -> tuple[CompiledQuery, Destination]:
    """Return a query and its destination."""
    query = CompiledQuery(plan, ConstantRow((STRING,), (constant,)), _SELECT)  # type: ignore[arg-type]
    constants = canonical_constants(query.row)
    return query, Destination("d_" + "0" * 24, "s_1", plan.group_id, "s00", constants, mode, 0)


def _tell(settings: Settings, working: WorkingCopy, table_bytes: int = 0, **matches: float) -> None:
    """Report a worker's statistics: prices 0 to 999, a single symbol, and matches per event of some groups."""
    columns = {
        "price": ColumnSample(0, [float(number) for number in range(1000)]),
        "symbol": ColumnSample(0, ["A"] * 1000),
    }
    plans = {plan.group_id: plan for plan in (_BOUND, _EQUAL, _LIKE)}
    groups = {
        name: GroupLoad(choose_index(plans[name].conjuncts), 1, 10.0, 10 * each, 10 * each, 10.0)
        for name, each in matches.items()
    }
    inventory = working.inventory
    statistics = PartitionStatistics(0, inventory.epoch, inventory.versions["s_1"], columns, groups, table_bytes)
    TableStore(settings).tell_statistics("s_1", 0, statistics)


def _admitted(admission: Admission, plan: GroupPlan, constants: list[object], now_ms: int = 10_000) -> int:
    """Return how many are admitted before one is refused."""
    for count, constant in enumerate(constants):
        try:
            admission.check(*_asked(plan, constant), now_ms)
        except InputError as error:
            assert "quota-exceeded" == error.code and "100.0" in (error.detail or "")
            assert "VIRTUAL" in (error.hint or "")
            return count
    return len(constants)


def test_expectations_add_up_to_the_limit(settings: Settings, working: WorkingCopy) -> None:
    """Bounds that half of the sampled events pass are admitted up to twice the limit; rare and virtual ones always."""
    admission = Admission(settings, working)
    _tell(settings, working)
    assert 500 == _admitted(admission, _BOUND, [1e6] * 500)
    assert 200 == _admitted(admission, _BOUND, [499.0] * 300)
    admission.check(*_asked(_BOUND, 499.0, "virtual"), 10_000)


def test_of_many_some_are_estimated(settings: Settings, working: WorkingCopy) -> None:
    """Where a group has thousands, the limit is met within a few dozen of where estimating each would meet it."""
    admission = Admission(settings, working)
    _tell(settings, working)
    assert 2_000 == pytest.approx(_admitted(admission, _BOUND, [949.0] * 3_000), rel=0.05)


def test_what_goes_makes_room(settings: Settings, working: WorkingCopy) -> None:
    """However many come and go while no event does, nothing is refused that a group could bear."""
    admission = Admission(settings, working)
    _tell(settings, working)
    destination = Destination("d_" + "0" * 24, "s_1", "g_bound", "s00", '["DOUBLE",1.0]', "shared", 0)
    for _ in range(1_000):
        admission.check(*_asked(_BOUND, -1.0), 10_000)
        admission.ended(destination)
    assert 100 == _admitted(admission, _BOUND, [-1.0] * 200)


def test_without_statistics_only_observation_counts(settings: Settings, working: WorkingCopy) -> None:
    """Nothing is refused where nothing was seen; observed figures count whatever the samples say."""
    admission = Admission(settings, working)
    assert 300 == _admitted(admission, _BOUND, [0.0] * 300)
    _tell(settings, working, g_bound=99.9)
    assert 0 == _admitted(Admission(settings, working), _BOUND, [0.0])
    assert 1 == _admitted(Admission(settings, working), _BOUND, [1e6])


def test_what_workers_have_seen_counts_once(settings: Settings, working: WorkingCopy) -> None:
    """When a version's tables are in the observed figures, the expectation of its destinations counts no more."""
    admission = Admission(settings, working)
    _tell(settings, working)
    assert 90 == _admitted(admission, _BOUND, [-1.0] * 90)
    cq = Cq("a", CqText.cut(""), "d_" + "0" * 24, 0, 0)
    destination = Destination(cq.destination_id, "s_1", "g_bound", "s00", '["DOUBLE",1.0]', "shared", 0)
    working.load([CqKey("alice", "a")], [destination])
    working.unit.put(CqKey("alice", "a"), cq, destination, _BOUND, _SELECT)
    working.commit()
    _tell(settings, working, g_bound=20.0)
    assert 80 == _admitted(admission, _BOUND, [-1.0] * 200, 20_000)


def test_keys_alone_are_refused_by_observation_only(settings: Settings, working: WorkingCopy) -> None:
    """A sample with a single symbol says nothing against another thousand of them."""
    admission = Admission(settings, working)
    _tell(settings, working, g_equal=1.0)
    assert 1_000 == _admitted(admission, _EQUAL, ["A"] * 1_000)
    _tell(settings, working, g_equal=100.1)
    assert 0 == _admitted(admission, _EQUAL, ["A"], 20_000)


def test_a_residual_over_its_budget_is_refused(settings: Settings, working: WorkingCopy) -> None:
    """The residual is checked for every row: at 0.06 µs each, the 21st passes 1.2 µs, virtual or not."""
    admission = Admission(settings, working)
    for number in range(20):
        admission.check(*_asked(_LIKE, "%"), 10_000)
        name = f"d_{number:024x}"
        destination = Destination(name, "s_1", "g_like", "s00", f'["STRING","{number}"]', "shared", 0)
        working.load([CqKey("alice", str(number))], [destination])
        working.unit.put(
            CqKey("alice", str(number)), Cq(str(number), CqText.cut(""), name, 0, 0), destination, _LIKE, _SELECT
        )
    working.commit()
    for mode in ("shared", "virtual"):
        with pytest.raises(InputError, match="too expensive") as caught:
            admission.check(*_asked(_LIKE, "%", mode), 10_000)
        assert "quota-exceeded" == caught.value.code
        assert "1.3 µs" in (caught.value.detail or "") and "1.2 µs" in (caught.value.detail or "")
    admission.check(*_asked(_LIKE, "AB%"), 10_000)  # of its beginning an index knows


def test_a_large_predicate_is_refused(settings: Settings, working: WorkingCopy) -> None:
    """The limit is on the normal form; a list of any length is a single constant there."""
    limits = LimitSettings(normal_form=20)
    admission = Admission(settings.model_copy(update={"limits": limits}), working)
    bounds = tuple(Call("<>", (Column("price", "DOUBLE"), Slot(slot)), "BOOLEAN") for slot in range(7))
    wide = GroupPlan("g_wide", "s_1", "", bounds)
    with pytest.raises(InputError, match="too large") as caught:
        admission.check(*_asked(wide, 1.0), 10_000)
    assert ("quota-exceeded", True) == (caught.value.code, "21" in (caught.value.detail or ""))
    admission.check(*_asked(GroupPlan("g_six", "s_1", "", bounds[:6]), 1.0), 10_000)


def test_tables_that_outgrow_a_worker_are_refused(settings: Settings, working: WorkingCopy) -> None:
    """The workers' reports and later rows count together, by the size of the constants; removed rows make room."""
    limits = LimitSettings(table_megabytes=10)
    admission = Admission(settings.model_copy(update={"limits": limits}), working)
    megabyte = "x" * 333_000
    for _ in range(9):
        admission.check(*_asked(_EQUAL, megabyte), 10_000)
    for mode in ("shared", "virtual"):
        with pytest.raises(InputError, match="constant tables") as caught:
            admission.check(*_asked(_EQUAL, 2 * megabyte, mode), 10_000)
        assert "quota-exceeded" == caught.value.code
        assert "11.0 MB" in (caught.value.detail or "") and "10.0 MB" in (caught.value.detail or "")
    for _ in range(5):
        admission.ended(_asked(_EQUAL, megabyte)[1])
    admission.check(*_asked(_EQUAL, 2 * megabyte), 20_000)
    _tell(settings, working, table_bytes=9_900_000)
    with pytest.raises(InputError, match="constant tables"):
        admission.check(*_asked(_EQUAL, megabyte), 30_000)


def test_executors_with_less_memory_bear_smaller_tables(settings: Settings, working: WorkingCopy) -> None:
    """The evaluator reports an executor's memory for a Python worker; a worker loads a table twice."""
    limits = LimitSettings(table_megabytes=10)
    admission = Admission(settings.model_copy(update={"limits": limits}), working)
    megabyte = "x" * 333_000
    TableStore(settings).tell_executors(ExecutorsNote(8, 303_000_000))
    admission.check(*_asked(_EQUAL, megabyte), 10_000)
    with pytest.raises(InputError, match="constant tables") as caught:
        admission.check(*_asked(_EQUAL, megabyte), 10_000)
    assert "1.5 MB, as executors have 303.0 MB for each of 8 workers" in (caught.value.detail or "")
    assert (caught.value.hint or "").endswith("ask for executors with more memory.")
    TableStore(settings).tell_executors(ExecutorsNote(8, 4_000_000_000))
    for _ in range(8):
        admission.check(*_asked(_EQUAL, megabyte), 20_000)
    with pytest.raises(InputError, match="constant tables") as caught:
        admission.check(*_asked(_EQUAL, 2 * megabyte), 20_000)
    assert (caught.value.detail or "").endswith("the limit is 10.0 MB.")


def test_each_evaluator_bears_the_tables_of_its_own_streams(settings: Settings, working: WorkingCopy) -> None:
    """Constant tables and joined tables of others' streams lie in no worker of it, and its executors are its own."""
    shares = EvaluatorSettings(streams={"fast": "quotes"})
    limits = LimitSettings(table_megabytes=10)
    given = settings.model_copy(update={"limits": limits, "evaluator": shares})
    working.unit.sources.put_table(Table("t_1", "t1", (), ("k",), "t", "json", ""))
    working.commit()
    store = TableStore(settings)
    store.tell_executors(ExecutorsNote(8, 303_000_000))
    store.tell_replica("t_1.", "a", ReplicaNote(9_000, 700, 9_000_000))
    admission = Admission(given, working)
    megabyte = "x" * 333_000
    for _ in range(9):
        admission.check(*_asked(_EQUAL, megabyte), 10_000)
    assert (9.0, 10.0) == tuple(round(each / 1e6, 1) for each in admission.memory.fullest)
    store.tell_replica("t_1.", "b", ReplicaNote(9_000, 700, 3_000_000, evaluator="fast"))
    with pytest.raises(InputError, match="constant tables") as caught:
        admission.check(*_asked(_EQUAL, megabyte), 20_000)
    assert "13.0 MB in each worker, including 3.0 MB of joined tables" in (caught.value.detail or "")


def test_joined_tables_count_with_constant_tables(settings: Settings, working: WorkingCopy) -> None:
    """Their memory counts in the same limit, by the largest worker; a table of too many rows is joined no more."""
    tables = [Table(f"t_{number}", f"t{number}", (), ("k",), "t", "json", "") for number in (1, 2)]
    for table in tables:
        working.unit.sources.put_table(table)
    working.commit()
    store = TableStore(settings)
    for worker, nbytes in (("a", 3_000_000), ("b", 4_000_000)):
        store.tell_replica("t_1.", worker, ReplicaNote(9_000, 700, nbytes, {0: 7}))
    store.tell_replica("t_2.", "a", ReplicaNote(9_000, 801, 5_000_000))
    limits = LimitSettings(table_megabytes=10, table_rows=800)
    admission = Admission(settings.model_copy(update={"limits": limits}), working)
    assert {"t1": 700, "t2": 801} == {
        table.name: figures.rows for table in tables if (figures := admission.replicas.of(table, 10_000))
    }
    joins = [LookupJoin(table.table_id, table.name, ()) for table in tables]
    small, large = [
        msgspec.structs.replace(_EQUAL, group_id=f"g_{join.prefix}", computation=Computation("j", (join,)))
        for join in joins
    ]
    admission.check(*_asked(small, "x" * 300_000), 10_000)
    with pytest.raises(InputError, match="constant tables") as caught:
        admission.check(*_asked(small, "x" * 300_000), 10_000)
    assert "10.8 MB" in (caught.value.detail or "") and "including 9.0 MB of joined tables" in (
        caught.value.detail or ""
    )
    with pytest.raises(InputError, match='"t2" is too large') as caught:
        admission.check(*_asked(large, "x"), 10_000)
    assert ("quota-exceeded", True) == (caught.value.code, "801 rows" in (caught.value.detail or ""))


def test_statistics_go_with_their_stream(settings: Settings, working: WorkingCopy) -> None:
    """Nothing of a dropped stream is left."""
    _tell(settings, working)
    working.unit.sources.remove_stream("s_1")
    working.commit()
    assert [] == working.connection.redis.keys(working.connection.keys.statistics("*"))


_PRICE = Column("price", "DOUBLE")
_SUM = Call(">", (Call("+", (_PRICE, _PRICE), "DOUBLE"), Slot(0)), "BOOLEAN")


@pytest.mark.parametrize(
    ("conjuncts", "admitted", "expected"),
    [
        (_EQUAL.conjuncts, 100, "1.0 ms"),
        (_BOUND.conjuncts, 16, "1.0 ms"),
        ((*_BOUND.conjuncts, _compared(">", "volume", "DOUBLE")), 2, "1.1 ms"),
        ((_SUM,), 1, "1.5 ms"),
        ((_compared("<>", "price", "DOUBLE"),), 1, "1.6 ms"),
    ],
)
def test_the_fixed_time_of_a_batch_is_bounded(
    settings: Settings, working: WorkingCopy, conjuncts: tuple[Expression, ...], admitted: int, expected: str
) -> None:
    """Groups are admitted up to the limit of a micro-batch, by the kind of their index; a refusal has both figures."""
    limited = settings.model_copy(update={"limits": LimitSettings(batch_milliseconds=1.0)})
    admission = Admission(limited, working)
    plans = [GroupPlan(f"g_{number}", "s_1", "", conjuncts) for number in range(admitted + 1)]
    for plan in plans[:-1]:
        admission.check(*_asked(plan, 5.0), 10_000)
    with pytest.raises(InputError, match="take too long in every micro-batch") as refused:
        admission.check(*_asked(plans[-1], 5.0), 10_000)
    assert refused.value.code == "quota-exceeded"
    assert expected in str(refused.value.detail)
    assert "limit is 1.0 ms" in str(refused.value.detail)


def test_measured_pairs_count(settings: Settings, working: WorkingCopy) -> None:
    """A group that is cheap by its form, and is dear as measured, takes no more rows."""
    admission = Admission(settings, working)
    admission.check(*_asked(_LIKE, "%a%"), 10_000)
    _tell(settings, working, g_like=5)
    plan, inventory = _LIKE, working.inventory
    load = GroupLoad(choose_index(plan.conjuncts), 1, 1_000.0, 5_000.0, 1.0, 50_000.0)
    statistics = PartitionStatistics(0, inventory.epoch, inventory.versions["s_1"], {}, {"g_like": load})
    TableStore(settings).tell_statistics("s_1", 0, statistics)
    with pytest.raises(InputError, match="too expensive"):
        admission.check(*_asked(_LIKE, "%b%"), 20_000)
