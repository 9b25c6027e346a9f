"""A table dropped after its CQs stays for their remaining micro-batches."""

from __future__ import annotations

import secrets

from gateway.access.source_rights import SourceRights
from gateway.model.records import Cq, Destination
from gateway.model.unit import CqKey
from gateway.registry.computations import Computations
from gateway.sources.tables import drop_table
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Catalog, Stream
from grouping.model.expression import Column
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.lookup_join import LookupJoin
from grouping.statements.cq_text import CqText
from grouping.store.table_store import TableStore
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from tests.ground import Ground

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, "")
_TABLES = [Table(f"t_{number}", f"t{number}", (), ("k",), "t", "json", "") for number in (1, 2)]
_SELECT = SelectList("s00", (SelectItem("a", Column("a", "BIGINT")),))
_PLAN = GroupPlan("g_" + "1" * 24, "s_1", "", (), Computation("j_1", (LookupJoin("t_1", "p", ()),)))
_DESTINATION = Destination("d_" + "1" * 24, "s_1", _PLAN.group_id, "s00", "[]", "shared", 0)
_KEY = CqKey.of("alice", "q")
_EVENTS = (100,)
"""By source partition: where it ended at the DROP of the CQ."""


class _Gateway:
    """The gateway's part, under a prefix of its own: a CQ that joins the first of two tables."""

    def __init__(self, servers: Ground) -> None:
        self.settings = servers.settings.model_copy(update={"prefix": f"dt{secrets.token_hex(4)}."})
        self.working = WorkingCopy(self.settings)
        self.working.open()
        self.working.confirm(1, self.working.connection.redis.info("server")["run_id"])
        self.working.unit.sources.add_stream(_STREAM)
        for table in _TABLES:
            self.working.unit.sources.put_table(table)
        self.working.load([_KEY], [_DESTINATION])
        cq = Cq("q", CqText.cut(""), _DESTINATION.destination_id, 0, 0)
        self.working.unit.put(_KEY, cq, _DESTINATION, _PLAN, _SELECT)
        self.working.commit()
        self.upkeep = TableUpkeep(self.settings, self.working)

    def drop(self, *, together: bool) -> None:
        """Drop the CQ and then the tables, in one unit of work or in two."""
        self.working.load([_KEY], [_DESTINATION])
        self.working.unit.remove(_KEY, _EVENTS)
        if not together:
            self.working.commit()
        catalog = Catalog([_STREAM], _TABLES, [])
        for table in _TABLES:
            rights, computations = SourceRights(self.settings), Computations(self.working)
            drop_table(rights, self.working, catalog, computations, table.name, table.owner)
        self.working.commit()

    def kept(self) -> list[str]:
        """Return the dropped tables known to a gateway that begins now."""
        working = WorkingCopy(self.settings)
        working.open()
        assert not working.inventory.tables
        return list(working.inventory.dropped_tables)


def _seen(store: TableStore, batch: int) -> Snapshot:
    return ConstantTables("s_1").at(store.pin("s_1", batch).version, store)


def _check(servers: Ground, *, together: bool) -> None:
    gateway = _Gateway(servers)
    store = TableStore(gateway.settings)
    gateway.drop(together=together)
    gateway.upkeep.step()
    assert [_PLAN.computation] == list(_seen(store, 1).computations)
    assert {"t_1": _TABLES[0]} == store.tables(["t_1"])
    assert ["t_1"] == gateway.kept()
    store.committed("s_1", 1, {"0": 100})
    gateway.working.load([], [_DESTINATION])
    gateway.working.unit.retire(_DESTINATION, _EVENTS)
    gateway.working.commit()
    assert not list(_seen(store, 2).computations)
    gateway.upkeep.step()
    assert [] == gateway.kept()


def test_a_batch_after_the_drops_has_the_table(servers: Ground) -> None:
    """Events of before the DROP of a CQ are evaluated for it, whatever was dropped since; then the table goes."""
    _check(servers, together=False)


def test_both_drops_in_one_unit_of_work(servers: Ground) -> None:
    """They may come in the same unit, while Redis does not know yet that the CQ's plan is idle."""
    _check(servers, together=True)
