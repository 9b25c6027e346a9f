"""Tokens that prove who sent a command, for gateways that require tokens. The SDK needs PyJWT (the extra `token`)."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from gateway.sdk.errors import SigningUnavailable

__all__ = ["TOKEN_HEADER", "SigningKey"]

TOKEN_HEADER = "cq_token"
"""The header that carries the token in the record of a command."""

_VALID_SECONDS = 600
"""How long a token is valid. Each sending has a new token, and librdkafka gives up a record after five minutes."""
_ALGORITHMS = {"oct": "HS256", "RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}
_OF_PEM = {"RSA": "RS256", "EC": "ES256", "Ed25519": "EdDSA"}


class _PrivateJwk(msgspec.Struct, frozen=True):
    kty: str
    kid: str | None = None
    iss: str | None = None


class SigningKey:
    """A key that signs commands.

    Example:
        >>> SigningKey('{"kty": "oct", "kid": "alice", "k": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE"}')
        SigningKey(HS256, kid='alice')
    """

    def __init__(self, key: str | Path, *, audience: str | None = None, clock: Callable[[], float] = time.time) -> None:
        """Read the key.

        Args:
            key: A private JWK as JSON, a private key in PEM, or the path of a file with one of them. A JWK may have a
                `kid` (default: the subscriber's name), and an `iss`, which becomes the issuer of the tokens.
            audience: The audience of the tokens, which must equal the gateway's setting `CQ_AUTH_AUDIENCE`. None stands
                for the topic of commands, which is the gateway's default too.
            clock: Returns the present, epoch seconds.

        Raises:
            SigningUnavailable: PyJWT is not installed, or the text is not a key.
        """
        text = key if isinstance(key, str) and key.lstrip().startswith(("{", "-----BEGIN")) else _file(Path(key))
        self._key, self._algorithm, self._kid, self._issuer = _parsed(text)
        self._audience = audience
        self._clock = clock

    def __repr__(self) -> str:
        """Show the key's algorithm and id, never the key itself."""
        return f"SigningKey({self._algorithm}, kid={self._kid!r})"

    def token(self, topic: str, subscriber: str, command_id: str, text: str) -> bytes:
        """Return the token of a command, which is valid for ten minutes from now.

        Args:
            topic: The topic of commands.
            subscriber: The sender.
            command_id: The command's id.
            text: The command's statement.
        """
        import jwt

        now = int(self._clock())
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        claims: dict[str, Any] = {
            "sub": subscriber,
            "jti": command_id,
            "aud": topic if self._audience is None else self._audience,
            "text_sha256": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "iat": now,
            "exp": now + _VALID_SECONDS,
        }
        if self._issuer is not None:
            claims["iss"] = self._issuer
        headers = {"kid": subscriber if self._kid is None else self._kid}
        token: str = jwt.encode(claims, self._key, self._algorithm, headers)
        return token.encode()


def _file(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise SigningUnavailable(f'the signing key "{path}" cannot be read', detail=f"{error}") from None


def _parsed(text: str) -> tuple[Any, str, str | None, str | None]:
    """Return a key in the form that PyJWT takes, with its algorithm, its id and its issuer."""
    try:
        import jwt
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise SigningUnavailable(
            "commands cannot be signed: PyJWT is not installed", hint='Install it: pip install "cq-gateway[token]".'
        ) from error
    try:
        if text.lstrip().startswith("{"):
            jwk = msgspec.json.decode(text, type=_PrivateJwk)
            algorithm = _ALGORITHMS[jwk.kty]
            return jwt.PyJWK.from_dict(msgspec.json.decode(text), algorithm).key, algorithm, jwk.kid, jwk.iss
        key = load_pem_private_key(text.encode(), None)
        [algorithm] = [name for kind, name in _OF_PEM.items() if type(key).__name__.startswith(kind)]
        return key, algorithm, None, None
    except (ValueError, TypeError, KeyError, jwt.PyJWTError):
        # The text of the error may repeat parts of the secret key, so it is left out.
        raise SigningUnavailable(
            "the signing key cannot be read as a key", hint="Give a private JWK, or an unencrypted private key in PEM."
        ) from None
