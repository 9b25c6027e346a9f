"""The keys for checking tokens, from a JWKS file or a folder of public keys in PEM. Changed files are read again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from grouping.model.errors import OperationalError

__all__ = ["KeyFile", "TokenKey", "issuer_key"]

log = logging.getLogger(__name__)

_SECRET_BYTES = 32
_RSA_BITS = 2048
_LOOK_MS = 1000
_UNUSABLE = (ValueError, TypeError, UnsupportedAlgorithm, jwt.PyJWTError)
"""The errors for a key that cannot be used."""


class TokenKey(NamedTuple):
    """A key with which some subscribers sign their tokens."""

    key: Any
    """The key in PyJWT's form."""
    algorithm: str
    """``HS256``, ``RS256``, ``ES256`` or ``EdDSA``. A token with another algorithm is refused."""
    subscribers: tuple[str, ...]
    """Shell patterns for the names of the subscribers for whom the key may sign."""
    issuer: str | None = None
    """The claim `iss` that tokens signed with the key must have; None accepts any."""

    def speaks_for(self, subscriber: str) -> bool:
        """Tell whether the key may sign a subscriber's commands."""
        return any(fnmatchcase(subscriber, pattern) for pattern in self.subscribers)


class _Jwk(msgspec.Struct, frozen=True):
    kid: str
    kty: str
    alg: str
    subscribers: tuple[str, ...] = ()
    iss: str | None = None
    k: str | None = None
    d: str | None = None


class _Jwks(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


_ASSUMED = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}
"""`kty` of an issuer's key without `alg` → its algorithm. HS256 is missing, since a public key set has no secrets."""
_KINDS = {"HS256": "oct", "RS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}


class KeyFile:
    """The keys in a file or a folder, as of the last `refresh`."""

    def __init__(self, path: Path) -> None:
        """Read the keys.

        Args:
            path: A JWKS file, or a folder of files `NAME.pem`. Such a file is the public key of the subscriber `NAME`.

        Raises:
            OperationalError: The keys cannot be read, or a key cannot be used for tokens.
        """
        self._path = path
        self._looked_ms = 0
        self._state = self._stamp()
        self.keys, faults = _read(path)
        """Key id (`kid`) → key."""
        if faults:
            raise OperationalError(
                f'the keys of tokens in "{path}" cannot be read',
                detail=faults[0],
                hint="CQ_AUTH_KEYS is a JWKS file, or a folder of public keys NAME.pem.",
            )

    def refresh(self, now_ms: int) -> None:
        """Read the keys again if a file has changed; this is checked at most once a second.

        If a key cannot be read any more, its earlier value is no longer used, since the key may have been revoked. If a
        JWKS file cannot be read at all, no keys are left.

        Args:
            now_ms: The present, epoch milliseconds.
        """
        if 0 <= now_ms - self._looked_ms < _LOOK_MS:
            return
        self._looked_ms = now_ms
        if (state := self._stamp()) == self._state:
            return
        self._state = state
        self.keys, faults = _read(self._path)
        for fault in faults:
            log.error("a key for tokens cannot be read and is no longer used", extra={"reason": fault})
        log.info("the keys of tokens were read again", extra={"keys": len(self.keys)})

    def _stamp(self) -> tuple[tuple[str, int, int], ...]:
        return tuple(_stamps(self._path))


def _stamps(path: Path) -> Iterator[tuple[str, int, int]]:
    try:
        for file in sorted(path.glob("*.pem")) if path.is_dir() else (path,):
            status = file.stat()
            yield file.name, status.st_mtime_ns, status.st_size
    except OSError:
        yield "", 0, 0


def _read(path: Path) -> tuple[dict[str, TokenKey], list[str]]:
    """Return key id → key, for the keys that can be read, and messages about the other keys."""
    keys: dict[str, TokenKey] = {}
    faults: list[str] = []
    try:
        if path.is_dir():
            readers = [partial(_of_pem_file, file) for file in sorted(path.glob("*.pem"))]
        else:
            readers = [partial(_of_jwk, each) for each in msgspec.json.decode(path.read_bytes(), type=_Jwks).keys]
    except (OSError, ValueError, RecursionError) as error:
        return keys, [str(error)]
    for read in readers:
        try:
            key_id, key = read()
        except (OSError, *_UNUSABLE) as error:
            faults.append(str(error))
        else:
            keys[key_id] = key
    return keys, faults


def issuer_key(fields: dict[str, Any], issuer: str) -> tuple[str, TokenKey] | None:
    """Return a public key of an issuer's key set. The key may sign for any subscriber.

    Args:
        fields: The JWK, in which `alg` may be missing.
        issuer: The claim `iss` that tokens signed with the key must have.

    Returns:
        The key id and the key; None if the JWK cannot be read, is private, is not for signatures, or has an
            unknown algorithm.
    """
    algorithm = fields.get("alg") or _ASSUMED.get(str(fields.get("kty")))
    if fields.get("use", "sig") != "sig" or algorithm not in _ASSUMED.values() or "d" in fields:
        return None
    try:
        key_id, key = _of_jwk({**fields, "alg": algorithm, "subscribers": ["*"], "iss": issuer})
    except _UNUSABLE:
        return None
    return key_id, key


def _of_pem_file(file: Path) -> tuple[str, TokenKey]:
    return file.stem, _of_pem(file.stem, file.read_bytes())


def _of_jwk(fields: dict[str, Any]) -> tuple[str, TokenKey]:
    jwk = msgspec.convert(fields, _Jwk)
    if _KINDS.get(jwk.alg) != jwk.kty:
        raise ValueError(f'key "{jwk.kid}" has alg {jwk.alg} and kty {jwk.kty}; alg is one of {", ".join(_KINDS)}')
    if jwk.d is not None:
        raise ValueError(f'key "{jwk.kid}" is a private key; its public part belongs here')
    key = jwt.PyJWK.from_dict(fields, jwk.alg).key
    if jwk.kty == "oct":
        if len(key) < _SECRET_BYTES:
            raise ValueError(f'key "{jwk.kid}" has {len(key)} bytes; a secret needs {_SECRET_BYTES}')
    elif _algorithm(key, jwk.kid) != jwk.alg:
        raise ValueError(f'key "{jwk.kid}" is not a key for {jwk.alg}')
    return jwk.kid, TokenKey(key, jwk.alg, jwk.subscribers or (_literal(jwk.kid),), jwk.iss)


def _of_pem(name: str, text: bytes) -> TokenKey:
    try:
        key = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f'"{name}.pem" is not a public key') from error
    return TokenKey(key, _algorithm(key, name), (_literal(name),))


def _algorithm(key: object, name: str) -> str:
    match key:
        case RSAPublicKey() if key.key_size >= _RSA_BITS:
            return "RS256"
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            return "ES256"
        case Ed25519PublicKey():
            return "EdDSA"
    raise ValueError(f'key "{name}" is neither RSA with {_RSA_BITS} bits, nor EC P-256, nor Ed25519')


def _literal(name: str) -> str:
    """Return the shell pattern that matches only this name."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in name)
