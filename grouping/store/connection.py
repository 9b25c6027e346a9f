"""Connections to Redis; errors of the driver become errors of the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import hiredis
import redis
from redis.connection import parse_url
from redis.sentinel import Sentinel, SentinelConnectionPool

from grouping.model.errors import OperationalError
from grouping.settings.settings import RedisSettings, Settings

__all__ = [
    "PrimaryUnknown",
    "StoreLost",
    "StoreUnavailable",
    "check_primary",
    "connect",
    "eviction_policy",
    "mapped",
]


class StoreUnavailable(OperationalError):
    """Redis cannot be reached, or the gateway has not confirmed the constant tables in Redis."""


class PrimaryUnknown(StoreUnavailable):
    """No Sentinel has named the primary."""


class StoreLost(OperationalError):
    """Redis has lost data of the gateway, or may have lost some, and must be filled again from Kafka."""


def _client(url: str, options: Mapping[str, Any]) -> redis.Redis:
    """Make a client for a URL.

    Raises:
        OperationalError: An option of the URL is unknown, or has a wrong value.
    """
    try:
        client = redis.Redis.from_url(url, **options)
        client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    except (ValueError, TypeError):
        raise OperationalError("setting CQ_REDIS_URL is not valid: an option after its ? cannot be read") from None
    return client


@contextmanager
def mapped() -> Iterator[None]:
    """Turn errors of the driver into errors of the product. All calls of the driver need this context manager."""
    try:
        yield
    except redis.RedisError as error:
        raise StoreUnavailable("redis did not answer", detail=f"{type(error).__name__}: {error}") from error


def connect(settings: Settings) -> Any:
    """Return a client with a single connection.

    With Sentinels each new connection goes to the present primary. The result is untyped, because the driver's type
    hints do not know that answers are bytes.
    """
    server = settings.redis
    url = server.url.get_secret_value()
    options = {
        **_identity(server),
        "max_connections": 1,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "retry": None,
        "command_packer": _Packer(),
    }
    if not server.sentinels:
        return _client(url, options)
    given = options | parse_url(url)  # type: ignore[no-untyped-call]
    tls = given.pop("connection_class", None) is redis.SSLConnection
    own = {name: value for name, value in given.items() if name not in ("host", "port", "command_packer")}
    watch = Sentinel(  # type: ignore[no-untyped-call]
        [_address(each) for each in server.sentinels.split(",")],
        sentinel_kwargs=_sentinel_options(server, {**own, "ssl": tls}),
    )
    return watch.master_for(server.sentinel_name, ssl=tls, command_packer=_Packer(), **own)  # type: ignore[no-untyped-call]


def check_primary(client: Any) -> None:
    """Check that the server of the last command is the primary. Without Sentinels there is nothing to check.

    A former primary that was suspended or cut off goes on answering as primary for some ten seconds, until Sentinels
    announce the promoted server. Meanwhile the former primary lacks the writes to the promoted server, and its own
    writes will be lost.

    Raises:
        PrimaryUnknown: No Sentinel answers.
        StoreUnavailable: Sentinels name another server as primary; the client uses that server from now on.
    """
    pool = client.connection_pool
    if not isinstance(pool, SentinelConnectionPool):
        return
    address = pool.master_address
    try:
        primary = pool.get_master_address()  # type: ignore[no-untyped-call]
    except redis.RedisError as error:
        raise PrimaryUnknown("no sentinel answers", detail=str(error)) from error
    if primary != address:
        raise StoreUnavailable("redis has another primary", detail="The data of the former primary are out of date.")


def _sentinel_options(server: RedisSettings, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of connections to Sentinels.

    Args:
        server: The settings.
        own: The options of connections to the server. Connections to Sentinels use the same certificates.
    """
    tls = bool(own["ssl"] if server.sentinel_tls is None else server.sentinel_tls)
    who = {"username": server.sentinel_username, "password": server.sentinel_password.get_secret_value()}
    trust = _certificates(server) | {name: value for name, value in own.items() if name.startswith("ssl_")}
    return {
        "socket_timeout": 2,
        "ssl": tls,
        **{name: value for name, value in who.items() if value},
        **(trust if tls else {}),
    }


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    return host, int(port)


def _identity(server: RedisSettings) -> dict[str, str]:
    """Return the user, the password and, for TLS, the certificates. A user or password in the URL takes precedence."""
    given = {"username": server.username, "password": server.password.get_secret_value()}
    known = {name: value for name, value in given.items() if value}
    return known | _certificates(server) if server.url.get_secret_value().startswith("rediss:") else known


def _certificates(server: RedisSettings) -> dict[str, str]:
    """Return the certificate files that the settings name: those of the authorities, and the client's own."""
    files = {"ssl_ca_certs": server.ca_file, "ssl_certfile": server.certificate_file, "ssl_keyfile": server.key_file}
    return {name: str(file) for name, file in files.items() if file}


def eviction_policy(settings: Settings) -> str | None:
    """Return the eviction policy of Redis; ``noeviction`` if its memory has no limit, None if the policy is unknown.

    The policy is read by INFO, because managed servers refuse CONFIG.
    """
    with mapped():
        info = connect(settings).info("memory")
    return info.get("maxmemory_policy") if info.get("maxmemory") != 0 else "noeviction"


class _Packer:
    """Packs commands without the driver's checks of arguments, which are always text, bytes or numbers here."""

    def pack(self, *args: Any) -> list[bytes]:
        """Return a command in Redis's protocol; the command's name may have several words."""
        name, *rest = args
        return [hiredis.pack_command((*name.split(), *rest) if " " in name else args)]
