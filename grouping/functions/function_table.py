"""The form, the group and the result type of each function: made from the tables that the compiler reads."""

from __future__ import annotations

from grouping.functions.aggregates import AGGREGATES
from grouping.functions.functions import CASTING, FUNCTIONS, REWRITTEN, Function, result_type
from grouping.functions.nested_functions import NESTED_FUNCTIONS
from grouping.model.sql_type import SqlType

__all__ = ["GROUPS", "form_of", "group_of", "returns"]


GROUPS = {
    "Strings": """ascii base64 bit_length chr concat concat_ws contains crc32 decode elt encode endswith
        find_in_set format_string hex ilike initcap instr json_array_length json_object_keys left length
        levenshtein like locate lower lpad ltrim luhn_check mask md5 octet_length overlay parse_url regexp_count
        regexp_extract regexp_extract_all regexp_instr regexp_replace regexp_substr repeat replace
        reverse right rlike rpad rtrim sha1 sha2 soundex space split_part startswith substring
        substring_index to_binary translate trim try_to_binary unbase64 unhex upper url_decode url_encode""",
    "Numbers": """abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil conv cosh
        degrees e exp expm1 factorial floor format_number hypot isnan ln log log10 log1p log2 mod nanvl negative
        nullifzero pi pmod positive pow radians rint round shiftleft shiftright shiftrightunsigned sign sinh
        sqrt tanh to_number try_add try_divide try_mod try_multiply try_subtract try_to_number width_bucket
        zeroifnull""",
    "Dates and times": """add_months date_add date_format date_from_unix_date date_part date_sub date_trunc
        datediff day dayname dayofweek dayofyear from_unixtime from_utc_timestamp hour last_day make_date
        make_dt_interval make_timestamp make_ym_interval minute month monthname months_between next_day quarter
        second timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff
        to_char to_date to_timestamp to_utc_timestamp to_varchar trunc unix_date unix_micros unix_millis unix_seconds
        unix_timestamp weekday weekofyear year""",
    "Any type": """bigint binary boolean coalesce date decimal double equal_null float greatest hash if int
        isnotnull isnull least nullif nvl2 smallint string timestamp tinyint xxhash64""",
}
"""Functions without parts and aggregates, by the title under which the documentation shows them."""

_PARAMS = {
    "ANY": "any",
    "BYTES": "STRING or BINARY",
    "TEXT": "STRING or BINARY",
    "HEXED": "STRING, BINARY or BIGINT",
    "VALUE": "any",
    "COMMON": "any",
    "ORDERED": "any",
    "COUNT": "count",
    "DAY": "DATE or TIMESTAMP",
    "DOUBLE": "number",
    "ESCAPE": "character",
    "GROUPS": "pattern",
    "LIKE": "STRING",
    "MASK": "character",
    "KEY": "key",
    "NUMBER": "number",
    "OCCURRENCES": "pattern",
    "PATTERN": "pattern",
    "PRINTED": "any",
    "PRINTF": "format",
    "REPLACEMENT": "replacement",
    "SCALE": "scale",
    "UNIT": "unit",
    "FORMAT": "format",
    "ZONE": "zone",
    "SECONDS": "seconds",
    "FIELD": "field",
    "WHOLE": "INT or BIGINT",
    "WRITTEN": "number, DATE, TIMESTAMP or BINARY",
}
_EXAMPLES = {
    "BYTES": "STRING",
    "TEXT": "STRING",
    "HEXED": "STRING",
    "VALUE": "STRING",
    "COMMON": "",
    "COUNT": "INT",
    "DAY": "DATE",
    "ESCAPE": "STRING",
    "GROUPS": "STRING",
    "LIKE": "STRING",
    "MASK": "STRING",
    "KEY": "STRING",
    "NUMBER": "",
    "OCCURRENCES": "STRING",
    "PATTERN": "STRING",
    "PRINTED": "",
    "PRINTF": "STRING",
    "REPLACEMENT": "STRING",
    "SCALE": "INT",
    "UNIT": "STRING",
    "FORMAT": "STRING",
    "ZONE": "STRING",
    "SECONDS": "INT",
    "FIELD": "STRING",
    "WHOLE": "BIGINT",
    "WRITTEN": "DATE",
}


def form_of(name: str) -> str:
    """Return the form of a function's call, by the function's canonical name."""
    if name in NESTED_FUNCTIONS:
        return f"{name}({', '.join(NESTED_FUNCTIONS[name])})"
    if aggregate := AGGREGATES.get(name):
        return f"{name}({_params(Function(aggregate.params, 0, aggregate.variadic))})"
    return f"{name}({_params(FUNCTIONS.get(name) or REWRITTEN[name])})"


def returns(name: str) -> str:
    """Return the type of a function's results; empty where it depends on the arguments."""
    function = FUNCTIONS.get(name)
    if function is None:
        if name in CASTING:
            return str(CASTING[name])
        if name in ("e", "pi", "nanvl"):
            return "DOUBLE"
        if name in ("to_binary", "try_to_binary"):
            return "BINARY"
        return "BOOLEAN" if name in ("isnull", "isnotnull", "equal_null") else _NESTED_RESULTS.get(name, "")
    return str(result_type(name, [SqlType.of(_EXAMPLES.get(param, param)) for param in function.params]))


_NESTED_RESULTS = {
    **dict.fromkeys(("array_contains", "arrays_overlap", "exists", "forall", "map_contains_key"), "BOOLEAN"),
    **dict.fromkeys(("size", "array_size"), "INT"),
    "array_join": "STRING",
    "array_position": "BIGINT",
    "str_to_map": "MAP<STRING, STRING>",
    **dict.fromkeys(("count", "approx_count_distinct"), "BIGINT"),
    "get_json_object": "STRING",
    "is_variant_null": "BOOLEAN",
    "parse_json": "VARIANT",
    "to_json": "STRING",
    "split": "ARRAY<STRING>",
}


def group_of(name: str) -> str:
    """Return the title under which the section shows a function."""
    if name in AGGREGATES:
        return "Aggregates"
    return next((title for title, names in GROUPS.items() if name in names.split()), "Parts of nested values")


def _params(function: Function) -> str:
    names = [_PARAMS.get(param, param) for param in function.params]
    needed = len(names) - function.optional
    text = (", ".join(names[:needed]) + "".join(f"[, {name}]" for name in names[needed:])).replace(
        "[, ", "[", not needed
    )
    return f"{text}, …" if function.variadic else text
