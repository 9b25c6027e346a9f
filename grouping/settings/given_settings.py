"""The settings of a process from its environment, or a one-line error about a wrong setting."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError

from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings

__all__ = ["given_settings"]


def given_settings() -> Settings:
    """Return the settings.

    Raises:
        OperationalError: A value is not JSON or not valid, or the file of a secret cannot be read. The error has
            neither values nor a cause, since both could reveal secrets.
    """
    try:
        return Settings()
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_context=False)[0]
        name = "CQ_" + "_".join(str(part) for part in wrong["loc"]).upper()
        line = f"setting {name} is not valid: {wrong['msg'].lower().removesuffix('.')}"
    except SettingsError:
        line = f"setting {' or '.join(_no_json())} is not valid: it must be a JSON object"
    except UnicodeError:
        line = "the file of a secret is not text in UTF-8"
    except OSError as error:
        line = f'the file of a secret cannot be read: "{error.filename}": {(error.strerror or str(error)).lower()}'
    raise OperationalError(line)


def _no_json() -> Iterator[str]:
    """Yield the names of variables whose values must be JSON, but are not."""
    wanted = set()
    for section, field in Settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            wanted.add(f"CQ_{section}".upper())
            fields = type(field.default).model_fields.items()
            wanted |= {f"CQ_{section}_{name}".upper() for name, inner in fields if isinstance(inner.default, dict)}
    for name, value in os.environ.items():
        if name.upper() in wanted:
            try:
                json.loads(value)
            except ValueError:
                yield name
