"""Parts of URLs are as Spark finds them, with Java's URI: of good URLs, of odd ones, and of texts that are none."""

from __future__ import annotations

import gc
import warnings

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_jobs.engine.expressions.texts.urls import part_of_url

_URLS = (
    "http://spark.apache.org/path?query=1", "https://ann:pw@h.example.com:8080/a/b;c?q=1&p=%20x&q=2#top",
    "ftp://1.2.3.4/x", "http://[::1]:80/i", "http://my_host/x?id=7", "http://a-.com/x", "http://h:/p", "http://h:x/p",
    "mailto:ann@x.org", "/a/b?c=d#e", "?q=1", "#f", "", "http://", "http:///p", "file:///etc/x?y",
    "http://\xe9.org/\xfc?\xf6=1#\xdf", "http://h/a b", "http://h/a|b", "http://h/%zz", "http://h/a%41?x=[1]",
    "http://h/[x]", "1http://h/", "a+b-c.d:x", "http://h?id=5&xid=6&id=7", "http://h/p?id=&b", "http://256.1.1.1/",
    "http://1.2.3/", "http://h.1x/", "http://h.x1./", "http://@h/", "http://u@/", "http://u%41:x@h/", "http://h%41/",
    "urn:isbn:1?x#y", "//h/p", "http:/x", "http:x", "::", "http://h/a\\b", "http://h/\U0001f600", "http://h/\xa0",
    "http://h:99999999999/", "http://h:80:80/", "http://a..b/", "http://-a/", "http://h#a#b", "http://h/p?a#", "NO",
    "http://h/^", "http://h/\u3000", "http://h/\x85", "http://h/\u2028x", "http://[::1%eth0]/", "http://[1:2]/",
    "http://[::1/", "http://[fe80::1.2.3.4]:1/x", "http://a_b:80/", "http://a_b@c/", "http://a:b@c_d/",
    "http://h%zz/", "http://%41/", "http://\xe9/", "http://\xe9:80@h/", "x://", "x:///", "x:/", "x:", "x:#f", "//",
    "///", "//?", "//#", "http://h/;p=1?q", "a:b:c", "a/b:c", "a?b:c", "http://0001.2.3.4/", "http://1.2.3.4.5/",
    "http://1.2.3.4x/", "http://9/", "http://9a/", "http://a.9/", "http://a.9b/", "http://a.b./", "http://./",
    "http://h:/", "http://h:80", "http://h/%4", "http://h/%", "http://h?%zz", "http://h#%zz", "http://h/'",
    "http://h/<", "http://h/`", "http://h/{a}", 'http://h/"', "http://h/\\", "http://h/\t", " http://h/",
    "http://h/ ", "http://[::1]x/", "http://[::1]:x/", "http://u@[::1]:80/", "http://u@v@h/", "http://h:+80/",
    "http://h:0080/", "http://h:2147483647/", "http://h:2147483648/", "http://a%25b/", "http://[::ffff:1.2.3.4]/",
    "http://[::]/", "http://[1::2::3]/", "http://[12345::]/", "http://[::1]",
)  # fmt: skip
_PARTS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "host", "")
_KEYS = ("id", "q", "x", "", "c=d", "y%")


def test_parts_are_as_spark_finds_them(spark: SparkSession) -> None:
    """Each part, and each key of a query, of each text."""
    asked = [(part, None) for part in _PARTS] + [("QUERY", key) for key in _KEYS] + [("PATH", "x")]
    calls = [f"try_parse_url(url, '{part}'" + (")" if key is None else f", '{key}')") for part, key in asked]
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark leaves its sockets to the garbage collector
        rows = spark.createDataFrame(pa.table({"url": _URLS})).selectExpr("url", *calls).toArrow()
        gc.collect()
    for url, *found in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        for (part, key), theirs in zip(asked, found, strict=True):
            if (ours := part_of_url(url, part, key)) != theirs:
                wrong.append(f"{part}, {key} of {url!r} is {ours!r}, Spark's {theirs!r}")
    assert not wrong, "\n".join(wrong)
