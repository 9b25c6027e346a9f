"""Further options of a client. A dump of the settings masks their values, which may be secrets."""

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
"""Further options of a client, by name. A dump of the settings has the values as `SecretStr`, since they may be
secrets; settings can be made from the dump. A setting of this type also needs ``repr=False``.
"""
