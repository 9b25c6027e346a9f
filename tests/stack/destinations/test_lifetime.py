"""START and EXPIRE on real servers, for change-based and timer-based CQs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.stack.digests.ticks import Flow, digests, now_ms, numbers, tick_of
from tests.stack.lab import Lab, Source


def _at(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _ended(lab: Lab, made: Any) -> Any:
    lab.results.until(lambda: any(one.kind == "cq.end" for one in lab.results.of(made["destination"])), "cq.end")
    return lab.results.of(made["destination"])[-1]


def _in_time(attempt: Callable[[int], bool]) -> None:
    """Make attempts with longer and longer spans, milliseconds, until this machine has published all within one."""
    span_ms = 2000
    while not attempt(span_ms):
        span_ms *= 3


def _created(lab: Lab, source: Source, name: str, predicate: str, clauses: str, columns: str = "qty") -> Any:
    """Create a CQ, and begin to read its results; None where its EXPIRE was over before this machine came to it."""
    text = f"CREATE CQ {name} AS SELECT {columns} FROM {source.name} WHERE {predicate} {clauses}"
    reply = lab.client.execute(text, lab.subscriber())
    if reply.code == "already-expired":
        return None
    assert reply.code == "ok", reply.fields
    lab.cqs[lab.subscriber(), name] = reply.result
    lab.results.follow(reply.result["destination"])
    return reply.result


def _expired(lab: Lab, name: str, made: Any) -> Any:
    """Return the end of a CQ that has expired."""
    end = _ended(lab, made)
    assert end.row["reason"] == "expired"
    del lab.cqs[lab.subscriber(), name]
    return end


def test_start_and_expire_of_a_change_based_cq(lab: Lab) -> None:
    """The CQ sees the record times [START, EXPIRE); then it is gone, its end says so, and its name is free."""
    source = lab.stream()
    source.fence()

    def attempt(span_ms: int) -> bool:
        start_ms = now_ms() + 500
        expire_ms = start_ms + span_ms
        clauses = f"DO PUBLISH SHARED START '{_at(start_ms)}' EXPIRE '{_at(expire_ms)}'"
        columns = f"qty, {span_ms} AS span_ms"  # a destination of its own for each attempt
        made = _created(lab, source, "window", "symbol = 'A'", clauses, columns)
        if made is None:
            return False
        flow = Flow(lab, source)
        for time_ms in (start_ms - 1, start_ms, expire_ms - 1, expire_ms):
            flow.publish("A", time_ms=time_ms)
        end = _expired(lab, "window", made)
        assert now_ms() >= expire_ms
        if flow.sent[-1].acknowledged_ms >= expire_ms:
            return False
        assert end.headers["ce_id"] == f"{made['destination']['id']}/end/{expire_ms}"
        assert [one.row["qty"] for one in lab.results.of(made["destination"])[:-1]] == [1, 2]
        assert lab.client.execute("DESCRIBE CQ window", lab.subscriber()).code == "unknown-cq"
        return True

    _in_time(attempt)


def test_what_was_published_before_expire_still_counts(lab: Lab) -> None:
    """Events published up to EXPIRE are all in, though they are evaluated after it."""
    source = lab.stream(partitions=2)

    def attempt(span_ms: int) -> bool:
        columns = f"qty, {span_ms} AS span_ms"  # a destination of its own for each attempt
        clauses = f"DO PUBLISH SHARED EXPIRE AFTER '{span_ms // 1000} seconds'"
        made = lab.where(source, "brief", "symbol = 'A'", columns=columns, clauses=clauses)
        expire_ms = round(datetime.fromisoformat(made["expires_at"]).timestamp() * 1000)
        flow = Flow(lab, source)
        while now_ms() < expire_ms + 300 or flow.sent[-1].time_ms < expire_ms:
            flow.publish("A", "B", "A")
        _expired(lab, "brief", made)
        seen = {one.row["qty"] for one in lab.results.of(made["destination"])[:-1]}
        sure = {sent.number for sent in flow.of("A") if sent.time_ms < expire_ms and sent.acknowledged_ms <= expire_ms}
        never = {sent.number for sent in flow.of("A") if sent.time_ms >= expire_ms}
        assert never
        assert not sure - seen
        assert not seen & never
        return bool(sure)

    _in_time(attempt)


def test_the_last_digest_comes_at_expire(lab: Lab) -> None:
    """Matches pending at EXPIRE come in a last digest, then the end; on a regular tick there is a single digest."""
    source = lab.stream()
    source.fence()

    def attempt(span_ms: int) -> bool:
        start_ms, second_ms, between_ms = now_ms() + 500, 2 * span_ms, 5 * span_ms // 2
        every = f"DO PUBLISH SHARED START '{_at(start_ms)}' EVERY '{span_ms // 1000} seconds'"
        # The one that expires first is created first.
        on, off = (
            _created(lab, source, f"{name}{span_ms}", what, f"{every} EXPIRE '{_at(start_ms + expire_ms)}'")
            for name, what, expire_ms in (("on", "qty >= 0", second_ms), ("off", "symbol = 'A'", between_ms))
        )
        if on is None or off is None:
            return False
        flow = Flow(lab, source)
        for end_ms in (0, span_ms, second_ms, between_ms):
            for late_ms in (end_ms - 1, end_ms):
                flow.publish("A", time_ms=start_ms + late_ms)
        for made, name, ticks in (
            (off, f"off{span_ms}", {span_ms: [1, 2], second_ms: [3, 4], between_ms: [5, 6]}),
            (on, f"on{span_ms}", {span_ms: [1, 2], second_ms: [3, 4]}),
        ):
            _expired(lab, name, made)
            if flow.sent[-1].acknowledged_ms < start_ms + span_ms:
                came = {tick_of(one) - start_ms: numbers([one]) for one in digests(lab, made)}
                assert came == ticks
                assert digests(lab, made)[0].row["from"] == made["starts_at"]
        return flow.sent[-1].acknowledged_ms < start_ms + span_ms

    _in_time(attempt)


def test_a_sharer_keeps_the_destination(lab: Lab) -> None:
    """While a live CQ shares it, EXPIRE of another ends nothing; pending matches come at the next tick."""
    source = lab.stream()
    source.fence()

    def attempt(span_ms: int) -> bool:
        start_ms = now_ms() + 500
        every = f"DO PUBLISH SHARED START '{_at(start_ms)}' EVERY '{span_ms // 1000} seconds'"
        expire = f"EXPIRE '{_at(start_ms + span_ms // 2)}'"
        brief = _created(lab, source, "brief", "symbol = 'A'", f"{every} {expire}")
        if brief is None:
            return False
        lasting = lab.where(source, "lasting", "symbol = 'A'", columns="qty", clauses=every, who="bob")
        assert brief["destination"]["id"] == lasting["destination"]["id"]
        flow = Flow(lab, source)
        flow.publish("A", time_ms=start_ms + span_ms // 4)
        flow.publish("A", time_ms=start_ms + span_ms * 3 // 4)
        lab.results.until(lambda: digests(lab, lasting), "the digest")
        assert lab.client.execute("DESCRIBE CQ brief", lab.subscriber()).code == "unknown-cq"
        del lab.cqs[lab.subscriber(), "brief"]
        if flow.sent[-1].acknowledged_ms >= start_ms + span_ms // 2:
            lab.drop("lasting", lab.subscriber("bob"))
            return False
        assert [(tick_of(one) - start_ms, numbers([one])) for one in digests(lab, lasting)] == [(span_ms, [0, 1])]
        return True

    _in_time(attempt)
