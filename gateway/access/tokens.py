"""Checks the tokens of commands.

A token is a JSON Web Token (RFC 7519) that is valid for one subscriber, command id, text and time.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import jwt
import msgspec

from gateway.access.key_url import KeyUrl
from gateway.access.keys import KeyFile
from gateway.sdk.signing import TOKEN_HEADER
from grouping.model.errors import InputError, OperationalError
from grouping.settings.settings import Settings

__all__ = ["OidcRules", "TokenCheck"]

_DAY_SECONDS = 86_400
_HINT = "Make a token for each command, just before it is sent."
_SIGNATURE_ALONE: Any = {"verify_" + claim: False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
"""Options by which PyJWT checks only the signature. PyJWT would compare the token's times with the present, but they
must be compared with the time of the command's record. Therefore `TokenCheck` checks the claims itself."""

_EpochSeconds = Annotated[float, msgspec.Meta(ge=0, le=1 << 53)]
"""Epoch seconds. Numbers above 2^53 are refused, since a float cannot represent them exactly."""


class _Claims(msgspec.Struct, frozen=True):
    aud: str | list[str]
    iat: _EpochSeconds
    exp: _EpochSeconds
    sub: str = ""
    jti: str | None = None
    text_sha256: str | None = None
    nbf: _EpochSeconds | None = None
    iss: str | None = None


class OidcRules(NamedTuple):
    """The rules for ordinary OpenID Connect tokens, which name neither the command nor its text."""

    claim: str
    """The claim that identifies the subscriber, such as `sub`."""
    subscribers: Mapping[str, str]
    """Value of the claim → subscriber; empty if the value of the claim is the subscriber's name itself."""

    def subscriber(self, payload: Mapping[str, Any]) -> str | None:
        """Return the subscriber of a token; None if the token has no subscriber."""
        subject = payload.get(self.claim)
        if not isinstance(subject, str):
            return None
        return self.subscribers.get(subject) if self.subscribers else subject


class TokenCheck:
    """Checks whether the token of a command is valid, and is signed with a key that may sign for the subscriber."""

    def __init__(
        self,
        keys: KeyFile | None,
        audience: str,
        skew_seconds: float,
        longest_seconds: float,
        issuer_keys: KeyUrl | None = None,
        oidc: OidcRules | None = None,
    ) -> None:
        """Take the keys and the rules.

        Args:
            keys: The keys in files; None if there are none.
            audience: The required claim `aud`, so that tokens for other gateways are refused.
            skew_seconds: The largest allowed difference between the clocks of the signer and the broker, in seconds.
            longest_seconds: The longest allowed time from `iat` to `exp`, in seconds.
            issuer_keys: The keys of a JWKS URL; None if there are none.
            oidc: The rules for tokens without `text_sha256`; with None, such tokens are refused.
        """
        self._keys = keys
        self._issuer_keys = issuer_keys
        self._oidc = oidc
        self._audience = audience
        self._skew = skew_seconds
        self._longest = longest_seconds

    @classmethod
    def of(cls, settings: Settings) -> TokenCheck:
        """Return the check that the settings require.

        Raises:
            OperationalError: No keys are given or they cannot be read, or tokens would be valid for longer than command
                ids are remembered.
        """
        auth = settings.auth
        if auth.keys is None and not auth.jwks_url:
            raise OperationalError(
                "CQ_AUTH_MODE is token, and no keys are set", hint="Set CQ_AUTH_KEYS or CQ_AUTH_JWKS_URL."
            )
        if auth.token_seconds + 2 * auth.skew_seconds > settings.commands.remember_days * _DAY_SECONDS:
            raise OperationalError(
                "tokens would be valid for longer than command ids are remembered",
                detail="A command with a valid token, sent again after its id was forgotten, would run again.",
                hint="Lower CQ_AUTH_TOKEN_SECONDS, or raise CQ_COMMANDS_REMEMBER_DAYS.",
            )
        issuer_keys = KeyUrl(auth.jwks_url, auth.issuer) if auth.jwks_url else None
        if issuer_keys is not None:
            issuer_keys.begin()
        return cls(
            KeyFile(auth.keys) if auth.keys is not None else None,
            auth.audience or settings.topics.commands,
            auth.skew_seconds,
            auth.token_seconds,
            issuer_keys,
            OidcRules(auth.oidc_claim, auth.oidc_subscribers) if auth.oidc_claim else None,
        )

    def refresh(self, now_ms: int) -> None:
        """Read changed keys of files again."""
        if self._keys is not None:
            self._keys.refresh(now_ms)

    def refusal(
        self, token: bytes | None, subscriber: str, command_id: str, text: str, at_ms: int
    ) -> InputError | None:
        """Return why a command is refused; None if its token proves that the named subscriber has sent the command.

        Args:
            token: The token; None if the record has none.
            subscriber: The subscriber that the command names.
            command_id: The command's id.
            text: The command's statement.
            at_ms: The time at which Kafka appended the command, epoch milliseconds.
        """
        if token is None:
            return _refusal(
                "The command has no token.",
                f'Sign the command, and send the token in the record header "{TOKEN_HEADER}".',
            )
        payload = self._payload(token, subscriber)
        if payload is None:
            if self._issuer_keys is not None and not self._issuer_keys.fresh:
                return InputError(
                    "the keys of the issuer of tokens cannot be read",
                    code="unavailable",
                    detail="Its JWKS URL does not answer the gateway.",
                    hint="Send the command again.",
                )
            return _refusal(
                "Its token is not signed by a key that may sign for the subscriber.",
                "Sign it with the subscriber's key, and with that key's kid in the token's header.",
            )
        try:
            claims = msgspec.convert(payload, _Claims)
        except ValueError as error:
            return _refusal(f"Its token lacks a required claim, or has a wrong one: {error}.", _HINT)
        fault = self._fault(claims, payload, subscriber, command_id, text) or self._time_fault(claims, at_ms / 1000)
        if fault:
            return _refusal(fault, _HINT)
        return None

    def _payload(self, token: bytes, subscriber: str) -> dict[str, Any] | None:
        """Return the claims of a token; None unless the token is signed with a key that may sign for the subscriber."""
        try:
            key_id = str(jwt.get_unverified_header(token).get("kid"))
            known = self._keys.keys.get(key_id) if self._keys is not None else None
            if known is None and self._issuer_keys is not None:
                known = self._issuer_keys.find(key_id)
            if known is None or not known.speaks_for(subscriber):
                return None
            payload: dict[str, Any] = jwt.decode(
                token, known.key, algorithms=[known.algorithm], options=_SIGNATURE_ALONE
            )
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        return payload if known.issuer in (None, payload.get("iss")) else None

    def _fault(
        self, claims: _Claims, payload: Mapping[str, Any], subscriber: str, command_id: str, text: str
    ) -> str | None:
        audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
        named = {claims.sub} if self._oidc is None else {self._oidc.subscriber(payload)}
        right = {"sub": subscriber in named, "aud": self._audience in audiences}
        if claims.text_sha256 is not None:
            right |= {"jti": claims.jti == command_id, "text_sha256": claims.text_sha256 == _text_hash(text)}
        elif self._oidc is None:
            right["text_sha256"] = False
        wrong = [name for name in ("sub", "jti", "aud", "text_sha256") if not right.get(name, True)]
        return f"Its token does not fit the command; the wrong claims are: {', '.join(wrong)}." if wrong else None

    def _time_fault(self, claims: _Claims, at: float) -> str | None:
        if not 0 < claims.exp - claims.iat <= self._longest:
            return f"Its token is valid for {claims.exp - claims.iat:.0f} s; the limit is {self._longest:.0f} s."
        if max(claims.iat, claims.nbf or 0.0) - self._skew > at:
            return "Its token was not valid yet when Kafka took the command in."
        if claims.exp + self._skew <= at:
            return "Its token had expired when Kafka took the command in."
        return None


def _text_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _refusal(detail: str, hint: str) -> InputError:
    return InputError("the command's token is missing or not valid", code="not-allowed", detail=detail, hint=hint)
