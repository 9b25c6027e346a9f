"""The row of a function, which the compiler, the documentation and DESCRIBE FUNCTION read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from grouping.functions.sizes import SizeRule
from grouping.model.sql_type import SqlType

__all__ = ["Function", "ResultRule"]

ResultRule = Callable[[Sequence[SqlType]], SqlType]
"""A rule that computes the type of the result from the types of the arguments."""


@dataclass(frozen=True)
class Function:
    """A function or an aggregate.

    Example:
        >>> from grouping.model.sql_type import STRING
        >>> pad = Function("lpad(STRING, COUNT[, STRING])", STRING, "text of a length, filled on the left")
        >>> pad.name, pad.params, pad.optional, pad.variadic
        ('lpad', ('STRING', 'COUNT', 'STRING'), 1, False)
    """

    form: str
    """The name and the kinds of the parameters (`params.PARAMS`): optional ones in brackets, ``…`` after a parameter
    that may be repeated."""
    result: SqlType | ResultRule | None
    """The type of the result, the rule for this type, or None if the binder computes it."""
    meaning: str
    """The meaning in a few words, for the documentation's table."""
    aliases: tuple[str, ...] = ()
    """Further names. A name with ``try_`` means the same function, since the failure of any function gives NULL."""
    size: SizeRule | None = None
    """The rule for the largest number of bytes of text in the result; None for a result without text."""
    grows: bool = False
    """Whether the result can be longer than all arguments together, and has no fixed limit of length."""
    strict: bool = True
    """Whether the result is NULL if an argument is NULL."""
    casts: bool = True
    """Whether Spark casts arguments of other types to the parameters' types."""
    index: Literal["value", "prefix", "elements"] = "value"
    """The key of the index: for ``value``, the value of the call; for ``prefix``, the beginning or a part of the text
    in the first argument; for ``elements``, each element of the array in the first argument.
    """
    variables: int = 0
    """The least number of variables of the function's lambda; 0 without a lambda."""
    compiled: bool = False
    """Whether calls are compiled to other functions and operators, so that the evaluator needs no function of this
    name."""
    example: str = ""
    """A call over the columns of the sample stream of `function_guide.py`; if empty, the call is made from the kinds of
    the parameters.
    """

    @cached_property
    def name(self) -> str:
        """The name under which calls are compiled."""
        return self.form.partition("(")[0]

    @cached_property
    def params(self) -> tuple[str, ...]:
        """The kind of each parameter."""
        needed, *optional = self._inside.split("[")
        return (*_COMMA.split(needed),) * bool(needed) + tuple(param.strip(", ]") for param in optional)

    @cached_property
    def optional(self) -> int:
        """The number of parameters at the end that may be left out."""
        return self.form.count("[")

    @cached_property
    def variadic(self) -> bool:
        """Whether the last parameter may be repeated."""
        return self.form.endswith("…)")

    @cached_property
    def _inside(self) -> str:
        return self.form.partition("(")[2][:-1].removesuffix(", …")


_COMMA = re.compile(r", (?![^(]*\))")
"""A comma between parameters, not between the variables of a lambda."""
