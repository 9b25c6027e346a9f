"""Finds environment variables that look like settings but are not: mostly misspelt names."""

from __future__ import annotations

from collections.abc import Iterable

from grouping.model.errors import near_name
from grouping.settings.settings_table import variables

__all__ = ["unknown_variables"]

_PREFIX = "CQ_"
_OWN = frozenset(("CQ_DRIVER_PID", "CQ_STATUS_FILE", "CQ_SUPERVISED"))
"""Variables that are not settings: processes of the product set them for other processes."""


def unknown_variables(names: Iterable[str]) -> str | None:
    """Return a line about variables that look like settings but are not; None if there are none.

    Example:
        >>> unknown_variables(["PATH", "CQ_KAFKA_BOOTSTRAP", "CQ_KAFKA_BOOTSRAP"])
        'CQ_KAFKA_BOOTSRAP is not a setting and is ignored. Did you mean "CQ_KAFKA_BOOTSTRAP"?'
    """
    known = {*variables(), *_OWN}
    unknown = sorted(name for name in names if name.upper().startswith(_PREFIX) and name.upper() not in known)
    if not unknown:
        return None
    verb = "is not a setting and is" if len(unknown) == 1 else "are not settings and are"
    fault = f"{' and '.join(unknown)} {verb} ignored."
    hints = dict.fromkeys(hint for name in unknown if (hint := near_name(name, known)))
    return " ".join((fault, *hints))
