"""A primary that was asleep while its follower was promoted goes on: no micro-batch sees what it holds."""

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
def settings(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of roles that find the primary by a Sentinel."""
    for name, value in pair.settings.items():
        monkeypatch.setenv(name, value)
    return Settings()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """The servers."""
    with watched_pair(tmp_path / "pair") as pair:
        yield pair


def test_an_old_primary_that_goes_on_pins_nothing(pair: Pair, settings: Settings) -> None:
    """For eight seconds no Sentinel tells it better, and its tables are confirmed for its run."""
    store, old = TableStore(settings), pair.primary()
    _confirm(settings, 1)
    pair.await_followed()
    assert 1 == store.pin("s_1", 1).version.epoch
    pair.running[old].send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: pair.primary() != old, "promotion of the follower")
        _confirm(settings, 2)
    finally:
        pair.running[old].send_signal(signal.SIGCONT)
    with pytest.raises(StoreUnavailable, match="another primary"):
        store.pin("s_1", 2)
    assert 2 == store.pin("s_1", 2).version.epoch


def _confirm(settings: Settings, epoch: int) -> None:
    """Fill the primary as a gateway does, with one stream."""
    lease = Lease(settings, "gateway")
    wait_until(lambda: _acquired(lease), "lease")
    working = WorkingCopy(settings, lease)
    working.wipe()
    working.open()
    working.unit.sources.add_stream(Stream("s_1", "quotes", (), "quotes", "json", {"0": 0}, ""))
    working.commit()
    working.confirm(epoch, connect(settings).info("server")["run_id"])


def _acquired(lease: Lease) -> bool:
    with suppress(StoreUnavailable):  # a failover is not over when a Sentinel tells the new primary's address
        return lease.acquire()
    return False
