"""The replacement text of regexp_replace, by Java's rules.

``$1`` is a group; a backslash quotes the next character.
"""

from __future__ import annotations

from grouping.model.errors import InputError

__all__ = ["check_replacement", "rust_replacement"]


def check_replacement(text: str) -> None:
    """Check that Java accepts a replacement.

    Raises:
        InputError: ``unsupported-query``.
    """
    _parts(text)


def rust_replacement(text: str, groups: int) -> str | None:
    r"""Return a replacement for Rust's engine over the groups of `patterns.Groups`; None if it names a missing group.

    As in Java, a further digit belongs to the number only if a group with the longer number exists.

    Example:
        >>> rust_replacement("$12-\\$", 1)
        '${2}2-$$'
    """
    written = ""
    for part in _parts(text):
        if part[0] != "$":
            written += part[1:].replace("$", "$$")
            continue
        taken = 1
        if int(part[1]) > groups:
            return None
        while taken < len(part) - 1 and int(part[1 : taken + 2]) <= groups:
            taken += 1
        written += f"${{{int(part[1 : taken + 1]) + 1}}}{part[taken + 1 :]}"
    return written


def _parts(text: str) -> list[str]:
    """Return the parts: ``$`` and its digits, or ``=`` and a plain character or text."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\":
            if at == len(text):
                raise _refused(text, "The replacement ends in a backslash.")
            parts.append("=" + text[at])
            at += 1
        elif character == "$":
            end = at
            while end < len(text) and text[end] in "0123456789":
                end += 1
            if end == at:
                raise _refused(text, 'A "$" in it is not followed by a number.')
            parts.append("$" + text[at:end])
            at = end
        else:
            parts.append("=" + character)
    return parts


def _refused(text: str, detail: str) -> InputError:
    return InputError(
        f'replacement "{text[:60]}" is not supported',
        code="unsupported-query",
        detail=detail,
        hint="Write \\$ for a dollar and \\\\ for a backslash.",
    )
