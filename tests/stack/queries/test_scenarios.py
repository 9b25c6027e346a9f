"""The scenarios on the real servers (`tests/scenario.py` says how they are written)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.scenario import SCENARIOS, Step, steps
from tests.stack.lab import Lab, Source


class Run:
    """The state of a scenario: its streams and CQs by their names in the scenario."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._streams: dict[str, Source] = {}
        self._queries: dict[str, tuple[Any, Source]] = {}
        self._unsettled: set[Source] = set()
        """Streams with events that may not be evaluated yet."""

    def perform(self, step: Step) -> None:
        """Carry out one step."""
        getattr(self, {"$": "act_", ">": "expect_", "!": "refuse_"}[step.sign] + step.verb)(step)

    def act_stream(self, step: Step) -> None:
        self._streams[step.options["name"]] = self._lab.stream(" ".join(step.body))

    def act_create(self, step: Step) -> None:
        name, owner = step.options["query"], self._owner(step)
        text = " ".join(step.body)
        [source] = [source for known, source in self._streams.items() if f"FROM {known}" in text]
        self._queries[name] = (self._lab.create(name, self._named(text), owner), source)

    def act_drop(self, step: Step) -> None:
        name = step.options["query"]
        self._queries[name][1].fence()
        self._lab.drop(name, self._owner(step))

    def act_send(self, step: Step) -> None:
        reply = self._lab.client.execute(self._sent(step.body), self._owner(step))
        assert "ok" == reply.code, reply.fields

    def act_publish(self, step: Step) -> None:
        source = self._streams[step.options["stream"]]
        source.publish_values(*[line.encode() for line in step.body])
        self._unsettled.add(source)

    def expect_matches(self, step: Step) -> None:
        assert [json.loads(line) for line in step.body] == self._rows(step)

    def expect_ids(self, step: Step) -> None:
        assert [int(word) for line in step.body for word in line.split()] == [row["id"] for row in self._rows(step)]

    def expect_same(self, step: Step) -> None:
        one, other = (self._part(step.options[name], step.options["part"]) for name in ("query", "as"))
        assert one == other

    def expect_other(self, step: Step) -> None:
        one, other = (self._part(step.options[name], step.options["part"]) for name in ("query", "than"))
        assert one != other

    def expect_groups(self, step: Step) -> None:
        stream = self._streams[step.options["stream"]]
        stream.unwatch()
        items = self._lab.client.result("SHOW GROUPS LIMIT 1000", self._lab.subscriber())["groups"]
        mine = [item for item in items if item["stream"] == stream.name]
        counted = {"groups": len(mine), "constants": sum(item["constants"] for item in mine)}
        expected = {name: int(count) for name, count in (line.split(": ") for line in step.body)}
        assert expected == {name: counted[name] for name in expected}

    def refuse_create(self, step: Step) -> None:
        *text, code = step.body
        statement = f'CREATE CQ "{step.options["query"]}" AS {self._named(" ".join(text))}'
        self._refused(statement, code, step)

    def refuse_drop(self, step: Step) -> None:
        self._refused(f'DELETE CQ "{step.options["query"]}"', step.body[-1], step)

    def refuse_send(self, step: Step) -> None:
        *text, code = step.body
        self._refused(self._sent(text), code, step)

    def _refused(self, statement: str, code: str, step: Step) -> None:
        reply = self._lab.client.execute(statement, self._owner(step))
        assert code == f"code:{reply.code}", reply.fields

    def _rows(self, step: Step) -> list[dict[str, Any]]:
        created, source = self._queries[step.options["query"]]
        if source in self._unsettled:
            source.fence()
            self._unsettled.remove(source)
        return [one.row for one in self._lab.settled_matches(created, source)]

    def _part(self, query: str, part: str) -> object:
        created = self._queries[query][0]
        return created["destination"]["id"] if part == "destination" else created[part]

    def _named(self, text: str) -> str:
        for known, source in self._streams.items():
            text = text.replace(f"FROM {known}", f"FROM {source.name}")
        return text

    def _sent(self, lines: Sequence[str]) -> str:
        """Return a statement with the sources and subscribers that it names as this run has them."""
        text = " ".join(lines)
        for known, source in self._streams.items():
            text = re.sub(rf"\b{known}\b", source.name, text)
        return re.sub(r"@(\w+)", lambda found: self._lab.subscriber(found[1]), text)

    def _owner(self, step: Step) -> str:
        return self._lab.subscriber(step.options.get("owner", "alice"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(lab: Lab, path: Path) -> None:
    """The scenario's acts have the effects that it expects."""
    run = Run(lab)
    for step in steps(path.read_text(encoding="utf-8")):
        try:
            run.perform(step)
        except AssertionError as exc:
            raise AssertionError(f"{path.name}:{step.line}: {exc}") from exc
