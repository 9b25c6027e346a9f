"""Secrets from files: the variable of a secret setting, with ``_FILE`` appended, names the file with the secret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

__all__ = ["SUFFIX", "SecretFiles", "secrets"]

SUFFIX = "_FILE"


class SecretFiles(PydanticBaseSettingsSource):
    """A source of settings. A variable of the environment that holds the secret itself takes precedence."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return nothing, since `__call__` reads all secrets of all sections."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the secrets for which the environment names files, by section and name.

        Raises:
            OSError: A file cannot be read.
        """
        found: dict[str, dict[str, str]] = {}
        for section, name in secrets(self.settings_cls):
            if file := os.environ.get(f"CQ_{section}_{name}".upper() + SUFFIX):
                # Editors and `echo` add a line end at the end of a file. This line end is not part of the secret.
                found.setdefault(section, {})[name] = Path(file).read_text("utf-8").rstrip("\r\n")
        return found


def secrets(settings: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the section and name of each secret setting."""
    for section, field in settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            for name, inner in type(field.default).model_fields.items():
                if inner.annotation is SecretStr:
                    yield section, name
