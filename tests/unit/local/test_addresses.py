"""Unreadable addresses give a one-line error without any part of the address."""

from __future__ import annotations

import pytest

from gateway.cli.errors import checked_address
from grouping.model.errors import OperationalError
from grouping.settings.addresses import check_redis_url, check_servers
from grouping.settings.given_settings import given_settings
from grouping.store.connection import connect

_URLS = (
    "redis://user:geheim@localhost:port/0", "redis://user:geheim@localhost:99999/0", "redis://:ge#heim@localhost:1/0",
    "redis://user:geheim@[::1/0", "localhost:6379", "http://user:geheim@localhost:6379", "",
    "redis://:geheim@localhost:1/zero", "redis://:geheim@a..b:1/0", "redis://:geheim@localhost:0/0",
    "redis://:geheim@localhost:1/0?timeout=geheim", "redis://:geheim@localhost:1/0?socket_timeout=geheim",
)  # fmt: skip
_SERVERS = (
    "localhost", "localhost:port", "localhost:99999", "localhost:0", "kafka://user:geheim@localhost:9092",
    "user:geheim@localhost:9092", "", ",", "a:1,,b:1", "a..b:9092", "[::1]",
)  # fmt: skip


def _error(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> str:
    monkeypatch.setenv(name, value)
    with pytest.raises(OperationalError) as raised:
        connect(given_settings())
    return str(raised.value)


@pytest.mark.parametrize("url", _URLS)
def test_a_malformed_url_of_redis_is_one_line(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """The line names the setting, and no password."""
    line = _error(monkeypatch, "CQ_REDIS_URL", url)
    assert line.startswith("setting CQ_REDIS_URL is not valid: ")
    assert ("geheim" in line, "heim@" in line, "\n" in line) == (False, False, False)


@pytest.mark.parametrize("servers", _SERVERS)
def test_malformed_servers_of_kafka_are_one_line(monkeypatch: pytest.MonkeyPatch, servers: str) -> None:
    """The line names the setting, and no part of the address."""
    line = _error(monkeypatch, "CQ_KAFKA_BOOTSTRAP", servers)
    assert line.startswith("setting CQ_KAFKA_BOOTSTRAP is not valid: ")
    assert ("geheim" in line, "\n" in line) == (False, False)


def test_good_addresses_stay_as_they_are() -> None:
    """Also sockets, options, and a listener's protocol."""
    for servers in ("b-1:9092", "b:9092, c:9093", "SASL_SSL://b.example:1", "[::1]:9092", "127.0.0.1:65535"):
        assert servers == checked_address(servers, check_servers)
    for url in (
        "redis://localhost",
        "rediss://u:%23@h:1/15?ssl_cert_reqs=none",
        "unix:///run/redis.sock",
        "redis:///1",
    ):
        assert url == checked_address(url, check_redis_url)
