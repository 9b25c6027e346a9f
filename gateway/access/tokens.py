"""Tokens of commands: a JSON Web Token (RFC 7519) that binds a subscriber, a command id, a text and a time."""

from __future__ import annotations

import base64
import hashlib
from typing import Annotated, Any

import jwt
import msgspec

from gateway.access.keys import KeyFile
from gateway.sdk.signing import TOKEN_HEADER
from grouping.model.errors import InputError, OperationalError
from grouping.settings.settings import Settings

__all__ = ["TokenCheck"]

_DAY_SECONDS = 86_400
_SIGNATURE_ALONE: Any = {"verify_" + claim: False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
"""Claims are ours to check: the library would take the present time, not the record's."""

_Instant = Annotated[float, msgspec.Meta(ge=0, le=1 << 53)]
"""Epoch seconds; a number beyond could not be compared."""


class _Claims(msgspec.Struct, frozen=True):
    sub: str
    jti: str
    aud: str
    text_sha256: str
    iat: _Instant
    exp: _Instant
    iss: str | None = None


class TokenCheck:
    """Tells whether a command is signed by a key that may speak for its subscriber."""

    def __init__(self, keys: KeyFile, audience: str, skew_seconds: float, longest_seconds: float) -> None:
        """Take what tokens are compared with.

        Args:
            keys: The keys.
            audience: The `aud` of tokens, so that no other gateway's will do.
            skew_seconds: By how much the clocks of signer and broker may differ.
            longest_seconds: How long a token may be valid.
        """
        self._keys = keys
        self._audience = audience
        self._skew = skew_seconds
        self._longest = longest_seconds

    @classmethod
    def of(cls, settings: Settings) -> TokenCheck:
        """Return the check that the settings ask for.

        Raises:
            OperationalError: The keys cannot be read, or tokens would be valid for longer than ids are remembered.
        """
        auth = settings.auth
        if auth.keys is None:
            raise OperationalError("tokens are asked for, and no keys are given", hint="Set CQ_AUTH_KEYS.")
        if auth.token_seconds + 2 * auth.skew_seconds > settings.commands.remember_days * _DAY_SECONDS:
            raise OperationalError(
                "tokens would be valid for longer than command ids are remembered",
                detail="A token that is sent again after that would be carried out again.",
                hint="Lower CQ_AUTH_TOKEN_SECONDS, or raise CQ_COMMANDS_REMEMBER_DAYS.",
            )
        return cls(KeyFile(auth.keys), auth.audience or settings.topics.commands, auth.skew_seconds, auth.token_seconds)

    def refresh(self, now_ms: int) -> None:
        """Read the keys again where they have changed."""
        self._keys.refresh(now_ms)

    def refusal(
        self, token: bytes | None, subscriber: str, command_id: str, text: str, at_ms: int
    ) -> InputError | None:
        """Return why a command is refused, None where it is the subscriber's.

        Args:
            token: As it came; None where there was none.
            subscriber: Whose command it says it is.
            command_id: Its id.
            text: Its statement.
            at_ms: When Kafka took it in, epoch milliseconds.
        """
        if token is None:
            return _refusal("It has no token.", f'Sign it, and send the token in the record header "{TOKEN_HEADER}".')
        claims = self._claims(token, subscriber)
        if claims is None:
            return _refusal(
                "Its token is not signed by a key that may speak for the subscriber.",
                "Sign it with the subscriber's key, and with that key's kid in the token's header.",
            )
        if fault := self._fault(claims, subscriber, command_id, text) or self._time_fault(claims, at_ms / 1000):
            return _refusal(fault, "Make a token for each command, just before it is sent.")
        return None

    def _claims(self, token: bytes, subscriber: str) -> _Claims | None:
        """Return what a token says, None where no key that may speak for the subscriber has signed it."""
        try:
            known = self._keys.keys.get(str(jwt.get_unverified_header(token).get("kid")))
            if known is None or not known.speaks_for(subscriber):
                return None
            said = jwt.decode(token, known.key, algorithms=[known.algorithm], options=_SIGNATURE_ALONE)
            claims = msgspec.convert(said, _Claims)
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        return claims if known.issuer in (None, claims.iss) else None

    def _fault(self, claims: _Claims, subscriber: str, command_id: str, text: str) -> str | None:
        bound = {
            "sub": (claims.sub, subscriber),
            "jti": (claims.jti, command_id),
            "aud": (claims.aud, self._audience),
            "text_sha256": (claims.text_sha256, _text_hash(text)),
        }
        wrong = [name for name, (said, wanted) in bound.items() if said != wanted]
        return f"Its token is of another command: {', '.join(wrong)}." if wrong else None

    def _time_fault(self, claims: _Claims, at: float) -> str | None:
        if not 0 < claims.exp - claims.iat <= self._longest:
            return f"Its token is valid for {claims.exp - claims.iat:.0f} s; it may be for {self._longest:.0f} s."
        if claims.iat - self._skew > at:
            return "Its token was issued after Kafka took the command in."
        if claims.exp + self._skew <= at:
            return "Its token had expired when Kafka took the command in."
        return None


def _text_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _refusal(detail: str, hint: str) -> InputError:
    return InputError("the command is not signed as it must be", code="not-allowed", detail=detail, hint=hint)
