"""Settings for the identity of a command's sender, and for roles."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

__all__ = ["AuthSettings"]


class AuthSettings(BaseModel):
    """Who is who."""

    mode: Literal["key", "token"] = Field(
        "key", description="who a command is from: `key`, whoever its record's key names; `token`, who signed it"
    )
    keys: Path | None = Field(None, description="keys of tokens: a JWKS file, or a folder of public keys NAME.pem")
    roles: dict[str, str] = Field(
        {}, description="roles and who is in them (JSON): names of subscribers or shell patterns, with commas between"
    )
    jwks_url: str = Field("", description="where an issuer of tokens has its keys (JWKS), beside or instead of `keys`")
    issuer: str = Field("", description="the `iss` of tokens that are signed with keys of `jwks_url`")
    oidc_claim: str = Field(
        "",
        description="claim of ordinary OpenID Connect tokens that names the subscriber, such as `sub`; empty: tokens "
        "without the command's id and its text's hash are refused",
    )
    oidc_subscribers: dict[str, str] = Field(
        {}, description="the subscriber by the value of that claim (JSON); empty: the claim is the subscriber's name"
    )
    operators_by_key: bool = Field(
        default=False,
        description="whether the role `operator` counts in mode `key`, where everybody can claim any subscriber's name",
    )
    audience: str = Field(
        "",
        description="whom tokens are for, their `aud`; empty: the topic of commands. With a name for each cluster no "
        "token is valid on another one that trusts the same keys",
    )
    token_seconds: float = Field(3600.0, gt=0, description="how long a token may be valid")
    skew_seconds: float = Field(30.0, ge=0, description="by how much the clocks of signers and Kafka may differ")
    signing_key: SecretStr = Field(
        SecretStr(""),
        description="key with which `cq` signs statements: a private JWK or PEM, or the path of its file",
    )
