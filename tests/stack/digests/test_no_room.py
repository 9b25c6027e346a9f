"""A digest without room for its rows: it waits, the others go on, and nothing crashes."""

from __future__ import annotations

import json
import resource

from tests.stack.digests.ticks import digests, now_ms, numbers, tick_of
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack

_ROWS = 2200
_FILE_BYTES = 4 << 20


def test_a_digest_without_room_is_tried_again(stack: Stack, lab: Lab) -> None:
    """Other destinations get theirs meanwhile, `cq status` tells, and the digest comes whole when there is room."""
    source = lab.stream("symbol STRING, qty INT")
    every = "DO PUBLISH SHARED EVERY '1 second'"
    large = lab.where(source, "large", "", columns="symbol, qty", clauses=every)
    small = lab.where(source, "small", "qty < 3", columns="qty", clauses=every)
    gateway = stack.endpoints()["pids"]["gateway"]
    before = resource.prlimit(gateway, resource.RLIMIT_FSIZE)
    resource.prlimit(gateway, resource.RLIMIT_FSIZE, (_FILE_BYTES, before[1]))  # as a disk that is full
    try:
        bodies = [json.dumps({"symbol": "x" * 9000, "qty": number}).encode() for number in range(_ROWS)]
        began_ms = now_ms()
        lab.client.publish_all(lab.client.make_topic(f"trial-{lab.token}"), [(body, None, 0, 0) for body in bodies])
        # All are there before their tick, however slow the machine is.
        at_ms = now_ms() + max(8000, 5 * (now_ms() - began_ms))
        lab.client.publish_all(source.topic, [(body, None, 0, at_ms) for body in bodies])
        lab.results.until(lambda: len(numbers(digests(lab, small))) == 3, "the small digest")
        lab.results.until(lambda: _waiting(stack, source) == 1, "a digest waiting")
        assert not digests(lab, large)
        lab.client.publish_all(source.topic, [(b'{"symbol": "y", "qty": 2}', None, 0, now_ms())])
        lab.results.until(lambda: len(numbers(digests(lab, small))) == 4, "the next small digest")
    finally:
        resource.prlimit(gateway, resource.RLIMIT_FSIZE, before)
    lab.results.until(lambda: len(numbers(digests(lab, large))) == _ROWS + 1, "the large digest")
    assert sorted(numbers(digests(lab, large))) == sorted([2, *range(_ROWS)])
    assert {one.row["count"] for one in digests(lab, large) if tick_of(one) > at_ms and one.row["parts"] > 1} == {_ROWS}
    assert stack.endpoints()["pids"]["gateway"] == gateway
    lab.results.until(lambda: not _waiting(stack, source), "nothing waiting")


def _waiting(stack: Stack, source: Source) -> int:
    return stack.stream_report(source.name).get("digests_waiting", 0)
