"""A primary that was asleep while its follower was promoted goes on: its answers and writes count no more.

For eight seconds no Sentinel demotes the server, which acts as primary and has confirmed tables.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from grouping.store.connection import StoreUnavailable, connect
from grouping.store.lease import Lease
from grouping.store.table_store import TableStore
from tests.cluster.failover.pair import Pair, watched_pair
from tests.kafka_client import wait_until


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """The servers."""
    with watched_pair(tmp_path / "pair") as pair:
        yield pair


def test_it_pins_nothing_and_takes_nothing(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Micro-batches are pinned with the new primary; a unit of work is not answered, and the lease is taken there."""
    for name, value in pair.settings.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    lease, store, old = Lease(settings, "gateway"), TableStore(settings), pair.primary()
    working = _filled(settings, lease, epoch=1)
    pair.await_followed()
    assert 1 == store.pin("s_1", 1).version.epoch
    pair.running[old].send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: pair.primary() != old, "promotion of the follower")
        successor = Lease(settings, "gateway")
        successor.lifetime_ms = 60_000  # nobody renews it, however slow the machine is
        wait_until(lambda: _acquired(successor), "lease")
        _filled(settings, successor, epoch=2)
    finally:
        pair.running[old].send_signal(signal.SIGCONT)
    for ask in (lambda: store.pin("s_1", 2), working.commit, lease.acquire):
        with pytest.raises(StoreUnavailable, match="another primary"):
            ask()
    assert 2 == store.pin("s_1", 2).version.epoch
    assert not lease.acquire()


def _filled(settings: Settings, lease: Lease, epoch: int) -> WorkingCopy:
    """Fill the primary as a gateway does, with one stream."""
    assert lease.acquire()
    working = WorkingCopy(settings, lease)
    working.wipe()
    working.open()
    working.unit.sources.add_stream(Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, ""))
    working.commit()
    working.confirm(epoch, connect(settings).info("server")["run_id"])
    return working


def _acquired(lease: Lease) -> bool:
    with suppress(StoreUnavailable):  # a failover is not over when a Sentinel tells the new primary's address
        return lease.acquire()
    return False
