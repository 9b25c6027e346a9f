"""The documentation's table of settings, made from the settings themselves."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from grouping.settings.secret_files import SUFFIX, secrets
from grouping.settings.settings import Settings

__all__ = ["settings_table", "variables"]


def settings_table() -> str:
    """Return the table, a row per setting: its environment variable, its default, its description.

    Example:
        >>> print(settings_table().splitlines()[2])
        | `CQ_PREFIX` | `cq.` | prefix of the names of the gateway's topics and Redis keys |
    """
    rows = ["| variable | default | |", "|---|---|---|"]
    rows += [f"| `{name}` | {default} | {text} |" for name, default, text in _rows(Settings, "CQ")]
    return "\n".join(rows)


def variables() -> list[str]:
    """Return the environment variables of all settings.

    Example:
        >>> variables()[:2]
        ['CQ_PREFIX', 'CQ_DATA']
    """
    files = [f"CQ_{section}_{name}".upper() + SUFFIX for section, name in secrets(Settings)]
    return [name for name, _, _ in _rows(Settings, "CQ")] + files


def _rows(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        path, default = f"{prefix}_{name.upper()}", field.default
        if isinstance(default, BaseModel):
            yield from _rows(type(default), path)
            continue
        shown = default.get_secret_value() if isinstance(default, SecretStr) else default
        yield path, f"`{shown}`" if shown not in ("", None) else "", field.description or ""
