"""Parts of URLs as Spark's parse_url finds them, with java.net.URI: RFC 2396 and the extensions in its Javadoc."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple

__all__ = ["part_of_url"]

_UNRESERVED = r"A-Za-z0-9_\-!.~'()*"
_MORE = "%[0-9A-Fa-f]{2}|[^\x00-\x80]"
"""An escape, or a character outside of ASCII; characters that `_hidden` finds are refused afterwards."""
_URIC = re.compile(rf"(?:[{_UNRESERVED};/?:@&=+$,\[\]]|{_MORE})*")
_PATH = re.compile(rf"(?:[{_UNRESERVED}:@&=+$,;/]|{_MORE})*")
_REGISTRY = re.compile(rf"(?:[{_UNRESERVED}$,;:@&=+]|{_MORE})*")
_USER = re.compile(rf"(?:[{_UNRESERVED};:&=+$,]|{_MORE})*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|0*[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_BYTE}(?:\.{_BYTE}){{3}}")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*(?:{_LABEL})\.?")
_PORT = re.compile(r"(?::[0-9]*)?")
_MOST_PORT = 2**31 - 1


class _Url(NamedTuple):
    scheme: str | None = None
    authority: str | None = None
    user: str | None = None
    host: str | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None


class _NoUrlError(ValueError):
    """Java refuses the text as a URI."""


def part_of_url(text: str, part: str, key: str | None = None) -> str | None:
    """Return a part of a URL; with `key`, the first value that the URL's query gives to this key.

    The result is None if the URL has no such part, or if the text is not a URL.


    Example:
        >>> url = "https://ann@spark.apache.org:443/a/b?q=1&p=x#top"
        >>> [part_of_url(url, part) for part in ("HOST", "FILE", "USERINFO", "REF")]
        ['spark.apache.org', '/a/b?q=1&p=x', 'ann', 'top']
        >>> part_of_url(url, "QUERY", "p")
        'x'
    """
    try:
        url = _read(text)
    except _NoUrlError:
        return None
    if key is not None:
        found = re.search(f"(?:&|^){key}=([^&]*)", url.query) if part == "QUERY" and url.query is not None else None
        return found[1] if found else None
    match part:
        case "FILE":
            return url.path if url.query is None or url.path is None else f"{url.path}?{url.query}"
        case "HOST":
            return url.host
        case "PATH":
            return url.path
        case "QUERY":
            return url.query
        case "REF":
            return url.fragment
        case "PROTOCOL":
            return url.scheme
        case "AUTHORITY":
            return url.authority
        case "USERINFO":
            return url.user
    return None


def _read(text: str) -> _Url:
    body, sharp, fragment = text.partition("#")
    _check(_URIC, fragment)
    colon, other = body.find(":"), re.search("[/?]", body)
    url = _Url(fragment=fragment if sharp else None)
    if colon >= 0 and (other is None or colon < other.start()):
        _check(_SCHEME, body[:colon])
        url, body = url._replace(scheme=body[:colon]), body[colon + 1 :]
        if not body.startswith("/"):
            if not body:
                raise _NoUrlError
            _check(_URIC, body)
            return url
    elif not text:
        return url._replace(path="")
    if body.startswith("//"):
        authority = re.split("[/?]", body[2:], maxsplit=1)[0]
        body = body[2 + len(authority) :]
        if authority:
            url = _with_authority(url, authority)
        elif not body and not sharp:
            raise _NoUrlError
    path, asks, query = body.partition("?")
    _check(_PATH, path)
    _check(_URIC, query)
    return url._replace(path=path, query=query if asks else None)


def _with_authority(url: _Url, authority: str) -> _Url:
    """Return a URL with its authority: user, host and port of a server, or else the name in a registry."""
    try:
        user, host = _server(authority)
    except _NoUrlError:
        _check(_REGISTRY, authority)
        return url._replace(authority=authority)
    return url._replace(authority=authority, user=user, host=host)


def _server(authority: str) -> tuple[str | None, str]:
    before, at, place = authority.partition("@")
    user = before if at else None
    if user is not None:
        _check(_USER, user)
    else:
        place = authority
    if place.startswith("["):
        inner, bracket, rest = place[1:].partition("]")
        address, percent, scope = inner.partition("%")
        if not bracket or (percent and not re.fullmatch("[A-Za-z0-9_.-]+", scope)):
            raise _NoUrlError
        try:
            IPv6Address(address)
        except AddressValueError:
            raise _NoUrlError from None
        host = f"[{inner}]"
    else:
        host, colon, rest = place.partition(":")
        rest = f"{colon}{rest}"
        if not _IPV4.fullmatch(host):
            _check_name(host)
    if not _PORT.fullmatch(rest) or int(rest[1:] or 0) > _MOST_PORT:
        raise _NoUrlError
    return user, host


def _check_name(host: str) -> None:
    if not _HOST.fullmatch(host):
        raise _NoUrlError
    labels = host.removesuffix(".").split(".")
    if len(labels) > 1 and not labels[-1][0].isalpha():
        raise _NoUrlError


def _check(wanted: re.Pattern[str], text: str) -> None:
    if not wanted.fullmatch(text) or any(map(_hidden, text)):
        raise _NoUrlError


def _hidden(character: str) -> bool:
    """Tell whether a character beyond ASCII is a blank or a control character."""
    return character > "\x7f" and (unicodedata.category(character) in ("Zs", "Zl", "Zp") or character < "\xa0")
