"""Digests come at their ticks, also beside a digest that is too large, and beside windows."""

from __future__ import annotations

from gateway.kafka import LogReader
from gateway.model.trigger_spec import TriggerSpec
from tests.aggregate_desk import VENUES, GroupDesk
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, digests, let_pass, take_in

_HOURLY, _TWO_HOURLY = (TriggerSpec(every, NOW % HOUR) for every in (HOUR, 2 * HOUR))
_WINDOW = TriggerSpec(HOUR // 2, NOW % (HOUR // 2), over_ms=HOUR)


class _Desk(GroupDesk):
    symbols = 2
    half = 20
    pane = (HOUR // 2, NOW % (HOUR // 2))


class _LargeRows(_Desk):
    """The row of the group V0 has more than a record holds."""

    select = """SELECT venue, sum(volume) AS total,
        CASE WHEN venue = 'V0' THEN repeat(repeat('x', 1000), 1000) ELSE venue END AS one,
        CASE WHEN venue = 'V0' THEN repeat(repeat('x', 1000), 1000) ELSE 'b' END AS two
        FROM t WHERE symbol = 'S00000' GROUP BY venue HAVING sum(volume) > 10"""


def _letters(desk: _Desk) -> list[tuple[bytes | None, bytes | None, bytes]]:
    """Return code, source and detail of each dead letter."""
    reader = LogReader(desk.settings)
    found = [dict(record.headers) for record in reader.since(desk.settings.topics.deadletters, {0: 0})]
    reader.close()
    return [(headers["code"], headers["source"], headers["detail"] or b"") for headers in found]


def test_a_row_that_no_record_holds_stops_no_digest(ground: Ground) -> None:
    """The digest comes without the row, a dead letter tells once, and later digests come, also from a new start."""
    desk = _LargeRows(ground.settings, NOW)
    desk.put([("hourly", 0, _HOURLY), ("later", 0, _TWO_HOURLY)])
    stores = desk.stores([0], _HOURLY)
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    name = desk.destination(0, _HOURLY).destination_id
    [(code, source, detail)] = _letters(desk)
    assert (b"result-too-large", f"{name}/{NOW + HOUR}/1".encode()) == (code, source)
    assert b"without 1 row" in detail
    desk.recover()
    take_in(desk, stores, desk.now_ms)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    later = desk.destination(0, _TWO_HOURLY).destination_id
    names = [f"{name}/{NOW + HOUR}/1", f"{name}/{NOW + 2 * HOUR}/1", f"{later}/{NOW + 2 * HOUR}/1"]
    rows = {each: len(body["rows"]) for each, body in digests(desk).items()}
    assert dict.fromkeys(names, VENUES - 1) == rows
    assert 3 == len(_letters(desk))


def test_windows_are_served_behind_all_others(ground: Ground) -> None:
    """A digest with OVER LAST comes after the digests of its stream that are due, though its tick was earlier."""
    desk = _Desk(ground.settings, NOW)
    desk.put([("window", 0, _WINDOW), ("plain", 1, _HOURLY)])
    take_in(desk, desk.stores([0, 1], _HOURLY), NOW + 1)
    desk.now_ms = NOW + HOUR
    served: list[str] = []
    for _ in range(100):
        desk.timers.step()
        served += [name for name in digests(desk) if name not in served]
        desk.now_ms += 100
        if len(served) > 1:
            break
    plain, window = (desk.destination(at, each).destination_id for at, each in ((1, _HOURLY), (0, _WINDOW)))
    assert [plain, window] == [name.split("/")[0] for name in served]
