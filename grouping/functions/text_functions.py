"""The functions of texts beyond the everyday ones: patterns, words, codes and formats."""

from __future__ import annotations

from grouping.functions.function import Function
from grouping.model.sql_type import BOOLEAN, INT, STRING, SqlType, array_of

__all__ = ["TEXT_ALIASES", "TEXT_FUNCTIONS", "TEXT_RESULTS"]

_ONE = Function(("STRING",))
_TWO = Function(("STRING", "STRING"))

_TYPED: dict[str, tuple[Function, SqlType]] = {
    "chr": (Function(("WHOLE",)), STRING),
    "elt": (Function(("INT", "STRING"), variadic=True), STRING),
    "find_in_set": (_TWO, INT),
    "format_string": (Function(("PRINTF", "PRINTED"), 1, variadic=True), STRING),
    "initcap": (_ONE, STRING),
    "json_array_length": (_ONE, INT),
    "json_object_keys": (_ONE, array_of(STRING)),
    "levenshtein": (Function(("STRING", "STRING", "INT"), 1), INT),
    "luhn_check": (_ONE, BOOLEAN),
    "mask": (Function(("STRING", "MASK", "MASK", "MASK", "MASK"), 4), STRING),
    "overlay": (Function(("STRING", "STRING", "INT", "INT"), 1), STRING),
    "parse_url": (Function(("STRING", "STRING", "KEY"), 1), STRING),
    "regexp_count": (Function(("STRING", "OCCURRENCES")), INT),
    "regexp_extract": (Function(("STRING", "GROUPS", "INT"), 1), STRING),
    "regexp_extract_all": (Function(("STRING", "OCCURRENCES", "INT"), 1), array_of(STRING)),
    "regexp_instr": (Function(("STRING", "GROUPS")), INT),
    "regexp_replace": (Function(("STRING", "OCCURRENCES", "REPLACEMENT")), STRING),
    "regexp_substr": (Function(("STRING", "GROUPS")), STRING),
    "soundex": (_ONE, STRING),
    "space": (Function(("COUNT",)), STRING),
    "substring_index": (Function(("STRING", "STRING", "INT")), STRING),
    "url_decode": (_ONE, STRING),
    "url_encode": (_ONE, STRING),
}

TEXT_FUNCTIONS = {name: function for name, (function, _) in _TYPED.items()}
"""The arguments of each function."""

TEXT_RESULTS = {name: sql_type for name, (_, sql_type) in _TYPED.items()}
"""The type of each function's result."""

TEXT_ALIASES = {"char": "chr", "printf": "format_string", "try_parse_url": "parse_url", "try_url_decode": "url_decode"}
"""Spark's synonyms of these functions; failures are NULL here anyhow."""
