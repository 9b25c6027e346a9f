"""Further options of a client, some of which are secrets: a dump of settings masks them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, SecretStr

__all__ = ["Options"]


def _shown(options: dict[str, str]) -> dict[str, SecretStr]:
    return {name: SecretStr(value) for name, value in options.items()}


def _read(options: object) -> object:
    if not isinstance(options, dict):
        return options
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in options.items()
    }


Options = Annotated[dict[str, str], BeforeValidator(_read), PlainSerializer(_shown)]
"""Further options of a client: some are secrets, so a dump shows none, and is read again as it was.

That they are in no repr is said beside each.
"""
