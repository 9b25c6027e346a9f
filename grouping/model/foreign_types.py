"""The nearest type of a column for a type in the spelling of another system, with all its parts. Only hints use it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from grouping.model.decimal_types import WIDEST
from grouping.model.sql_type import PLAIN_TYPES
from grouping.model.type_names import CONSTRAINTS, CONTAINERS, NAMED

__all__ = ["nearest_type"]

_LONGEST = 2_000
"""The largest number of characters of a type that are read."""
_DEEPEST = 16
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|-?[\w$*]+|\S")
_GLUE = ((re.compile(r"(?<=[A-Za-z0-9_])\s*[-.]\s*(?=[A-Za-z])"), "_"), (re.compile(r"-\s+(?=[0-9])"), "-"))
"""Names with a hyphen or a point become one word: ``timestamp-millis``, ``google.protobuf.Timestamp``."""
_PACKAGE = re.compile(r"(?:GOOGLE_PROTOBUF|JAVA_\w+|DATETIME)_(?=[A-Z])")
_OPENING, _CLOSING = frozenset("(<["), frozenset(")>]")
_FORMS = {
    "ARRAY": "ARRAY<type>",
    "MAP": "MAP<STRING, type>",
    "STRUCT": "STRUCT<name: type, …>",
    "ARRAY of STRUCT": "ARRAY<STRUCT<name: type, …>>",
}
"""Kind of a type with parts → the form of the type, for a hint where the parts are not given."""
_PAIRS = {
    "BINARY LARGE": "BINARY",
    "BIT VARYING": "STRING",
    "DOUBLE PRECISION": "DOUBLE",
    "LONG BINARY": "BINARY",
    "LONG RAW": "BINARY",
    "LONG TEXT": "STRING",
    "LONG VARBINARY": "BINARY",
    "LONG VARCHAR": "STRING",
    "LONG VARGRAPHIC": "STRING",
    "REF CURSOR": "STRING",
}
"""Names of two words, in which the second word changes the meaning of the first one."""
_SPECIAL = {
    "INT8": 'Use "BIGINT" for 8 bytes, as in PostgreSQL, or "TINYINT" for 8 bits, as in ClickHouse.',
    "FIXED": 'Use "DECIMAL(p,s)" for a number, as in MySQL, or "BINARY" for the bytes of Avro.',
    "UNSIGNED": 'Use "BIGINT", or "DECIMAL(20,0)" for 8 bytes.',
    "SIGNED": 'Use "BIGINT".',
    **dict.fromkeys(("CURSOR", "REFCURSOR", "SYS_REFCURSOR", "TABLE"), 'Use "ARRAY<STRUCT<name: type, …>>" for rows.'),
}
_WITHOUT_SIGN = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "BIGINT": "DECIMAL(20,0)"}
"""Type → the type that holds unsigned numbers of as many bits."""
_DIGITS = {"DECIMAL32": 9, "DECIMAL64": 18, "DECIMAL128": WIDEST, "DECIMAL256": WIDEST}
"""Name of a DECIMAL of ClickHouse, whose only argument is the scale → its precision."""
_SINGLE_BITS = 24
"""The largest number of binary digits of a FLOAT in standard SQL; FLOAT(53) is a DOUBLE."""
_LIKE = 0.75
"""The least similarity, from 0 to 1, at which an unknown name counts as a misspelt known name."""


def nearest_type(written: str) -> str | None:
    """Return the hint for a type as another system writes it; None for an unknown name.

    Args:
        written: The text from the beginning of the type; anything after the column is ignored.

    Example:
        >>> nearest_type("float8"), nearest_type("NUMBER(10,2)"), nearest_type("mood")
        ('Use "DOUBLE".', 'Use "DECIMAL(10,2)".', None)
        >>> nearest_type("int(10) unsigned"), nearest_type("text[], b int")
        ('Use "BIGINT".', 'Use "ARRAY<STRING>".')
        >>> nearest_type("map<text, list<int>>"), nearest_type("ROW(x bigint, y varchar(3))")
        ('Use "MAP<STRING, ARRAY<INT>>".', 'Use "STRUCT<x: BIGINT, y: STRING>".')
    """
    text = written[:_LONGEST]
    for form, glue in _GLUE:
        text = form.sub(glue, text)
    tokens = list(_of_column(_TOKEN.findall(text)))
    if not tokens:
        return None
    if (name := _name(tokens[0])) in _SPECIAL and (len(tokens) == 1 or tokens[1] not in _OPENING):
        return _SPECIAL[name]
    known = _type(tokens)
    if known is None and len(tokens) == 1:
        return _like(name)
    return known and f'Use "{known}".'


def _of_column(tokens: list[str]) -> Iterator[str]:
    """Yield the tokens of the type: up to a comma or bracket outside brackets, or up to a constraint."""
    depth = 0
    for place, token in enumerate(tokens):
        if depth == 0 and (token in _CLOSING or token in ",;" or (place and token.upper() in CONSTRAINTS)):
            return
        depth += (token in _OPENING) - (token in _CLOSING)
        yield token


def _name(token: str) -> str:
    """Return a name in capitals, without its quotes, its package and Spark's ending ``Type``."""
    name = _PACKAGE.sub("", token.strip("\"`'").upper())
    return name.removesuffix("TYPE") if name.removesuffix("TYPE") in {*PLAIN_TYPES, *NAMED, *_FORMS} else name


def _type(tokens: list[str], depth: int = 0) -> str | None:
    """Return the nearest type; None for an unknown name."""
    tokens = tokens[:-1] if tokens[-1:] == ["?"] else tokens
    if not tokens or depth > _DEEPEST:
        return None
    if tokens[0] == "[" and "]" in tokens:  # SQL Server's quotes
        return _type([*tokens[1 : tokens.index("]")], *tokens[tokens.index("]") + 1 :]], depth + 1)
    if (element := _element(tokens)) is not None:
        known = _type(element, depth + 1)
        return "BINARY" if _name(element[0]) == "BYTE" and len(element) == 1 else known and f"ARRAY<{known}>"
    name = _name(tokens[0])
    first = next((place for place, token in enumerate(tokens) if token in _OPENING), len(tokens))
    last = _end(tokens, first)
    parts = list(_parts(tokens[first + 1 : last]))
    kind = CONTAINERS.get(name)
    if kind is None or (parts and parts[0][0].startswith("'")):  # SET('a', 'b') of MySQL is a text
        words = [_name(token) for token in (*tokens[:first], *tokens[last + 1 :])]
        return _sized(words, "".join(tokens[first : last + 1])) if words else None
    if first == len(tokens) > 1:
        parts = [tokens[1:]]  # repeated string
    return (_nested(kind, parts, depth + 1) if parts else NAMED.get(name)) or _FORMS.get(kind)


def _element(tokens: list[str]) -> list[str] | None:
    """Return the tokens of an array's element, for ``int[]`` and ``int ARRAY[4]``; None for any other type."""
    if tokens[-1] == "]" and len(tokens) > 2:
        opening = len(tokens) - 2 - (tokens[-2] != "[")
        if opening < 1 or tokens[opening] != "[" or not (tokens[-2] == "[" or tokens[-2].isdigit()):
            return None
        tokens = tokens[:opening]
        return tokens[:-1] if len(tokens) > 1 and tokens[-1].upper() == "ARRAY" else tokens
    if len(tokens) > 1 and tokens[-1].upper() in ("ARRAY", "LIST"):
        return tokens[:-1]
    name = tokens[0].upper()
    return [name[1:]] if len(tokens) == 1 and name.startswith("_") and name[1:] in NAMED else None


def _end(tokens: list[str], opening: int) -> int:
    """Return the place of the bracket that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place] in _OPENING) - (tokens[place] in _CLOSING)
        if depth == 0:
            return place
    return len(tokens)


def _parts(tokens: list[str]) -> Iterator[list[str]]:
    """Yield the parts of a type: the tokens between commas, or between ``=>``, outside brackets."""
    part: list[str] = []
    depth = 0
    for place, token in enumerate(tokens):
        arrow = tokens[place : place + 2] == ["=", ">"]
        depth += (
            0 if arrow or tokens[place - 1 : place + 1] == ["=", ">"] else (token in _OPENING) - (token in _CLOSING)
        )
        if depth == 0 and (token == "," or arrow):
            if part:
                yield part
            part = []
        elif not (token == ">" and tokens[place - 1 : place] == ["="]):
            part.append(token)
    if part:
        yield part


def _nested(kind: str, parts: list[list[str]], depth: int) -> str | None:
    """Return a type with its parts; None if a part is unknown."""
    if kind == "part":
        return _type(parts[0], depth)
    if kind == "ARRAY":
        element = "FLOAT" if parts[0][0].isdigit() else _type(parts[0], depth)
        return element and f"ARRAY<{element}>"
    if kind == "MAP":
        value = _type(parts[-1], depth) if len(parts) == 2 else "INT"  # MULTISET has the number of each value
        return value and f"MAP<STRING, {value}>"
    fields = [(part[0], _type(list(_of_column([each for each in part[1:] if each != ":"])), depth)) for part in parts]
    if not all(known for _, known in fields):
        return None
    struct = f"STRUCT<{', '.join(f'{name}: {known}' for name, known in fields)}>"
    return f"ARRAY<{struct}>" if kind.startswith("ARRAY") else struct


def _sized(words: list[str], size: str) -> str | None:
    """Return the nearest type for a name that further words and a size in parentheses may follow."""
    name = words[0]
    plain = name if name in PLAIN_TYPES or name == "DECIMAL" else None
    known = _PAIRS.get(" ".join(words[:2])) or plain or NAMED.get(name) or ("BIGINT" if name == "INT8" else None)
    if "BIT" in words[1:] and "DATA" in words:
        return "BINARY"
    if known in ("DECIMAL", "DECIMAL(p,s)"):
        return _decimal(name, size)
    digits = [int(part) for part in re.findall("[0-9]{1,9}", size)]
    if name == "FLOAT" and len(digits) == 1 and digits[0] > _SINGLE_BITS:
        return "DOUBLE"
    if name == "BIT" and digits not in ([], [1]):
        return "STRING"
    if {"UNSIGNED", "ZEROFILL"} & {*words} and name != "MEDIUMINT":
        return _WITHOUT_SIGN.get(known or "", known)
    return known


def _decimal(name: str, size: str) -> str:
    """Return the DECIMAL with the size of a number; ``DECIMAL(p,s)`` without a size, or for more than 38 digits."""
    found = re.fullmatch(r"\((\*|[0-9]{1,9})(?:,(-?[0-9]{1,9}))?\)", size)
    if found is None or name == "DECFLOAT":
        return "DECIMAL(p,s)"
    if name in _DIGITS:
        precision, scale = _DIGITS[name], int(found[1])
    else:
        precision, scale = WIDEST if found[1] == "*" else int(found[1]), int(found[2] or 0)
    if scale < 0:  # Oracle rounds to tens or hundreds
        precision, scale = precision - scale, 0
    if not 0 <= scale <= precision <= WIDEST or not precision:
        return "DECIMAL(p,s)"
    return f"DECIMAL({precision},{scale})" if found[2] or name in _DIGITS else f"DECIMAL({precision})"


def _like(name: str) -> str | None:
    """Return the hint for a misspelt name; None if no known name is similar."""
    own = {**dict.fromkeys((*PLAIN_TYPES, "DECIMAL")), **_FORMS}
    near = difflib.get_close_matches(name, [*own, *NAMED], n=1, cutoff=_LIKE) if len(name) <= _LONGEST else []
    if not near:
        return None
    return f'Did you mean "{own[near[0]] or near[0]}"?' if near[0] in own else f'Use "{NAMED[near[0]]}".'
