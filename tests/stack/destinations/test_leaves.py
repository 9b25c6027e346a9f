"""CQs that leave a destination to others, and destinations taken up again: every reader learns its own end."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import pytest

from gateway.sdk import Client, Digest, Match, Subscription, aio, connect
from gateway.sdk.records import reader
from gateway.sdk.records.cursor import encode_cursor, place_of
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack

_SECONDS = 90


@pytest.fixture
def clients(stack: Stack, lab: Lab) -> list[Client]:
    """Four subscribers."""
    return [connect(stack.bootstrap, lab.subscriber(name)) for name in ("alice", "bob", "carol", "dave")]


def _publish(source: Source, count: int) -> None:
    source.publish_values(*[b'{"symbol": "A", "qty": %d}' % number for number in range(count)])


def _rest(results: Subscription) -> int:
    """Return how many results come until the CQ has ended."""
    count = 0
    while isinstance(results.next(timeout=_SECONDS), Match | Digest):
        count += 1
    assert results.ended
    return count


def test_a_reader_ends_with_its_cq_while_others_go_on(
    stack: Stack, lab: Lab, clients: Sequence[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped by another process, replaced, or expired: its reader has its own results and ends; a sharer's goes on."""
    source = lab.stream()
    select = f"SELECT qty FROM {source.name} WHERE symbol = 'A'"
    alice, bob, carol, dave = clients
    made = [client.create("cq", select, publish="SHARED") for client in (alice, bob, dave)]
    brief = carol.create("cq", select, publish="SHARED")
    assert {made[0].destination.id} == {one.destination.id for one in (*made, brief)}
    assert 4 == len({one.destination.member for one in (*made, brief)})
    assert made[0].destination.member == alice.describe("cq").destination.member
    lab.cqs[lab.subscriber("bob"), "cq"] = lab.cqs[lab.subscriber("dave"), "cq"] = None
    bob.pause("cq")
    followed = [client.subscribe(one) for client, one in zip((alice, bob, dave), made, strict=True)]
    _publish(source, 20)
    with connect(stack.bootstrap, alice.subscriber) as elsewhere:
        elsewhere.drop("cq")
    assert (20, "dropped") == (_rest(followed[0]), followed[0].ends["cq"].reason)
    dave.create("cq", f"{select} AND qty < 0", publish="SHARED", replace=True)
    assert (20, "replaced") == (_rest(followed[2]), followed[2].ends["cq"].reason)
    brief = carol.execute("ALTER CQ cq SET EXPIRE AFTER '1 second'").query

    async def follow() -> tuple[int, str]:
        async with await aio.connect(stack.bootstrap, carol.subscriber) as twin, asyncio.timeout(_SECONDS):
            async with await twin.subscribe(brief) as results:
                return len([match async for match in results]), results.ends["cq"].reason

    assert (20, "expired") == asyncio.run(follow())
    monkeypatch.setattr(reader, "OVERDUE", timedelta())
    unnamed = msgspec.structs.replace(brief, destination=msgspec.structs.replace(brief.destination, member=None))
    with carol.subscribe(cursor=encode_cursor([place_of(unnamed)])) as results:
        assert (20, "expired") == (_rest(results), results.ends["cq"].reason), "a cursor of an earlier version"
    bob.resume("cq")
    _publish(source, 10)
    assert 30 == len([followed[1].next(timeout=_SECONDS) for _ in range(30)])
    assert not followed[1].ended
    for one in (*followed, *clients):
        one.close()


def test_a_virtual_reader_reads_all_partitions_before_it_ends(lab: Lab, clients: Sequence[Client]) -> None:
    """A member who leaves a virtual destination has all results, wherever they lie; so has the last member."""
    source = lab.stream(partitions=2)
    select = f"SELECT qty FROM {source.name} WHERE qty >= 0"
    alice, bob, *_ = clients
    made = [client.create("cq", select, publish="VIRTUAL") for client in (alice, bob)]
    with alice.subscribe(made[0]) as left, bob.subscribe(made[1]) as others:
        for partition in range(2):
            source.publish_values(*[b'{"qty": %d}' % number for number in range(500)], partition=partition)
        assert 1000 == len([others.next(timeout=_SECONDS) for _ in range(1000)])
        alice.drop("cq")
        assert (1000, "dropped") == (_rest(left), left.ends["cq"].reason)
        assert not others.ended
        bob.drop("cq")
        assert (0, "dropped") == (_rest(others), others.ends["cq"].reason)
    for client in clients:
        client.close()


def test_lives_that_follow_at_once(lab: Lab) -> None:
    """Created and dropped in turns without waiting, each incarnation has its end, and begins after the one before."""
    source, alice = lab.stream(), lab.subscriber()
    for clauses in ("SHARED", "SHARED EVERY '1 second'"):
        name = uuid.uuid4().hex
        create = (
            f"CREATE CQ \"{name}\" AS SELECT qty FROM {source.name} DO PUBLISH {clauses} START '2026-01-01T00:00:00Z'"
        )
        sent = [lab.client.send(text, alice) for _ in range(5) for text in (create, f'DROP CQ "{name}"')]
        replies = [lab.client.reply(command_id) for command_id in (*sent, lab.client.send(create, alice))]
        assert {"ok"} == {reply.code for reply in replies}
        times = [datetime.fromisoformat(reply.fields["replied_at"]) for reply in replies]
        assert times == sorted(times)
        assert all(end < begin for end, begin in zip(times[1::2], times[2::2], strict=True))
        destination = replies[0].result["destination"]
        assert 6 == len({reply.result["destination"]["member"] for reply in replies[::2]})
        lab.results.follow(destination)
        lab.results.until(lambda at=destination: len(lab.results.of(at)) == 5, "five ends")
        ends = [datetime.fromisoformat(one.row["ended_at"]) for one in lab.results.of(destination)]
        assert times[1::2] == ends
        lab.cqs[alice, name] = replies[-1].result
