"""Aggregate queries on real servers: every match is counted once, in the digest that has it as a row."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gateway.model.records import instant
from tests.stack.digests.ticks import Flow, digests, now_ms, tick_of
from tests.stack.lab import Lab


def _started(lab: Lab, source: Any, start_ms: int) -> dict[str, Any]:
    """Create a CQ with its matches, and others with their counts, all with the same ticks."""
    clauses = f"START '{instant(start_ms)}' EVERY '1 second' DO PUBLISH SHARED"

    def create(cq: str, what: str, having: str = "", more: str = "") -> Any:
        select = f'SELECT {what} FROM "{source.name}" WHERE qty >= 0{having}'
        return lab.create(cq, select, clauses=clauses + more)

    sums = "symbol, count(*) AS n, sum(qty) AS total"
    by_symbol = " GROUP BY symbol"
    return {
        "rows": create("rows", "symbol, qty"),
        "sums": create("sums", sums, by_symbol),
        "many": create("many", sums, f"{by_symbol} HAVING count(*) > 12"),
        "more": create("more", sums, f"{by_symbol} HAVING count(*) > 18"),
        "none": create("none", sums, f"{by_symbol} HAVING count(*) > 9999"),
        "all": create("all", "count(*) AS n, max(symbol) AS last", " AND qty < 0", " EVEN IF EMPTY"),
    }


def _by_tick(lab: Lab, created: Any) -> dict[int, dict[str, Any]]:
    return {tick_of(one): one.row for one in digests(lab, created)}


def _grouped(digest: dict[str, Any], least: int) -> list[dict[str, Any]]:
    """Return the groups of a digest of rows."""
    counts, totals = Counter[str](), Counter[str]()
    for row in digest["rows"]:
        counts[row["symbol"]] += 1
        totals[row["symbol"]] += row["qty"]
    return [
        {"symbol": each, "n": counts[each], "total": totals[each]} for each in sorted(counts) if counts[each] > least
    ]


def _above(rows: dict[int, dict[str, Any]], least: int) -> dict[int, list[dict[str, Any]]]:
    """Return the groups of more than `least` matches by tick, without ticks that have none."""
    found = {tick: _grouped(digest, least) for tick, digest in rows.items()}
    return {tick: groups for tick, groups in found.items() if groups}


def _counted(lab: Lab, created: Any) -> int:
    return sum(one["count"] for one in _by_tick(lab, created).values())


def test_groups_are_those_of_the_matches(lab: Lab) -> None:
    """A digest of groups agrees with the rows in the digest of the same tick."""
    source = lab.stream(partitions=2)
    start_ms = now_ms() - 250
    made = _started(lab, source, start_ms)
    assert len({each["group"] for each in made.values()}) == 4
    assert made["many"]["group"] == made["more"]["group"] == made["none"]["group"]
    flow = Flow(lab, source)
    flow.run(5, *"A" * 13, "B", pause=0.2)  # more than 12 of A in a tick, however slow the machine is
    sent = len(flow.sent)
    lab.results.until(lambda: _counted(lab, made["rows"]) == sent == _counted(lab, made["sums"]), "all counted")
    rows = _by_tick(lab, made["rows"])
    wanted = {name: _above(rows, least) for name, least in {"sums": 0, "many": 12, "more": 18}.items()}
    lab.results.until(
        lambda: all(wanted[name].keys() <= _by_tick(lab, made[name]).keys() for name in wanted), "digests"
    )
    lab.results.until(lambda: _by_tick(lab, made["all"]), "a digest without matches")
    found = {name: _by_tick(lab, one) for name, one in made.items()}
    for name, groups in wanted.items():
        assert {tick: digest["rows"] for tick, digest in found[name].items()} == groups, name
    assert {tick: digest["count"] for tick, digest in found["sums"].items()} == {
        tick: digest["count"] for tick, digest in rows.items()
    }
    assert wanted["many"]
    assert not found["none"]
    assert {(one["count"], str(one["rows"])) for one in found["all"].values()} == {(0, "[{'n': 0, 'last': None}]")}


def test_a_total_is_in_the_group_of_its_matches(lab: Lab) -> None:
    """Without GROUP BY and HAVING the signature is that of a query without aggregates, whichever comes first."""
    source = lab.stream()
    clauses = f"START '{instant(now_ms() - 250)}' EVERY '1 second' DO PUBLISH SHARED"
    lists, made = {"rows": "symbol, qty", "total": "count(*) AS n, sum(qty) AS total"}, {}
    for predicate in ("qty >= 0", "qty > 0"):
        for name in sorted(lists, reverse=predicate == "qty > 0"):
            made[name, predicate] = lab.where(
                source, f"{name} {predicate}", predicate, columns=lists[name], clauses=clauses
            )
        assert made["rows", predicate]["group"] == made["total", predicate]["group"]
    Flow(lab, source).publish("A", "B", "A")
    for (name, predicate), created in made.items():
        wanted = 3 if predicate == "qty >= 0" else 2
        lab.results.until(lambda created=created, wanted=wanted: _counted(lab, created) == wanted, name)  # type: ignore[misc]
        rows = [row for digest in _by_tick(lab, created).values() for row in digest["rows"]]
        if name == "rows":
            assert [row["qty"] for row in rows] == [0, 1, 2][-wanted:]
        else:
            assert (sum(row["n"] for row in rows), sum(row["total"] for row in rows)) == (wanted, 3)
        over = f"ALTER CQ \"{name} {predicate}\" SET EVERY '1 second' OVER LAST '3 seconds'"
        assert lab.client.execute(over, lab.subscriber()).code == ("ok" if name == "total" else "unsupported-query")


def test_windows_of_ticks(lab: Lab) -> None:
    """OVER LAST counts the matches of a tick and of earlier ticks; with an empty window nothing is sent."""
    source = lab.stream()
    clauses = f"START '{instant(now_ms())}' EVERY '1 second' OVER LAST '3 seconds' DO PUBLISH SHARED"
    created = lab.where(source, "wide", "qty >= 0", columns="count(*) AS n, max(qty) AS most", clauses=clauses)
    assert created["trigger"]["over_last"] == "PT3S"
    flow, lead_ms = Flow(lab, source), 3000
    source.fence()
    while True:  # until this machine has published all of them before their ticks
        first, begin_ms = len(flow.sent), now_ms() + lead_ms
        # The window of the last one begins when that of the others is over.
        for symbols, late_ms in (("AA", 0), ("A", 1000), ("B", 6000)):
            flow.publish(*symbols, time_ms=begin_ms + late_ms)
        if flow.sent[-1].acknowledged_ms < begin_ms:
            break
        lead_ms = 3 * lead_ms + 9000  # the windows of these are over before the next begin

    def windows() -> list[tuple[int, int]]:
        """Return count and maximum of each digest since the beginning, in the order of ticks."""
        found = sorted((tick, one) for tick, one in _by_tick(lab, created).items() if tick > begin_ms)
        assert all(one["rows"][0]["n"] == one["count"] for _, one in found)
        return [(one["rows"][0]["n"], one["rows"][0]["most"] - first) for _, one in found]

    lab.results.until(lambda: (1, 3) in windows(), "the last one alone")
    assert [(2, 1), (3, 2), (3, 2), (1, 2), (1, 3)] == windows()[:5]
