"""Settings for the identity of a command's sender, and for roles."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

__all__ = ["AuthSettings"]


class AuthSettings(BaseModel):
    """Identity of senders, and roles."""

    mode: Literal["key", "token"] = Field(
        "key", description="how the sender of a command is known: `key`, by the record's key; `token`, by its signature"
    )
    keys: Path | None = Field(
        None, description="keys that verify tokens: a JWKS file, or a folder of public keys NAME.pem"
    )
    roles: dict[str, str] = Field(
        {}, description="the members of each role (JSON): names of subscribers or shell patterns, separated by commas"
    )
    jwks_url: str = Field("", description="URL of a token issuer's keys (JWKS), besides or instead of `keys`")
    issuer: str = Field("", description="the `iss` of tokens signed with keys of `jwks_url`")
    oidc_claim: str = Field(
        "",
        description="claim of ordinary OpenID Connect tokens that names the subscriber, such as `sub`; empty: tokens "
        "without the command's id and its text's hash are refused",
    )
    oidc_subscribers: dict[str, str] = Field(
        {}, description="the subscriber for each value of that claim (JSON); empty: the claim is the subscriber's name"
    )
    operators_by_key: bool = Field(
        default=False,
        description="whether the role `operator` is valid in mode `key`, where a client can claim any "
        "subscriber's name",
    )
    audience: str = Field(
        "",
        description="the `aud` of tokens; empty: the name of the topic of commands. With one audience for "
        "each cluster, a token is not valid on another cluster that trusts the same keys",
    )
    token_seconds: float = Field(3600.0, gt=0, description="longest validity of a token, in seconds")
    skew_seconds: float = Field(
        30.0, ge=0, description="largest difference between the clocks of signers and Kafka, in seconds"
    )
    signing_key: SecretStr = Field(
        SecretStr(""),
        description="key with which `cq` signs statements: a private JWK or PEM, or the path of such a file",
    )
