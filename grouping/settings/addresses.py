"""Checks of server addresses. No error contains a part of an address, since an address may contain a password."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

__all__ = ["check_redis_url", "check_servers"]

_SERVER = re.compile(r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(?:\[([\da-fA-F:.%]+)\]|([^\s:/@\[\]]+)):(\d+)")
_HIGHEST_PORT = 65_535


def check_servers(text: str) -> str:
    """Return a list of servers (HOST:PORT, with commas between) unchanged, if it is valid.

    Example:
        >>> check_servers("broker-1:9092,[::1]:9092")
        'broker-1:9092,[::1]:9092'

    Raises:
        ValueError: A server is not HOST:PORT.
    """
    for place, server in enumerate(text.split(","), 1):
        found = _SERVER.fullmatch(server.strip())
        if found is None or not 0 < int(found[3]) <= _HIGHEST_PORT or not _is_host(found[1] or found[2]):
            raise ValueError(f"server {place} of the list is not HOST:PORT")
    return text


def check_redis_url(text: str) -> str:
    """Return the URL of a Redis server unchanged, if it is valid.

    Example:
        >>> check_redis_url("rediss://user:secret@cache:6379/0")
        'rediss://user:secret@cache:6379/0'

    Raises:
        ValueError: The URL cannot be read.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(f"its host or port cannot be read{_ENCODED}") from None
    if url.scheme not in ("redis", "rediss", "unix"):
        raise ValueError("it does not begin with redis://, rediss:// or unix://")
    if url.scheme != "unix" and url.path.strip("/") and not url.path.strip("/").isdecimal():
        raise ValueError("its path is not the number of a database")
    if url.fragment or port == 0 or not _is_host(url.hostname or "localhost"):
        raise ValueError(f"its host or port cannot be read{_ENCODED}")
    return text


_ENCODED = ' (in a password, "#", "/", "?", "@" and "%" are %23, %2F, %3F, %40 and %25)'


def _is_host(name: str) -> bool:
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False
