"""Reads an issuer's public keys for tokens from its JWKS URL, in a thread, so that no command waits for the issuer."""

from __future__ import annotations

import http.client
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.access.keys import TokenKey, issuer_key
from grouping.model.errors import OperationalError

__all__ = ["KeyUrl"]

log = logging.getLogger(__name__)

_EVERY_SECONDS = 300.0
"""The time from a successful reading to the next reading."""
_AGAIN_SECONDS = 10.0
"""The time from a failed reading to the next one, and the shortest time between two readings for unknown key ids."""
_KEPT_SECONDS = 3600.0
"""How long keys stay in use while the issuer does not answer. During this time, a revoked key is still accepted."""
_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class KeyUrl:
    """The public keys by their ids, from the issuer's last answer."""

    def __init__(self, url: str, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without keys; `begin` reads them.

        Args:
            url: The URL of the issuer's JWKS.
            issuer: The claim `iss` that tokens signed with these keys must have.
            clock: Monotonic seconds.

        Raises:
            OperationalError: The URL does not begin with https:// (or http:// for the loopback address), or the issuer
                is missing.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise OperationalError("the JWKS URL must begin with https://", hint="Set CQ_AUTH_JWKS_URL.")
        if not issuer:
            raise OperationalError("a JWKS URL needs the issuer of its tokens", hint="Set CQ_AUTH_ISSUER.")
        self._url = url
        self._issuer = issuer
        self._clock = clock
        self._keys: Mapping[str, TokenKey] = {}
        self._read_at: float | None = None
        self._wanted = threading.Event()

    def begin(self) -> None:
        """Read the keys now and periodically, in a thread that ends with the process."""
        threading.Thread(target=self._read_for_ever, name="jwks", daemon=True).start()

    @property
    def fresh(self) -> bool:
        """Whether the issuer's last answer is recent enough for its keys to be used."""
        return self._read_at is not None and self._clock() - self._read_at < _KEPT_SECONDS

    def find(self, key_id: str) -> TokenKey | None:
        """Return the key with an id; None if the id is unknown or all keys are too old.

        After None, the thread soon reads the keys again.
        """
        found = self._keys.get(key_id) if self.fresh else None
        if found is None:
            self._wanted.set()
        return found

    def read(self) -> None:
        """Read the keys once. If the key set cannot be read, the known keys stay.

        Raises:
            OSError: The issuer does not answer.
            HTTPException: The answer is not complete HTTP.
            ValueError: The answer is not a key set.
            RecursionError: The answer is nested too deeply.
        """
        with urllib.request.urlopen(self._url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - https, as checked
            body = answer.read(_MOST_BYTES)
        fields: list[dict[str, Any]] = msgspec.json.decode(body, type=dict[str, Any]).get("keys", [])
        if not isinstance(fields, list):
            raise ValueError("the answer has no list of keys")
        keys = (issuer_key(each, self._issuer) for each in fields if isinstance(each, dict))
        self._keys = {key_id: key for key_id, key in filter(None, keys)}
        self._read_at = self._clock()

    def read_or_log(self) -> float:
        """Read the keys once, or log why they cannot be read; return the seconds until the next reading."""
        try:
            self.read()
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            # The text of an HTTPException quotes the answer, which may have any bytes.
            log.warning("the issuer's keys cannot be read", extra={"reason": repr(error)})
            return _AGAIN_SECONDS
        return _EVERY_SECONDS

    def _read_for_ever(self) -> None:
        while True:
            rest = self.read_or_log()
            self._wanted.clear()
            time.sleep(min(rest, _AGAIN_SECONDS))
            self._wanted.wait(max(rest - _AGAIN_SECONDS, 0.0))
