"""The programs of `docs/results.md` in other languages: each runs against the servers and prints Python's output."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.local.jars import KAFKA, ensure_jars
from gateway.local.java import find_java
from grouping.settings.settings import Settings
from tests.pages import Block, blocks
from tests.stack.lab import Lab
from tests.stack.server import Stack

_PAGE = blocks("results.md")
_CONFLUENT = "@confluentinc/kafka-javascript"


def test_node_with_kafkajs(stack: Stack, lab: Lab, tmp_path: Path) -> None:
    """The program reads replies in gzip, and matches in LZ4 by a codec that kafkajs is given."""
    _npm(tmp_path, *_packages("kafkajs.mjs"))
    assert _expected() == _printed(_program("kafkajs.mjs", stack, lab, tmp_path), ["node"], tmp_path)


def test_node_with_the_confluent_client(stack: Stack, lab: Lab, tmp_path: Path) -> None:
    """The client has a part in C, which the package brings where the releases of its project can be reached."""
    _npm(tmp_path, "--ignore-scripts", *_packages("confluent.mjs"))
    _installed(["npx", "--no-install", "node-pre-gyp", "install"], tmp_path / "node_modules" / _CONFLUENT)
    assert _expected() == _printed(_program("confluent.mjs", stack, lab, tmp_path), ["node"], tmp_path)


def test_java(stack: Stack, lab: Lab, tmp_path: Path) -> None:
    """The program is compiled and run with the libraries that the broker has."""
    jars, java = ensure_jars(KAFKA, Settings().jars, lambda _: None), find_java()
    if not (java.home / "bin" / "javac").exists():
        pytest.skip("the Java here has no compiler")
    command = [java.command, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    assert _expected() == _printed(_program("Reader.java", stack, lab, tmp_path), command, tmp_path)


def _expected() -> list[str]:
    [output] = [block for block in _PAGE if block.title == "output"]
    return _lines(output.text)


def _lines(text: str) -> list[str]:
    """Return lines of output without signs that languages write differently: the quotes and spaces of a row."""
    return [re.sub(r"[\s'\"]", "", line) for line in text.splitlines()]


def _program(title: str, stack: Stack, lab: Lab, folder: Path) -> Path:
    """Write a program of the page with unique names, and return its path."""
    [block] = [block for block in _PAGE if block.title == title]
    names = {
        "127.0.0.1:9092": stack.bootstrap,
        "rita": lab.subscriber("reader"),
        "tape": f"tape_{lab.token}_{block.line}",
    }
    pattern = "|".join(rf"(?<=[ '\"]){re.escape(name)}(?=[ '\"])" for name in names)
    path = folder / title
    path.write_text(re.sub(pattern, lambda found: names[found[0]], block.text), "utf-8")
    return path


def _printed(program: Path, command: Sequence[str], folder: Path) -> list[str]:
    ran = subprocess.run([*command, str(program)], cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    assert ran.returncode == 0, ran.stderr
    return _lines(ran.stdout)


def _packages(title: str) -> list[str]:
    """Return the packages that the page installs before a program."""
    number = next(number for number, block in enumerate(_PAGE) if block.title == title)
    before: Block = _PAGE[number - 1]
    return before.text.removeprefix("npm install").split()


def _npm(folder: Path, *arguments: str) -> None:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    _installed(["npm", "install", "--no-audit", "--no-fund", *arguments], folder)


def _installed(command: Sequence[str], folder: Path) -> None:
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command)} came to no end")
    if ran.returncode:
        pytest.skip(f"{' '.join(command)} failed: {ran.stderr.strip()[-300:]}")
