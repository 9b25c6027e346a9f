"""Refusals of unsupported expressions: each names the expression, the reason, and a form that works."""

from __future__ import annotations

import re

from sqlglot import exp

from grouping.binding.bound import Bound
from grouping.model.errors import InputError
from grouping.model.refusals import unsupported
from grouping.model.sql_type import STRING
from grouping.statements.tokens import clipped

__all__ = ["PATHS", "no_in_query", "no_path", "present_time", "refusal", "unparenthesized"]

_NO_OPERATOR = "Continuous queries do not have this operator."
_JOINED = "JOIN takes the rows of a table: FROM quotes q JOIN limits l ON l.symbol = q.symbol."
_SUBQUERY = ("a subquery in an expression", "An expression reads one event and its joined rows.")
_WINDOWED = (
    "A window function needs an order of several events.",
    "GROUP BY symbol EVERY '5 minutes' computes aggregates of the events of each 5 minutes.",
)
"""Why a window function is refused, and the form that works."""
_PARAMETER = ("a parameter", "A statement holds all constants of its query.")
_CONSTANT = "Write the constant: queries that differ only in constants share one plan."
_REFUSED: dict[type[exp.Expr], tuple[str, str, str | None]] = {
    exp.Subquery: (*_SUBQUERY, _JOINED),
    exp.Select: (*_SUBQUERY, _JOINED),
    exp.Exists: ("EXISTS (SELECT …)", _SUBQUERY[1], f"{_JOINED} NOT EXISTS is LEFT JOIN and WHERE l.symbol IS NULL."),
    exp.Window: ("a window function", *_WINDOWED),
    exp.Interval: ("an INTERVAL of this form", "INTERVAL takes a number or a string.", "Write INTERVAL 5 MINUTES."),
    exp.Star: ("* within an expression", "* stands for all columns of the SELECT list.", "Name the column."),
    exp.Distinct: ("DISTINCT within a call", "Only count takes DISTINCT.", "Write count(DISTINCT symbol)."),
    exp.Placeholder: (*_PARAMETER, _CONSTANT),
    exp.Parameter: (*_PARAMETER, _CONSTANT),
    exp.JSONBContainsTopKey: ('"?"', _NO_OPERATOR, "map_contains_key(attrs, 'key') asks whether a MAP has a key."),
    exp.Kwarg: ('"=>"', _NO_OPERATOR, "A lambda is written with ->; >= means greater or equal."),
    exp.PropertyEQ: ('":="', _NO_OPERATOR, "Write = to compare for equality."),
    exp.Array: ("a list in brackets", "An ARRAY is made by a function.", "Write array(1, 2)."),
    exp.Struct: (
        "a list in braces",
        "A STRUCT or MAP is made by a function.",
        "Write named_struct('a', 1), or map('a', 1).",
    ),
    exp.Lambda: (
        "a lambda as an operand",
        "A lambda is an argument of functions such as exists, filter and transform; array_sort takes none.",
        "Write exists(tags, t -> t = 'a').",
    ),
    exp.Slice: ("a range in brackets", "Brackets take one index.", "Write slice(tags, 1, 2)."),
    exp.AtTimeZone: ("AT TIME ZONE", _NO_OPERATOR, "Write from_utc_timestamp(at, 'Europe/Madrid')."),
    exp.RegexpILike: ('"~*"', _NO_OPERATOR, "Write RLIKE '(?i)pattern'."),
    exp.SimilarTo: ("SIMILAR TO", "Spark has no SIMILAR TO.", "Write LIKE, or RLIKE with a regular expression."),
    exp.Glob: ("GLOB", "Spark has no GLOB.", "Write LIKE, or RLIKE with a regular expression."),
    exp.National: ("N before a string", "Every STRING is Unicode.", "Leave N out."),
    exp.If: ("IF without parentheses", _NO_OPERATOR, "Write if(condition, a, b), or CASE."),
    **dict.fromkeys(
        (exp.Any, exp.All), ("a comparison with ANY or ALL", _NO_OPERATOR, "Write IN ('A', 'B'), or join with OR.")
    ),
    exp.Tuple: ("a row of values", "Rows are compared only with = and IN.", "Compare the values one by one, with AND."),
}
"""By the parser's class: the name in SQL, the reason, and the form to write instead."""
_NOW: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentTime: "current_time",
    exp.Localtimestamp: "localtimestamp",
}
PATHS: dict[type[exp.Expr], str] = {
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.JSONBExtract: "#>",
    exp.JSONBExtractScalar: "#>>",
}
"""PostgreSQL's operators for a part of a JSON document."""
_STEPS = re.compile(r"\w+")
_MOST_SHOWN = 40
"""The largest number of characters of a path that a hint repeats."""


def present_time(written: str) -> InputError:
    """Return the refusal of a function or word for the present time."""
    return InputError(
        f'"{written}" has no meaning for a standing query',
        code="unsupported-query",
        detail="A query is evaluated when an event comes, and again when events are replayed.",
        hint="Compare with the time of the event's record: _time - INTERVAL '5' MINUTE, or CAST(_time AS DATE).",
    )


def no_in_query(node: exp.Expr) -> InputError:
    """Return the refusal of ``IN (SELECT …)``, with the JOIN that does the same."""
    query = node.args.get("query")
    table = query.find(exp.Table) if isinstance(query, exp.Expr) else None
    source = clipped(table.name) if table is not None else "watched"
    column = clipped(node.this.name) if isinstance(node.this, exp.Column) else "symbol"
    hint = f"JOIN {source} USING ({column}) does the same where {source} is a table (CREATE TABLE)."
    return unsupported("IN (SELECT …)", "IN takes a list of constants.", hint)


def no_path(node: exp.Expr, base: Bound) -> InputError:
    """Return the refusal of ``base -> 'path'``, with the call that means the same for the type of `base`."""
    column = node.this.unnest()
    name = clipped(column.sql()) if isinstance(column, exp.Column) else "body"
    written = node.expression
    text = written.name if isinstance(written, exp.Literal) else written.sql("spark").strip("'")
    steps = _STEPS.findall(text[:_MOST_SHOWN]) or ["name"]
    path = "$." + ".".join(steps)
    match base.type.name:
        case "STRUCT":
            hint = f"Write {name}.{'.'.join(steps)}."
        case "MAP":
            hint = f"Write {name}['{steps[0]}']."
        case "VARIANT":
            hint = f"Write variant_get({name}, '{path}', 'STRING')."
        case _:
            hint = f"Write get_json_object({name}, '{path}')."
    detail = f'"{name}" is of type {base.type}.' if base.type != STRING else f'"{name}" is a STRING that may hold JSON.'
    return unsupported(f'operator "{PATHS[type(node)]}"', detail, hint)


def unparenthesized(inner: str, outer: str) -> InputError:
    """Return the refusal of two operators on bits whose precedence differs between Spark and sqlglot."""
    detail = f'The precedence of "{inner}" and "{outer}" differs between systems.'
    return unsupported("a chain of operators on bits without parentheses", detail, "Write (a | b) & c, or a | (b & c).")


def refusal(node: exp.Expr) -> InputError:
    """Return the refusal of an expression, ``unsupported-query``."""
    kind = type(node)
    if (now := _NOW.get(kind)) is not None:
        return present_time(now)
    name = kind.__name__ if kind.__name__.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__)
    return unsupported(*_REFUSED.get(kind, (f'"{name.upper()}"', _NO_OPERATOR, None)))
