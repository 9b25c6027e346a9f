"""The SDK on the real servers: create, publish, follow, leave and come back, in both its forms."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gateway.cli.scripts.export import exported
from gateway.sdk import BadQuery, Client, Conflict, Match, Reply, ResultsGone, TransportError, aio, connect
from gateway.sdk.inbox import Inbox
from tests.kafka_client import RawClient, wait_until
from tests.stack.server import Stack

Ran = subprocess.CompletedProcess[str]
COLUMNS = {"symbol": "STRING", "price": "DOUBLE"}


@pytest.fixture
def client(stack: Stack) -> Iterator[Client]:
    """A subscriber of its own."""
    with connect(stack.bootstrap, f"sdk-{uuid.uuid4().hex[:8]}", prefix=stack.prefix) as client:
        yield client


@pytest.fixture
def stream(stack: Stack, client: Client) -> Iterator[str]:
    """A stream of its own, dropped with its CQs, which there may be thousands of."""
    name = f"sdk{uuid.uuid4().hex[:8]}"
    client.create_stream(name, COLUMNS, partitions=2)
    yield name
    raw = RawClient(stack.bootstrap, stack.prefix)
    for command_id in [raw.send(f'DROP CQ "{item["cq"]}"', client.subscriber) for item in client.listing("CQS")]:
        raw.reply(command_id)
    raw.close()
    client.drop_stream(name)


def rows(count: int) -> list[dict[str, object]]:
    """Quotes whose price is their number."""
    return [{"symbol": "INTC", "price": float(number)} for number in range(count)]


@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_results_come_once_over_a_cursor_and_end_with_the_cq(client: Client, stream: str, mode: str) -> None:
    """All matches published between reply and DROP come, each once, over a resumption; then the iteration ends."""
    created = client.create("cheap", f"SELECT price FROM {stream} WHERE symbol = 'INTC' AND price < 50", publish=mode)
    client.publish(stream, rows(100))
    with client.subscribe(created) as results:
        first = [results.next(timeout=180) for _ in range(20)]
        cursor = results.cursor
    with client.subscribe(cursor=cursor) as results:
        rest = [results.next(timeout=180) for _ in range(30)]
        client.drop("cheap")
        assert [] == list(results)
        assert "dropped" == results.ends["cheap"].reason
    prices = [match.row["price"] for match in [*first, *rest] if isinstance(match, Match)]
    assert [float(number) for number in range(50)] == sorted(prices)


def test_many_are_registered_and_followed_by_one_subscription(client: Client, stream: str) -> None:
    """Two thousand CQs, each for a price, are followed by one consumer; each gets its match."""
    outcomes = client.create_many(
        (f"p{number:04}", f"SELECT price FROM {stream} WHERE price = {number}") for number in range(2000)
    )
    queries = [outcome.query for outcome in outcomes if isinstance(outcome, Reply)]
    assert 2000 == len(client.listing("CQS"))
    assert 1 == len({query.group for query in queries})
    with client.subscribe(*queries) as results:
        client.publish(stream, rows(2000))
        found = [results.next(timeout=180) for _ in range(2000)]
    assert {f"p{number:04}": float(number) for number in range(2000)} == {
        match.cq: match.row["price"] for match in found if isinstance(match, Match)
    }


def test_a_rejection_names_what_is_near(client: Client, stream: str) -> None:
    """The gateway's code, and its hint with a near name, are on the exception."""
    with pytest.raises(BadQuery, match="unknown-column") as caught:
        client.create("bad", f"SELECT prise FROM {stream}")
    assert '"price"' in (caught.value.hint or "")


def test_asyncio_follows_what_it_creates(stack: Stack, client: Client, stream: str) -> None:
    """The asyncio twin creates and follows on the real servers."""

    async def follow() -> list[object]:
        async with await aio.connect(stack.bootstrap, client.subscriber, prefix=stack.prefix) as twin:
            created = await twin.create("twin", f"SELECT price FROM {stream} WHERE price >= 8")
            await twin.publish(stream, rows(10))
            async with await twin.subscribe(created) as results, asyncio.timeout(180):
                found = sorted([(await results.next()).row["price"] for _ in range(2)])  # type: ignore[union-attr]
            await twin.create_table(f"{stream}t", {"symbol": "STRING", "side": "STRING"}, "symbol", partitions=1)
            table = await twin.table(f"{stream}t")
            written = [await table.put({"symbol": "INTC", "side": "buy"}), await table.delete("INTC", "AMD")]
            await twin.drop_table(table.name)
            return [found, written]

    assert [[8.0, 9.0], [1, 2]] == asyncio.run(follow())


def test_rows_of_a_table_are_set_and_removed(client: Client, stream: str) -> None:
    """By a key of several columns, and by one that is no text; descriptions and listings tell of table and view."""
    owners, venues, view = f"{stream}owners", f"{stream}venues", f"{stream}held"
    client.create_table(owners, {"owner": "STRING", "symbol": "STRING"}, ["owner", "symbol"], partitions=2)
    client.create_table(venues, {"price": "DOUBLE", "venue": "STRING"}, "price", partitions=2)
    held = client.table(owners)
    assert (owners, ["owner", "symbol"]) == (held.name, list(held.primary_key))
    assert 3 == held.put({"owner": owner, "symbol": "INTC"} for owner in ("abe", "kim", "rose"))
    client.table(venues).put([{"price": 1.0, "venue": "XNAS"}, {"price": 2.0, "venue": "XLON"}])
    joins = f"{stream} q JOIN {owners} o ON q.symbol = o.symbol JOIN {venues} v ON q.price = v.price"
    client.create_view(view, f"SELECT o.owner, v.venue FROM {joins}")
    seen = client.create("seen", f"SELECT * FROM {view}")
    assert 1 == client.describe_view(view)["cqs"] == client.describe_table(owners)["cqs"]
    with client.subscribe(seen) as results:
        client.publish(stream, [{"symbol": "INTC", "price": 1.0}] * 8)
        found = [results.next(timeout=180) for _ in range(24)]
        first = [match for match in found if isinstance(match, Match)]
        assert 24 == len({match.id for match in first})
        for number, owner in enumerate(("abe", "kim", "rose")):
            assert [{"owner": owner, "venue": "XNAS"}] * 8 == [one.row for one in first if one.number == number]
        assert 2 == held.delete({"owner": "abe", "symbol": "INTC"}, {"symbol": "INTC", "owner": "kim"})
        client.table(venues).delete(1.0)
        client.publish(stream, [{"symbol": "INTC", "price": 1.0}, {"symbol": "INTC", "price": 2.0}])
        assert {"owner": "rose", "venue": "XLON"} == results.next(timeout=180).row  # type: ignore[union-attr]
    with pytest.raises(Conflict, match="The table is read by"):
        client.drop_table(venues)
    assert [owners, venues] == [each["table"] for each in client.listing("TABLES", like=f"{stream}%")]
    client.drop("seen")
    client.drop_view(view)
    for name in (owners, venues):
        client.drop_table(name)


def test_a_shell_can_do_it(stack: Stack, client: Client, stream: str) -> None:
    """`cq sql` prints the reply and exits 1 on rejection; `cq tail` prints results with a cursor."""

    def cq(*arguments: str) -> subprocess.CompletedProcess[str]:
        shared = ["--data", str(stack.data), "--subscriber", client.subscriber, "--json"]
        command = [sys.executable, "-m", "gateway.cli", *arguments, *shared]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    created = cq("sql", f"CREATE CQ shell AS SELECT price FROM {stream} WHERE price = 3")
    assert (0, "accepted") == (created.returncode, json.loads(created.stdout)["status"])
    again = cq("sql", f"CREATE CQ shell AS SELECT price FROM {stream}")
    assert (1, "cq-exists") == (again.returncode, json.loads(again.stdout)["code"])
    assert list(json.loads(created.stdout)) == list(json.loads(again.stdout))
    client.publish(stream, rows(5))
    [line] = cq("tail", "shell", "--limit", "1").stdout.splitlines()
    assert {"price": 3.0} == json.loads(line)["row"]


def test_what_is_exported_makes_all_of_it_again(stack: Stack, client: Client, stream: str, tmp_path: Path) -> None:
    """`cq export` and `cq sql --file`: streams, tables, views and CQs as they were, paused ones too."""
    table, view = f"{stream}owners", f"{stream}view"
    client.create_table(table, {"symbol": "STRING", "owner": "STRING"}, "symbol", partitions=1)
    client.create_view(view, f"SELECT q.symbol, price, owner FROM {stream} q JOIN {table} o ON q.symbol = o.symbol")
    client.create("a;b", f"SELECT price FROM {view} WHERE owner = 'it''s;'", every="10 minutes", publish="SHARED")
    client.execute(f"CREATE CQ later AS SELECT price FROM {stream} -- every\r; SET SUBSCRIBER other; DROP CQ a")
    client.pause("later")
    own = [text for text in exported(client) if stream in text or not text.startswith("CREATE")]
    assert ["STREAM", "TABLE", "VIEW", "CQ", "CQ", "CQ"] == [text.split()[1] for text in own]
    file = tmp_path / "all.sql"
    file.write_bytes(("-- all there is\n" + "\n;".join(own) + "\n;\n").encode())
    for name in ("a;b", "later"):
        client.drop(name)
    client.drop_view(view)
    client.drop_table(table)
    client.drop_stream(stream)

    def cq(*arguments: str, subscriber: Sequence[str] = ("--subscriber", client.subscriber)) -> Ran:
        command = [sys.executable, "-m", "gateway.cli", *arguments, "--data", str(stack.data), *subscriber]
        ran = subprocess.run(command, capture_output=True, timeout=300, check=False)
        # Decoded here: `text=True` would convert carriage returns.
        return subprocess.CompletedProcess(command, ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    carried_out = cq("sql", "--file", str(file), "--json")
    assert (0, 6) == (carried_out.returncode, len(carried_out.stdout.splitlines())), carried_out.stderr
    everybodys = cq("export", "--all", subscriber=[]).stdout
    assert all(text in everybodys for text in (*own, f'SET SUBSCRIBER "{client.subscriber}"'))
    printed = cq("export").stdout
    assert all(text in printed for text in own)
    assert ["active", "paused"] == [
        client.execute(f'DESCRIBE CQ "{name}"').result["status"] for name in ("a;b", "later")
    ]
    again = cq("sql", "--json", f"SHOW CQS; DROP STREAM {stream}; SET SUBSCRIBER other; DROP CQ later; SHOW CQS")
    assert 1 == again.returncode
    assert ["ok", "stream-in-use", "unknown-cq", "ok"] == [
        json.loads(line)["code"] for line in again.stdout.splitlines()
    ]
    for name in ("a;b", "later"):
        client.drop(name)
    client.drop_view(view)
    client.drop_table(table)


def test_a_reader_is_told_that_its_topic_was_deleted(stack: Stack) -> None:
    """A topic deleted while it is read at its end is looked for: librdkafka tells nothing of it."""
    now, topic = [0.0], f"sdk-{uuid.uuid4().hex}"
    raw = RawClient(stack.bootstrap, stack.prefix)
    raw.make_topic(topic)
    inbox = Inbox(stack.bootstrap, {}, lambda: now[0])
    inbox.assign({(topic, 0): 0})
    wait_until(lambda: inbox.fetch(0.1) or inbox.reached, "end of the topic")
    for _ in range(10):
        now[0] += 30
        inbox.fetch(0.0)
    raw.admin.delete_topics([topic])[topic].result()
    with pytest.raises(ResultsGone):
        wait_until(lambda: now.append(now.pop() + 30) or inbox.fetch(0.1), "error")
    inbox.close()
    raw.close()


def test_a_topic_that_a_starting_broker_does_not_know_is_not_gone(stack: Stack, client: Client, stream: str) -> None:
    """Kafka is asked again for an unknown topic: an existing one is read on, a missing one is told as deleted."""
    destination = client.create("all", f"SELECT symbol FROM {stream}", publish="SHARED").destination
    here, absent = (destination.topic, destination.partition or 0), (f"{stack.prefix}results.d_gone", 0)
    inbox = Inbox(stack.bootstrap, {})
    inbox.assign({here: destination.begins()[here[1]]})
    inbox.doubts.note(here, time.monotonic() - 60)
    client.publish(stream, rows(1))
    deadline, own = time.monotonic() + 180, destination.key.encode()
    found: list[bytes | None] = []
    while not found:  # other destinations may have their records in the same partition
        found = [each.value for each in inbox.fetch(1.0) if each.key == own]
        assert time.monotonic() < deadline, "nothing is read"
    assert [b'{"symbol":"INTC"}'] == found
    inbox.enter({absent: 0})
    inbox.doubts.note(absent, time.monotonic() - 60)
    with pytest.raises(ResultsGone):
        while True:
            inbox.fetch(1.0)
    inbox.close()


def test_a_missing_topic_is_told_at_once_and_to_its_own_call(stack: Stack, client: Client, stream: str) -> None:
    """Later publishes are counted as they are written, and so is a publish in a concurrent thread."""
    beside: list[int] = []
    other = threading.Thread(target=lambda: beside.append(client.publish(stream, rows(100))))
    other.start()
    began = time.monotonic()
    with pytest.raises(TransportError, match=f'topic "{stream}-missing" does not exist'):
        client.publish(f"{stream}-missing", rows(1), timeout=300)
    assert 100 > time.monotonic() - began, "long before the time for the writing is over"
    other.join()
    assert ([100], 3) == (beside, client.publish(stream, rows(3)))


def test_nobody_refuses_a_command_of_another_client(stack: Stack, client: Client) -> None:
    """Records under its name and id that are not its own are refused; the command itself is accepted."""
    raw = RawClient(stack.bootstrap, stack.prefix)
    for number in range(10):
        command_id = uuid.uuid4().hex
        forged = json.dumps({"command_id": command_id, "subscriber": "mallory", "text": "SHOW CQS"}).encode()
        broken = json.dumps({"command_id": command_id, "subscriber": 7, "text": "SHOW CQS"}).encode()
        records = [(value, client.subscriber, None, 0) for value in (forged, broken)] * 10
        sender = threading.Thread(target=raw.publish_all, args=(f"{stack.prefix}commands", records))
        sender.start()
        assert "ok" == client.execute("SHOW CQS", command_id=command_id).code, number
        sender.join()
    raw.close()
