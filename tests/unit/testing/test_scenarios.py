"""The scenarios without servers: the matches of their queries, by the test kit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.testing import InputError, Stream, evaluate
from tests.scenario import SCENARIOS, Step, steps

_OF_THE_CATALOG = ("cq-exists", "unknown-cq", "unknown-stream")
"""Refusals by CQs that exist and by grants, which the kit does not know."""


@dataclass
class _Query:
    stream: str
    select: str
    events: list[bytes] = field(default_factory=list)
    live: bool = True

    def rows(self, streams: dict[str, Stream]) -> list[dict]:
        found = evaluate(self.select, streams[self.stream], self.events)
        assert all(row.matches is (row.result is not None) is (row.why is None) for row in found)
        return [row.result for row in found if row.result is not None]


def _perform(step: Step, streams: dict[str, Stream], queries: dict[str, _Query]) -> None:
    options, text = step.options, " ".join(step.body)
    match step.sign, step.verb:
        case "$", "stream":
            streams[options["name"]] = Stream(f"{options['name']} ({text})")
        case "$", "create":
            [stream] = [name for name in streams if f"FROM {name}" in text]
            queries[options["query"]] = _Query(stream, text)
        case "$", "drop":
            queries[options["query"]].live = False
        case "$", "publish":
            for query in queries.values():
                if query.live and query.stream == options["stream"]:
                    query.events += [line.encode() for line in step.body]
        case ">", "matches":
            assert [json.loads(line) for line in step.body] == queries[options["query"]].rows(streams)
        case ">", "ids":
            ids = [row["id"] for row in queries[options["query"]].rows(streams)]
            assert [int(word) for word in text.split()] == ids
        case "!", "create" if (code := step.body[-1].removeprefix("code:")) not in _OF_THE_CATALOG:
            with pytest.raises(InputError) as caught:
                evaluate(" ".join(step.body[:-1]), next(iter(streams.values())), [])
            assert code == caught.value.code


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    """In process, each query of a scenario has the matches that it has on the servers."""
    streams: dict[str, Stream] = {}
    queries: dict[str, _Query] = {}
    for step in steps(path.read_text(encoding="utf-8")):
        try:
            _perform(step, streams, queries)
        except AssertionError as exc:
            raise AssertionError(f"{path.name}:{step.line}: {exc}") from exc
