"""The schema registries that streams may name, with their logins: the setting CQ_STREAMS_REGISTRIES."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from grouping.settings.settings import Settings

__all__ = ["allowed_registries", "login_of", "registry_url"]


def registry_url(text: str) -> str | None:
    """Return the URL of a registry in canonical form, without a login; None if the text is not a URL of a registry.

    Example:
        >>> registry_url("HTTP://ann:secret@Registry:8081/"), registry_url("file:///etc/passwd")
        ('http://registry:8081', None)
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        return None
    if not text.isascii() or any(character <= " " for character in text):
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return urlunsplit((parts.scheme, host if port is None else f"{host}:{port}", parts.path.rstrip("/"), "", ""))


def allowed_registries(settings: Settings) -> dict[str, str]:
    """Return the login of each allowed registry, by URL: ``user:password``, or "" without a login."""
    given = settings.streams.registries.get_secret_value().split(",")
    known = {registry_url(each.strip()): each.strip() for each in given}
    return {url: urlsplit(text).netloc.rpartition("@")[0] for url, text in known.items() if url is not None}


def login_of(settings: Settings, url: str) -> str:
    """Return the login for a registry, percent-encoded as in a URL; "" without a login."""
    return allowed_registries(settings).get(url, "")
