"""The parser of SELECT: from a text to sqlglot's tree, with the names of functions as written.

sqlglot rewrites the functions that it knows, some of them unlike Spark (``ltrim('x', a)``, ``log10``). So the parser
marks all names of functions with `FUNCTION_MARK`, and sqlglot leaves them as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot import Dialect, exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.model.refusals import MAX_DEPTH, too_deep, unsupported
from grouping.model.wording import are, counted
from grouping.statements.literal_runs import cut_runs, mark_runs
from grouping.statements.operator_order import check_operators, concatenated_from_left
from grouping.statements.refused_forms import check_forms
from grouping.statements.respelled_tokens import UNARY_PLUS, after_operand, renamed, respelled
from grouping.statements.syntax_hints import check_quotes, unread
from grouping.statements.tokens import PlainSql, unreadable
from grouping.statements.type_tokens import check_types, within_types

__all__ = ["FUNCTION_MARK", "read_select"]

FUNCTION_MARK = "cq_"
"""The prefix of names of functions in the tree."""

_KEYWORDS = frozenset(
    """all and any as between by case cast distinct div else end escape except exists extract from glob group having
    ilike in intersect interval is join like limit not null offset on or order over partition qualify range regexp rlike
    rows select similar some then to try_cast union using values when where window with within""".split()
)
"""Words that are not functions, even before a parenthesis."""

_QUANTIFIERS = frozenset(("any", "some"))
"""Words that are the names of aggregate functions, or quantifiers, as in ``a = ANY (…)``."""

_CALLED_TOO = frozenset(("like", "ilike", "rlike", "regexp"))  # names of functions, unless the word follows an operand

_SIDES = frozenset(("both", "leading", "trailing"))  # words within the parentheses of TRIM
_OPENING = frozenset((TokenType.L_PAREN,))
_PREFIXES = frozenset((TokenType.NOT, TokenType.DASH, UNARY_PLUS, TokenType.TILDE))
_DEEPER = {
    **dict.fromkeys((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE), 1),
    **dict.fromkeys((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END), -1),
}
"""Token → the number of levels by which the tokens after the token are nested deeper."""
_PATTERNED = frozenset("like rlike ilike regexp".split())
_COMPARED = frozenset(
    (TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ)
)
_NO_CALL_AFTER = frozenset((TokenType.ALIAS, TokenType.DCOLON, TokenType.DOT))
_WITHIN: dict[str, TokenType | str] = {
    "overlay": "PLACING",
    "trim": TokenType.FROM,
    "substring": TokenType.FROM,
    "substr": TokenType.FROM,
    "position": TokenType.IN,
}
"""Function → the word between its arguments in standard SQL. The name of a call with this word is not marked, so
sqlglot parses the call."""
_GLUED = re.compile(r"([0-9]++\.?+[0-9]*+[eE][+-]?+[0-9]++)([+-])([0-9]++\.?+[0-9]*+(?:[eE][+-]?+[0-9]++)?+)")
"""A number with an exponent, then ``+`` or ``-``, then another number. sqlglot reads all of this as a single number."""
_MAY_BE_GLUED = re.compile(r"[0-9.][eE][+-]?+[0-9]++[+-][0-9]")
"""Matches a part of each text that `_GLUED` matches. A search for this part takes linear time, a search for `_GLUED`
quadratic time.
"""
_BARE_LISTS = ([TokenType.STRING, TokenType.COMMA], [TokenType.NUMBER, TokenType.COMMA])
_BEHIND_LISTS = (TokenType.FROM, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.WHERE, TokenType.HAVING)
_AROUND_NAMES = frozenset((TokenType.FROM, TokenType.JOIN, TokenType.L_PAREN, TokenType.R_PAREN))
"""The tokens that decide where the names of sources are."""
_TOKENIZER = PlainSql().tokenizer()
_DIALECT = Dialect.get_or_raise(None)


def read_select(text: str) -> exp.Select:
    """Return the tree of a single SELECT; literals have their position in ``meta["start"]``.

    Long runs of literals are left out of the tree (`literal_runs`).

    Raises:
        InputError: ``syntax-error``, or ``unsupported-query`` for set operations and for expressions that are nested
            too deep.
    """
    tokens: list[Token] = []
    cut = cut_runs(text)
    try:
        tokens = respelled(_parted(_TOKENIZER.tokenize(cut.text), text), cut.text)
        check_quotes(tokens, text)
        check_types(tokens)
        _check_neighbours(tokens)
        check_forms(tokens)
        check_operators(tokens)
        _check_depth(tokens)
        trees = _DIALECT.parser().parse(_names_as_one(_marked(tokens), text), text)
    except ParseError as error:
        raise _syntax_error(error, tokens, text) from None
    except SqlglotError:
        raise unreadable(text) from None
    except RecursionError:
        raise too_deep() from None
    if len(trees) != 1 or trees[0] is None:
        found = f"There {are(len(trees))} {counted(len(trees), 'statement')}."
        raise InputError("there should be one SELECT", code="syntax-error", detail=found)
    tree = trees[0]
    if isinstance(tree, exp.SetOperation):
        raise unsupported(tree.key.upper(), "A query has one SELECT.", "Write OR in WHERE, or create several CQs.")
    if isinstance(tree, exp.Subquery):
        raise unsupported("a SELECT in parentheses", "A query is one SELECT.", "Leave the parentheses out.")
    if not isinstance(tree, exp.Select):
        raise InputError("there should be a SELECT", code="syntax-error", detail=f"There is {tree.key.upper()}.")
    mark_runs(tree, cut.runs)
    return concatenated_from_left(tree)


def _check_depth(tokens: Sequence[Token]) -> None:
    depth = run = 0
    for token in tokens:
        kind = token.token_type
        run = run + 1 if kind in _PREFIXES else 0
        depth += _DEEPER.get(kind, 0)
        if depth + run > MAX_DEPTH:
            raise too_deep()


def _check_neighbours(tokens: Sequence[Token]) -> None:
    """Refuse tokens that sqlglot would misread because of the tokens after them."""
    for place, token in enumerate(tokens):
        if (check := _BESIDE.get(token.token_type)) is not None:
            check(token, tokens[place + 1 : place + 4])


def _check_angle(token: Token, behind: Sequence[Token]) -> None:
    """Refuse ``> >`` and ``< <``, which sqlglot takes for a shift of bits, and ``v::array<int>[0]``."""
    if not behind:
        return
    follower = behind[0]
    if follower.token_type is token.token_type and follower.start > token.end + 1:
        raise _misplaced(follower, f'it follows another "{token.text}"')
    if follower.token_type is TokenType.L_BRACKET and token.token_type is TokenType.GT:
        raise unsupported(
            "an index in brackets after a type",
            f"Line {follower.line}, column {follower.col}: it is read as a part of the type.",
            "Put the CAST in parentheses: (v::array<int>)[0].",
        )


def _check_list(token: Token, behind: Sequence[Token]) -> None:
    """Refuse ``IN 'a', 'b'``, whose comma sqlglot takes for a join."""
    if [each.token_type for each in behind[:2]] in _BARE_LISTS:
        value = behind[0]
        column = value.start - token.start + token.col - len(token.text) + 1
        raise InputError(
            "the list after IN has no parentheses",
            code="syntax-error",
            detail=f"Line {value.line}, column {column}: it begins here.",
            hint="Write IN ('A', 'B').",
        )


def _check_comma(token: Token, behind: Sequence[Token]) -> None:
    """Refuse a comma without a following item, which sqlglot would ignore."""
    if not behind or behind[0].token_type in _BEHIND_LISTS:
        raise _misplaced(token, "nothing follows it")


def _check_variable(_: Token, behind: Sequence[Token]) -> None:
    """Refuse ``(x) -> …``, which Spark does not read."""
    if [each.token_type for each in behind[1:]] == [TokenType.R_PAREN, TokenType.ARROW]:
        name = behind[0]
        raise InputError(
            "the only variable of a lambda is in parentheses",
            code="syntax-error",
            detail=f"Line {name.line}, column {name.col - len(name.text) + 1}: parentheses are for several variables.",
            hint=f"Write {name.text} -> ….",
        )


_BESIDE = {
    TokenType.LT: _check_angle,
    TokenType.GT: _check_angle,
    TokenType.IN: _check_list,
    TokenType.COMMA: _check_comma,
    TokenType.L_PAREN: _check_variable,
}
"""Token → check of the token and the tokens after it."""


def _misplaced(token: Token, reason: str) -> InputError:
    return InputError(
        f'"{token.text}" is not expected here',
        code="syntax-error",
        detail=f"Line {token.line}, column {token.col}: {reason}.",
    )


def _parted(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens with ``1e1+1`` divided into three tokens."""
    if _MAY_BE_GLUED.search(text) is None:
        return tokens
    parted: list[Token] = []
    end = 0
    for token in tokens:
        if token.start < end:
            continue  # a part of a number that `parted` has already
        glued = _GLUED.match(text, token.start) if token.token_type is TokenType.NUMBER else None
        if glued is None or glued.end(1) > token.end:
            parted.append(token)
            continue
        kinds = (TokenType.NUMBER, TokenType.DASH if glued[2] == "-" else TokenType.PLUS, TokenType.NUMBER)
        end = glued.end()
        for group, kind in enumerate(kinds, 1):
            first, behind = glued.span(group)
            column = token.col - token.end - 1 + behind
            parted.append(Token(kind, glued[group], token.line, column, first, behind - 1))
    return parted


def _marked(tokens: list[Token]) -> list[Token]:
    """Return the tokens with the names of called functions marked."""
    marked = tokens[:]
    if not any(token.token_type in _OPENING for token in tokens):
        return marked
    depth = 0
    types = within_types(tokens)
    for i, (token, follower) in enumerate(pairwise(tokens)):
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if follower.token_type is not TokenType.L_PAREN:
            continue
        if (
            kind not in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
            and token.text.isidentifier()
            and i not in types
            and not _is_keyword(tokens, i)
            and not (i and tokens[i - 1].token_type in _NO_CALL_AFTER)
            and not (i and depth == 0 and _begins_from(tokens, i - 1))
            and not _has_within(tokens, i + 1, _WITHIN.get(token.text.lower()))
        ):
            marked[i] = renamed(token, TokenType.VAR, FUNCTION_MARK + token.text)
        elif token.text.lower() == "substr" and _has_within(tokens, i + 1, TokenType.FROM):
            marked[i] = renamed(token, TokenType.VAR, "SUBSTRING")  # the name under which sqlglot knows the function
    return marked


def _is_keyword(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the word before a parenthesis is a keyword and not a function."""
    word, before = tokens[place].text.lower(), tokens[place - 1] if place else None
    if word == "exists":
        behind = tokens[place + 2].text.lower() if len(tokens) > place + 2 else ""
        return behind in ("select", "with", "(")
    if word == "filter":
        return before is not None and before.token_type is TokenType.R_PAREN
    if word in _QUANTIFIERS:
        return before is not None and (before.text.lower() in _PATTERNED or before.token_type in _COMPARED)
    if word in _CALLED_TOO:
        negated = before is not None and before.token_type is TokenType.NOT
        return after_operand(tokens, place - negated)
    if word in _SIDES:
        return place > 1 and tokens[place - 2].text.lower() == "trim"
    return word in _KEYWORDS


def _has_within(tokens: Sequence[Token], opening: int, word: TokenType | str | None) -> bool:
    """Return whether a word stands directly within the parentheses that open at a place."""
    if word is None:
        return False
    depth = 0
    for token in tokens[opening:]:
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        if depth == 0:
            return False
        if depth == 1 and word in (token.token_type, token.text.upper()):
            return True
    return False


def _names_as_one(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens with each bare name after FROM or JOIN, such as ``eu.quotes-1``, as a single quoted name."""
    joined: list[Token] = []
    within: list[bool] = []  # for each open parenthesis, whether the parenthesis holds a subquery
    place = 0
    while place < len(tokens):
        token = tokens[place]
        joined.append(token)
        place += 1
        if token.token_type not in _AROUND_NAMES:
            continue
        if token.token_type is TokenType.L_PAREN:
            within.append(place < len(tokens) and tokens[place].token_type is TokenType.SELECT)
        elif token.token_type is TokenType.R_PAREN and within:
            within.pop()
        elif (not within or within[-1]) and (token.token_type is TokenType.JOIN or _begins_from(tokens, place - 1)):
            last = _end_of_name(tokens, place, text)
            if last - place > 1:
                name = text[tokens[place].start : tokens[last - 1].end + 1]
                joined.append(renamed(tokens[place], TokenType.IDENTIFIER, name))
                place = last
    return joined


def _end_of_name(tokens: Sequence[Token], first: int, text: str) -> int:
    """Return the place after the tokens of a bare name."""
    last = first
    while last < len(tokens) and _of_name(text[tokens[last].start : tokens[last].end + 1]):
        last += 1
        if last < len(tokens) and tokens[last].start != tokens[last - 1].end + 1:
            break
    return last


def _begins_from(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a token is a FROM, but not of IS DISTINCT FROM; callers must not pass a FROM within a call."""
    return tokens[place].token_type is TokenType.FROM and tokens[place - 1].token_type is not TokenType.DISTINCT


def _of_name(source: str) -> bool:
    return source in (".", "-") or source.replace(".", "_").replace("-", "_").isalnum() or source.isidentifier()


def _syntax_error(error: ParseError, tokens: Sequence[Token], text: str) -> InputError:
    first = error.errors[0] if error.errors else {}
    source = str(first.get("highlight") or "")
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)  # the column of the token's last character
    colon = next((place for place, token in enumerate(tokens) if token.token_type is TokenType.COLON), 0)
    typed = any(token.text.upper() == "STRUCT" for token in tokens[:colon])  # fields of a STRUCT have colons
    if colon and not typed and (path := _PATH.match(text, tokens[colon - 1].start)):
        place = f"Line {tokens[colon].line}, column {tokens[colon].col}: Spark has no such operator."
        raise unsupported('a path after ":"', place, f"Write {_path_call(path)}.")
    return unread(tokens, line, column, source.removeprefix(FUNCTION_MARK))


_PATH = re.compile(r"([\w.]+)\s*:(?!:)\s*((?:\w+|\.\w+|\[[0-9]+\]|\['[^']*'\])+)(?:\s*::\s*(\w+)(?![\w(<]))?")
"""A name, a path, and optionally a type."""


def _path_call(path: re.Match[str]) -> str:
    """Return ``v:a.b::int`` as a function call."""
    start = "" if path[2].startswith("[") else "."
    steps = path[2].replace("'", '"')
    kind = f", '{path[3].upper()}'" if path[3] else ""
    return f"variant_get({path[1]}, '${start}{steps}'{kind})"
