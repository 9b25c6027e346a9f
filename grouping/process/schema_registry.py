"""Gets schemas by their ids from a schema registry, by GET /schemas/ids/<id>."""

from __future__ import annotations

import http.client
import json
import ssl
from base64 import b64encode
from contextlib import suppress
from socket import SHUT_RDWR, create_connection, socket
from threading import Event, Timer
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from grouping.model.errors import OperationalError
from schemas.avro_columns import AvroMismatch
from schemas.avro_writers import read_writers

__all__ = ["SchemaAway", "SchemaRegistry"]

_SECONDS = 2.0
"""The longest time to wait for an answer, in seconds. The time is short, since a waiting task occupies a core."""
_MOST_BYTES = 1 << 18
"""The largest accepted size of an answer, in bytes."""
_NO_SUCH_SCHEMA = 40403
"""The error code of registries for an unknown id. A 404 without this code may come from a proxy or a wrong path."""
_JSON = "application/vnd.schemaregistry.v1+json, application/json"


class SchemaAway(OperationalError):
    """A registry does not answer, or answers wrongly. The records that need the schema must wait."""


class SchemaRegistry:
    """Asks a registry for schemas. Redirects are not followed: a registry must not choose which hosts are asked."""

    def __init__(self, url: str, login: str = "") -> None:
        """Note the registry, without a request.

        Args:
            url: The registry, without a login.
            login: ``user:password``, percent-encoded as in a URL; empty for none.
        """
        self._url = url
        self._parts = urlsplit(url)
        self._headers = {"Accept": _JSON}
        if login:
            self._headers["Authorization"] = f"Basic {b64encode(unquote(login).encode()).decode()}"

    def schema(self, schema_id: int) -> str | None:
        """Return the schema of an id.

        Returns:
            The JSON of the schema. If the schema cannot be used, the result is the JSON of a sentence with the reason.
            None if the registry does not know the id.

        Raises:
            SchemaAway: The registry does not answer, or the answer does not have the form of a registry's answer.
        """
        try:
            status, body = self._get(f"{self._parts.path}/schemas/ids/{schema_id}")
        except (OSError, ValueError) as error:
            raise self._away(schema_id, f"{type(error).__name__}: {str(error)[:200]}") from None
        except http.client.HTTPException as error:  # its text quotes the answer, which may have any bytes
            raise self._away(schema_id, f"its answer is not complete HTTP ({type(error).__name__})") from None
        try:
            answer = msgspec.json.decode(body, type=dict[str, Any])
            if status == http.client.NOT_FOUND and answer.get("error_code") == _NO_SUCH_SCHEMA:
                return None
            if status != http.client.OK:
                raise self._away(schema_id, f"its answer has the status {status}")
            return _written_schema(schema_id, answer)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            reason = f"its answer has the status {status} and no JSON of a schema"
            raise self._away(schema_id, reason) from None

    def _away(self, schema_id: int, reason: str) -> SchemaAway:
        return SchemaAway(f'registry "{self._url}" does not give schema {schema_id}: {reason}')

    def _get(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        host, is_safe = self._parts.hostname or "", self._parts.scheme == "https"
        connected = create_connection((host, self._parts.port or (443 if is_safe else 80)), _SECONDS)
        # The socket's timeout applies to each single read. A registry may send its bytes one by one, so a timer ends
        # the connection.
        late, second = Event(), connected.dup()
        timer = Timer(_SECONDS, _end, (second, late))
        timer.daemon = True
        timer.start()
        connection = http.client.HTTPConnection(host, self._parts.port)
        connection.sock = connected
        try:
            if is_safe:
                connection.sock = ssl.create_default_context().wrap_socket(connected, server_hostname=host)
            connection.request("GET", path, headers=self._headers)
            with connection.getresponse() as answer:
                status, body = answer.status, answer.read(_MOST_BYTES + 1)
        except (OSError, http.client.HTTPException, ValueError):
            if not late.is_set():
                raise
        finally:
            timer.cancel()
            connection.close()
            second.close()
        if late.is_set():
            raise TimeoutError(f"no complete answer within {_SECONDS:g} seconds")
        if len(body) > _MOST_BYTES:
            raise ValueError(f"the answer is longer than {_MOST_BYTES} bytes")
        return status, body


def _end(connected: socket, late: Event) -> None:
    """Close a connection that another thread reads from."""
    late.set()
    with suppress(OSError):
        connected.shutdown(SHUT_RDWR)


def _written_schema(schema_id: int, answer: dict[str, Any]) -> str:
    """Return the JSON of the schema in an answer, or of the reason why it cannot be used.

    Raises:
        DecodeError: The answer has another form than a registry's.
    """
    kind, text = answer.get("schemaType", "AVRO"), answer.get("schema")
    if kind != "AVRO":
        return json.dumps(f"The schema with id {schema_id} is not of Avro: the registry has it as {str(kind)[:20]}.")
    if answer.get("references"):
        return json.dumps(f"The schema with id {schema_id} refers to other schemas, which are not read.")
    if not isinstance(text, str):
        raise msgspec.DecodeError("no schema")
    try:
        read_writers(f'{{"{schema_id}": {text}}}')
    except AvroMismatch as error:
        return json.dumps(f"The schema with id {schema_id} cannot be read: {error.detail}")
    return text
