"""`cq publish`, `cq dead-letters` and `cq streams describe` on the real servers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.server import Stack

Ran = subprocess.CompletedProcess[str]


@pytest.fixture
def cq(stack: Stack, lab: Lab) -> Any:
    """The command line on the stack, as the owner of the lab's streams."""

    def run(*arguments: str, text: str = "") -> Ran:
        place = ["--data", str(stack.data), "--subscriber", lab.subscriber("owner")]
        command = [sys.executable, "-m", "gateway.cli", *arguments, *place]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)

    return run


def test_a_file_is_published_and_broken_lines_are_told(cq: Any, lab: Lab, tmp_path: Path) -> None:
    """Good lines are events, keyed by a column; broken ones are named, and counted exactly."""
    source = lab.stream("symbol STRING, price DOUBLE", partitions=2)
    made = lab.create("all", f"SELECT symbol, price, _key FROM {source.name} WHERE price > 0")
    lines = tmp_path / "quotes.jsonl"
    lines.write_text("\n".join(['{"symbol": "a", "price": 1.5}', "{", '{"symbol": "b", "price": 2}', "7"]))
    ran = cq("publish", source.name, str(lines), "--key", "symbol")
    assert 1 == ran.returncode
    assert f'2 records published to topic "{source.topic}"' == ran.stdout.strip()
    reported = ran.stderr.splitlines()
    assert reported[0].startswith("line 2: the line is not JSON")
    assert ["line 4: the line is JSON, but not an object", "2 broken lines left out"] == reported[1:]
    ran = cq("publish", source.name, "--format", "csv", "--key", "symbol", text="symbol,price\nc,3\n")
    assert (0, f'1 record published to topic "{source.topic}"') == (ran.returncode, ran.stdout.strip())
    ran = cq("publish", source.name, str(lines), "--strict")
    assert (1, f'1 record published to topic "{source.topic}"') == (ran.returncode, ran.stdout.strip())
    assert "1 broken line left out, where it stopped" == ran.stderr.splitlines()[-1]
    lab.results.until(lambda: len(lab.results.of(made["destination"])) == 4, "four matches")
    rows = [each.row for each in lab.results.of(made["destination"])]
    found = {(row["symbol"], row["price"], row["_key"]) for row in rows}
    assert {("a", 1.5, "a"), ("a", 1.5, None), ("b", 2.0, "b"), ("c", 3.0, "c")} == found


def test_dead_letters_are_listed_and_replayed(cq: Any, lab: Lab) -> None:
    """A letter is told with its reason; only a record that fits the stream by now is published again, once asked."""
    source = lab.stream("id INT")
    made = lab.create("all", f"SELECT id FROM {source.name} WHERE id > 0")
    assert "no dead letters" == cq("dead-letters", source.name).stdout.strip()
    source.publish_values(b'{"id": 1}', b'{"id": "2"}', b"[]")

    def listed() -> list[str]:
        return [line for line in cq("dead-letters", source.name).stdout.splitlines() if "undecodable" in line]

    wait_until(lambda: len(listed()) == 2, "two dead letters")
    place, detail = (
        re.escape(f"{source.topic}/0/1"),
        'Column "id" of type INT cannot hold the value: a string is no number.',
    )
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d  undecodable  {place}  {re.escape(detail)}", listed()[0])
    ran = cq("dead-letters", source.name, "--replay")
    assert (0, "nothing to replay") == (ran.returncode, ran.stdout.splitlines()[-1])
    # The same topic read by another declaration, as a changed stream reads it.
    other = f"x_{source.name}"
    options = f"topic = '{source.topic}', format = 'json', lenient = true"
    lab.client.result(f"CREATE STREAM {other} (id INT) WITH ({options})", lab.subscriber("owner"))
    again = lab.create("again", f"SELECT id FROM {other} WHERE id > 0")
    ran = cq("dead-letters", other, "--replay", "--yes")
    assert 0 == ran.returncode
    assert ["1 dead letter left: the record does not fit the stream: The value is JSON but no object"] == [
        line for line in ran.stdout.splitlines() if " left: " in line
    ]
    assert f'1 record published to topic "{source.topic}"' == ran.stdout.splitlines()[-1]
    lab.results.until(lambda: len(lab.results.of(again["destination"])) == 1, "the record again")
    assert [{"id": 2}] == [each.row for each in lab.results.of(again["destination"])]
    lab.results.until(lambda: lab.results.of(made["destination"]), "the match of the first record")
    assert [{"id": 1}] == [each.row for each in lab.results.of(made["destination"])]
    lab.drop("again")
    lab.client.result(f"DROP STREAM {other}", lab.subscriber("owner"))


def test_a_stream_is_described(cq: Any, lab: Lab) -> None:
    """Topic, options and columns with their places, for a person and a program."""
    source = lab.stream("p DOUBLE FROM '$.data.p', list ARRAY<INT>")
    described = cq("streams", "describe", source.name).stdout
    assert re.search(r"p +DOUBLE +'\$\.data\.p'", described), described
    assert re.search(r"list +ARRAY<INT>", described), described
    assert f"topic        {source.topic}" in described
    assert source.topic == json.loads(cq("streams", "describe", source.name, "--json").stdout)["topic"]
    assert 1 == cq("streams", "describe", "nowhere").returncode
