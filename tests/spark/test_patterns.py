"""Regular expressions mean the same as in Spark: usual ones, odd ones, and properties for every character."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Sequence

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from grouping.model.errors import InputError
from grouping.model.sql_type import BOOLEAN, STRING
from grouping.values.patterns import occurrences, rust_groups
from spark_jobs.engine.expressions.texts.regex import REGEX
from spark_jobs.engine.expressions.texts.search import rlike
from spark_jobs.engine.expressions.types import Operand
from tests.unit.compiler.test_usual_patterns import USUAL

_ODD = [
    r"[a-z-9]", r"[\d-x]", r"[--a]", r"[a&b]", r"[a[bc]d]", r"[\w&&[^\d]]", r"[^\s,]+,", r"\07", r"\012b", r"a\eb",
    r"[\h\v]", r"[\p{L}\d]", r"[^\p{L}]", r"\pL", r"\PL", r"\R\R", r"a\R", r"\R$", r"a\z|b", r"[^b]$|a", r"(a$|b)",
    r"x?(,|$)", r"(?:a|b$)?", r"(?m)^a|b$", r"(?m)(^|,)a", r"(?m)a$|^b", r"(?s).$", r"(?s)^.$", r"(?s)a.*b\z",
    r"(?-i)a", r"(?i)a(?-i)b", r"((?i)a)b", r"(?i:a)(?s:.)b", r"(?is-m:A.)b", r"^(?=a)(?!ab)a", r"^(?=.*b$)a",
    r"^(?!a$)(?!b$)", r"^a(?=b|$)", r"^.{2}(?!c)", r"(?<!a)b|b(?!a)", r"(?<=a|\n)b", r"(?<=^|,)b", r"b(?!\s)",
    r"(?<!ab)c", r"(?<!ab|cb)a", r"a(?!bc|ba)", r"a(?![bc])", r"(?<![^,])a(?![^,])", r"b(?<!ab)$", r"(?<!\n)$",
    r"(?<!b)\z", r"^(?!.*(?:a|b)).*$", r"\bab\b", r"(?i)\bAB\b", r"\Z", r"a\Z", r"[^\n]\Z", r"\x61", r"[\x61-\x63]$",
]  # fmt: skip
_TEXTS = [
    "", "a", "b", "ab", "ba", "abc", "aba", "abb", "abca", "cb", "cba", "a,b", "b,a", ",a", "a,", "A", "AB", "aB", "Ab",
    "a\n", "a\r", "a\r\n", "a\n\n", "\n", "\r\n", "\na", "\r\na", "b\na", "b\r\na\r\nb", "a\rb", "a\u2028b", "a\u0085",
    "b\n", "b\r\n", "ab\n", "ab\u2029", "\na\n", "a\x1bb", "a\tb", "9", "x", "-", "&", "\x07", "\nb", " ", "\u00e9",
    "\u00c9b", "\U0001f600", "\u212a", "d", "a b", "b a", "\x0b",
]  # fmt: skip
_PROPERTIES = (
    *"L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc".split(),
    *"Lower Upper ASCII Alpha Digit Alnum Punct Graph Print Blank Cntrl XDigit Space".split(),
    *"IsLowercase IsUppercase IsIdeographic IsWhite_Space IsL".split(),
    *"IsArabic IsCyrillic IsDevanagari IsGreek IsHan IsHangul IsHebrew IsHiragana IsKatakana IsLatin IsThai".split(),
    *("gc=Lu", "script=Greek"),
)

_CHANGED = (0x1171E, 0x16FE2, 0x16FE3, 0xAB69)
"""Characters that later versions of Unicode describe otherwise."""


def test_patterns_are_found_where_spark_finds_them(spark: SparkSession) -> None:
    """Each accepted pattern of the list of usual ones, and each odd one, in its own texts and in many others."""
    texts = {pattern: [*found, *others, *_TEXTS] for pattern, found, others in (one for one in USUAL if len(one) == 3)}
    texts |= {pattern: _TEXTS for pattern in _ODD}
    frame = _pairs(texts)
    own = frame.select(rlike([_operand("text"), _operand("pattern")], BOOLEAN).expr.alias("own"))["own"].to_list()
    expected = _rows(_spark_frame(spark, frame).selectExpr("text RLIKE pattern AS met"))
    pairs = frame.rows()
    assert [] == [
        (pattern, text, ours, theirs)
        for (pattern, text), ours, (theirs,) in zip(pairs, own, expected, strict=True)
        if ours != theirs
    ]


def test_occurrences_are_those_of_spark(spark: SparkSession) -> None:
    """The first occurrence of each pattern that has groups here, and the text without its occurrences."""
    patterns = [*_ODD, *(case[0] for case in USUAL if len(case) == 3)]
    for read, name, extra in ((rust_groups, "regexp_extract", 0), (occurrences, "regexp_replace", "#")):
        frame = _pairs({pattern: _TEXTS for pattern in patterns if _is_accepted(read, pattern)})
        assert frame["pattern"].n_unique() > 30
        third = Operand(pl.repeat(extra, pl.len()), STRING)
        made = REGEX[name]([_operand("text"), _operand("pattern"), third], STRING).expr.alias("made")
        ours = frame.select(made)["made"].to_list()
        written = f"{name}(text, pattern, {extra!r})"
        theirs = _rows(_spark_frame(spark, frame).selectExpr(f"{written} AS made"))
        assert [] == [
            (pattern, text, one, other)
            for (pattern, text), one, (other,) in zip(frame.rows(), ours, theirs, strict=True)
            if one != other
        ]


def test_properties_are_of_the_same_characters(spark: SparkSession) -> None:
    """Each property is that of Java 17, for the characters below U+3400 and for a sample of the others."""
    codes = [*range(0x3400), *range(0x3400, 0xD800, 97), *range(0xE000, 0x110000, 97), *_CHANGED]
    frame = pl.DataFrame({"code": codes, "text": [chr(code) for code in codes]})
    sums = {}
    for name in _PROPERTIES:
        pattern = Operand(pl.repeat(f"\\p{{{name}}}", pl.len(), dtype=pl.String), STRING)
        matching = frame.filter(rlike([_operand("text"), pattern], BOOLEAN).expr)["code"]
        sums[name] = (len(matching), matching.sum())
    columns = [
        part
        for number, name in enumerate(_PROPERTIES)
        for part in (
            f"count_if(text RLIKE '\\\\p{{{name}}}') AS n{number}",
            f"coalesce(sum(CASE WHEN text RLIKE '\\\\p{{{name}}}' THEN code END), 0) AS s{number}",
        )
    ]
    [row] = _rows(_spark_frame(spark, frame).selectExpr(*columns))
    theirs = {name: tuple(row[2 * number : 2 * number + 2]) for number, name in enumerate(_PROPERTIES)}
    assert theirs == sums


def _is_accepted(read: object, pattern: str) -> bool:
    try:
        read(pattern)  # type: ignore[operator]
    except InputError:
        return False
    return True


def _operand(name: str) -> Operand:
    return Operand(pl.col(name), STRING)


def _pairs(texts: dict[str, list[str]]) -> pl.DataFrame:
    pairs = [(pattern, text) for pattern, each in texts.items() for text in dict.fromkeys(each)]
    return pl.DataFrame(pairs, schema={"pattern": pl.String, "text": pl.String}, orient="row")


def _spark_frame(spark: SparkSession, frame: pl.DataFrame) -> DataFrame:
    return spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _rows(frame: DataFrame) -> Sequence[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves the socket of each result open
        table = frame.toArrow()
        gc.collect()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
