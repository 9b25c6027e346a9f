"""The examples of the documentation, carried out on the real servers."""

from __future__ import annotations

import gc
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_client import RawClient
from tests.pages import Block, blocks
from tests.stack.lab import Lab
from tests.stack.server import Stack

_STREAMS = (
    *(
        "quotes",
        "trades",
        "plain_trades",
        "framed_trades",
        "bad_trades",
        "orders",
        "payments",
        "epochs",
        "fine_epochs",
    ),  # statements
    *("market", "calls", "deliveries", "tape", "prices", "stocks", "shop_orders", "boilers", "clicks", "hooks"),
    "machines",
)
_CREATED = re.compile(r"CREATE (STREAM|TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)")
"""A statement of a page that creates a source."""
_TABLES = ("profiles", "owners", "companies", "pages")
_VIEWS = ("listed", "classified")
_SUBSCRIBERS = ("alice", "rita", "sam", "alerts_desk")
_REJECTED = "rejected: "
_RECORD_COMMAND = re.compile(
    r"^(?:echo '(?P<input>.*)' \| )?(?:\.venv/bin/)?cq (?P<arguments>(?:publish|streams|dead-letters) .*)$",
    re.MULTILINE,
)
"""A command about records with its input, in a shell block."""


class Example:
    """A page's examples under names that nobody else has: subscriber, streams and topics."""

    def __init__(self, stack: Stack, lab: Lab) -> None:
        self.client: RawClient = lab.client
        self.subscriber = lab.subscriber("reader")
        self._names = {name: f"{name}_{lab.token}" for name in (*_STREAMS, *_TABLES, *_VIEWS)}
        self._names |= dict.fromkeys(_SUBSCRIBERS, self.subscriber) | {"127.0.0.1:9092": stack.bootstrap}
        self._names["cq.replies"] = "cq.replies"  # no stream's name
        self._created: dict[str, str] = {}
        """The names of the page's other sources, each with the kind of its source."""

    def text(self, block: Block | str) -> str:
        """Return the text to be carried out."""
        text = block if isinstance(block, str) else block.text
        self._created |= {name: kind for kind, name in _CREATED.findall(text) if name not in self._names}
        pattern = "|".join(rf"(?<![\w.]){re.escape(name)}(?!\w)" for name in self._names)
        return re.sub(pattern, lambda found: self._names[found[0]], text)

    def leave(self) -> None:
        """Drop everything that the page has created."""
        listed = self.client.result("SHOW CQS", self.subscriber)["cqs"]
        for command in [self.client.send(f'DROP CQ "{item["cq"]}"', self.subscriber) for item in listed]:
            assert "ok" == self.client.reply(command).code
        for kind, names in (("VIEW", _VIEWS), ("TABLE", _TABLES), ("STREAM", _STREAMS)):
            own = [name for name, created in self._created.items() if created == kind]
            for name in (*(self._names[each] for each in names), *own):
                reply = self.client.execute(f'DROP {kind} "{name}"', self.subscriber)
                assert reply.code in ("ok", "unknown-stream"), reply.fields


@pytest.fixture
def example(stack: Stack, lab: Lab) -> Iterator[Example]:
    """A page's corner of the stack."""
    example = Example(stack, lab)
    yield example
    example.leave()


@pytest.mark.parametrize(
    "name",
    [
        "statements.md",
        "debezium.md",
        "expressions.md",
        "edges.md",
        "frames.md",
        "linear-road.md",
        "table-changes.md",
        "nothing-comes.md",
        "coming-from.md",
    ],
)
def test_statements_are_answered_as_the_page_says(example: Example, name: str) -> None:
    """Each statement of a page, in order, is accepted, or rejected with the code that its title names."""
    result: Any = None
    for block in blocks(name):
        if block.language == "sql":
            reply = example.client.execute(example.text(block), example.subscriber)
            expected = block.title.removeprefix(_REJECTED) if block.title else "ok"
            assert expected == reply.code, f"{block}: {reply.fields}"
            result = reply.result
        elif block.title == "result":
            _same_form(json.loads(block.text), result, str(block))


@pytest.mark.parametrize("name", ["results.md", "sdk.md"])
def test_programs_print_what_the_page_says(example: Example, name: str, run: Callable[[Block], str]) -> None:
    """Each program of a page, in order, runs and prints the output below it."""
    printed = ""
    for block in blocks(name):
        if block.language == "python":
            printed = run(block)
        elif block.title == "output":
            assert block.text.strip() == printed.strip(), str(block)


@pytest.mark.parametrize("name", ["../README.md", "first-steps.md", "alerts-in-an-hour.md", "records/index.md"])
def test_first_steps(stack: Stack, example: Example, run: Callable[[Block], str], name: str) -> None:
    """A page's `cq sql` statements are accepted; its programs, and its commands about records, run."""
    for block in blocks(name):
        if block.language == "python":
            printed = run(block)
        elif block.title == "output":
            assert block.text.strip() == printed.strip(), str(block)
        for statement in re.findall(r'cq sql (?:--subscriber \w+ )?"(.*)"', block.text):
            text = example.text(statement.replace('\\"', '"'))
            assert "ok" == example.client.execute(text, example.subscriber).code, statement
        for found in _RECORD_COMMAND.finditer(block.text):
            place = ["--data", str(stack.data), "--subscriber", example.subscriber]
            command = [sys.executable, "-m", "gateway.cli", *shlex.split(example.text(found["arguments"])), *place]
            ran = subprocess.run(command, input=found["input"] or "", capture_output=True, text=True, check=False)
            assert 0 == ran.returncode, f"{found[0]}: {ran.stderr}"


@pytest.fixture
def run(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Block], str]:
    """Return a function that runs a program of a page and returns its output."""
    monkeypatch.chdir(tmp_path)

    def run(block: Block) -> str:
        capsys.readouterr()
        program = compile(example.text(block), f"docs/{block.page}#{block.title}", "exec", dont_inherit=True)
        names: dict[str, Any] = {"__name__": "__main__"}
        try:
            exec(program, names)
        finally:
            names.clear()
            gc.collect()  # its connections end with the client, not with a broker already gone
        return capsys.readouterr().out

    return run


def _same_form(shown: Any, found: Any, where: str) -> None:
    """Compare a page's result with a real one: the same fields, and values of the same kinds."""
    if isinstance(shown, dict) and isinstance(found, dict):
        assert list(shown) == list(found), where
        for name in shown:
            _same_form(shown[name], found[name], f"{where} {name}")
    elif isinstance(shown, list) and isinstance(found, list):
        for one, other in zip(shown, found, strict=False):
            _same_form(one, other, where)
    elif shown is not None and found is not None:
        assert type(shown) is type(found), f"{where}: {found!r}"
