"""Spark options in a file, since every user of the machine can read the arguments by which pyspark passes options."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["properties", "properties_file"]

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable with further arguments of the JVM that pyspark starts."""


@contextmanager
def properties_file(options: Mapping[str, str]) -> Iterator[None]:
    """Pass options to a JVM that is started within the block, by a file that only this user can read.

    The file is removed after the block. Options of ``spark-defaults.conf`` stay valid, unless they are in `options`.
    """
    if not options:
        yield
        return
    given = os.environ.get(_ARGUMENTS)
    handle, name = tempfile.mkstemp(suffix=".conf")  # of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(properties(options))
        own = f"--properties-file {shlex.quote(name)} --load-spark-defaults"
        os.environ[_ARGUMENTS] = f"{own} {given or 'pyspark-shell'}"
        yield
    finally:
        Path(name).unlink()
        if given is None:
            os.environ.pop(_ARGUMENTS, None)
        else:
            os.environ[_ARGUMENTS] = given


def properties(options: Mapping[str, str]) -> str:
    r"""Return options as a file of Java's `Properties`.

    Example:
        >>> print(properties({"spark.a": " b\\c"}), end="")
        spark.a=\u0020b\u005cc
    """
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in options.items())


def _escaped(text: str) -> str:
    """Write all characters except ASCII letters, digits, dots, dashes and underscores as escapes of UTF-16 units."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else _units(each) for each in text)


def _units(letter: str) -> str:
    body = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{body[at : at + 4]}" for at in range(0, len(body), 4))
