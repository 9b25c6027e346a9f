"""Tokens by which a worker's producer logs in to Kafka: OAuth 2 client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping

from aiokafka.abc import AbstractTokenProvider

from grouping.model.errors import OperationalError

__all__ = ["ClientCredentials"]

_TIMEOUT_SECONDS = 10.0
_FRESH = 0.8
"""Another token is requested when this part of a token's lifetime has passed."""


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Gives the producer a token, and requests a new token before the old token expires."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the endpoint, the client and the scope from librdkafka's options."""
        of = {name.removeprefix("sasl.oauthbearer."): value for name, value in options.items()}
        self._url, scope = of["token.endpoint.url"], of.get("scope")
        client, secret = (urllib.parse.quote_plus(of.get(name, "")) for name in ("client.id", "client.secret"))
        self._header = {"Authorization": "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode()}
        fields = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
        self._body = urllib.parse.urlencode(fields).encode()
        self._token, self._until = "", 0.0

    async def token(self) -> str:
        """Return a token that is valid now.

        Raises:
            OperationalError: The endpoint does not answer, refuses the request, or answers without a token.
        """
        if time.monotonic() >= self._until:
            try:
                await asyncio.to_thread(self._ask)
            except (OSError, ValueError, KeyError, TypeError) as error:
                # The request and the answer may hold secrets; an error of the network or of HTTP does not.
                why = f": {error}" if isinstance(error, OSError) else ", but no token"
                raise OperationalError(f'the token endpoint "{self._url}" gives no answer{why}') from None
        return self._token

    def _ask(self) -> None:
        asked_at = time.monotonic()
        request = urllib.request.Request(self._url, self._body, self._header)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            response = json.load(answer)
        self._token = response["access_token"]
        self._until = asked_at + _FRESH * float(response.get("expires_in", 0))
