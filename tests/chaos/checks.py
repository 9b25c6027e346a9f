"""Invariants at every quiet moment: nothing lost, nothing doubled, nothing with different content."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tests.chaos.companies import JOINED, industry_of
from tests.chaos.lives import DIGESTS, Cq
from tests.kafka_tail import Tail
from tests.oracle import Oracle, Position, Row, row_of
from tests.queries import Event, Stream
from tests.stack.lab import Lab

__all__ = ["Comparison"]


class Comparison:
    """Every CQ beside the oracle, at one moment."""

    def __init__(
        self,
        declared: Stream,
        events: Sequence[tuple[Position, Event]],
        written: Mapping[Position, int],
        cqs: Sequence[Cq],
    ) -> None:
        self._events = events
        self._by_position = dict(events)
        self._written = written
        self._oracle = Oracle(declared, events)
        self._numbers = {one.values["id"]: position for position, one in events if "id" in one.values}
        self._sharing: dict[str, list[Cq]] = defaultdict(list)
        for cq in cqs:
            self._sharing[_destination(cq)].append(cq)
        self._cqs = [cq for cq in cqs if not cq.retired]
        self._rows: dict[int, dict[Position, Row]] = {}

    def missing(self) -> dict[str, set[Position]]:
        """Return which events were not handed over yet to a CQ, by its name."""
        return {cq.name: lost for cq in self._cqs if (lost := self._due(cq) - self._got(cq).keys())}

    def lost(self, lab: Lab) -> list[str]:
        """Return the same in words, and whether the results were written."""
        missing = self.missing()
        return [
            f"lost: {self._show(missing[cq.name])} for {_text(cq)}; its topic has {_written(cq, missing[cq.name], lab)}"
            for cq in self._cqs
            if cq.name in missing
        ]

    def wrong(self) -> list[str]:
        """Return results that came twice, to the wrong CQ, or differ from the oracle's."""
        lines = []
        for cq in self._cqs:
            got, rows = self._got(cq), self._rows_of(cq)
            if twice := [position for position, count in got.items() if count > 1]:
                lines.append(f"doubled: {self._show(twice)} for {_text(cq)}")
            allowed = {position for sharer in self._sharing[_destination(cq)] for position in self._may(sharer)}
            if extra := got.keys() - allowed:
                lines.append(f"too many: {self._show(extra)} for {_text(cq)}")
            if other := [position for position, row in dict(cq.rows).items() if row != rows.get(position)]:
                lines.append(f"another content: {self._show(other)} for {_text(cq)}")
        return lines

    def wrong_records(self, lab: Lab) -> list[str]:
        """Return the records of change-based destinations that differ from the oracle's.

        That no id stands for two contents is seen to when they are read.
        """
        lines = []
        for cq in self._cqs:
            if cq.mode in ("virtual", *DIGESTS):
                continue
            rows = self._rows_of(cq)
            matches = [one for one in lab.results.of(cq.created["destination"]) if one.kind == "cq.match"]
            for one in matches:
                position = Position(*one.source[1:])
                if position not in rows or not self._is_row(cq, position, rows[position], one.value):
                    lines.append(f"another content: {one} for {_text(cq)}")
        return lines

    def _is_row(self, cq: Cq, position: Position, wanted: Row, value: bytes) -> bool:
        """Tell whether a result is the oracle's, with a joined row no older than the event."""
        if cq.join is None:
            return row_of(cq.query, value) == wanted
        *rest, industry, (_, written) = row_of(replace(cq.query, items=(*cq.query.items, *JOINED)), value)
        least = self._written.get(position)
        joined = ("industry", industry_of(self._by_position[position]))
        fresh = written is None if least is None else isinstance(written, int) and written >= least
        return tuple(rest) == wanted and industry == joined and fresh

    def matches(self) -> int:
        """Return how many results were handed over."""
        return sum(self._got(cq).total() for cq in self._cqs)

    def _rows_of(self, cq: Cq) -> dict[Position, Row]:
        if id(cq) not in self._rows:
            rows = self._oracle.rows(cq.query)
            if cq.join is not None:
                rows = {each: row for each, row in rows.items() if cq.join.keeps(self._by_position[each])}
            self._rows[id(cq)] = rows
        return self._rows[id(cq)]

    def _due(self, cq: Cq) -> set[Position]:
        promised = [self._events[n] for n in cq.must(len(self._events))]
        if cq.mode in DIGESTS:
            promised = [(position, one) for position, one in promised if "id" in one.values]
        return {position for position, _ in promised} & self._rows_of(cq).keys()

    def _may(self, cq: Cq) -> set[Position]:
        return {self._events[n][0] for n in cq.may(len(self._events))} & self._rows_of(cq).keys()

    def _got(self, cq: Cq) -> dict[Position, int]:
        digested = dict(cq.digested)  # a copy: readers go on meanwhile
        return {self._numbers[number]: count for number, count in digested.items()} | cq.got

    def _show(self, positions: Collection[Position]) -> str:
        some = sorted(positions)[:3]
        places = {position: number for number, (position, _) in enumerate(self._events) if position in some}
        return f"{len(positions)}, as {[(tuple(one), f'event {places.get(one)}') for one in some]}"


def _destination(cq: Cq) -> str:
    """Return the common key of CQs that get the same records; a virtual CQ's reader selects its own."""
    return json.dumps([cq.subscriber, cq.name]) if cq.mode == "virtual" else cq.created["destination"]["id"]


def _written(cq: Cq, missing: Collection[Position], lab: Lab) -> str:
    """Return the contents of a CQ's topic: how many records, and at which offsets the missing ones are."""
    found: list[tuple[Position, int]] = []
    destination, kinds, tail = cq.created["destination"], Counter[str](), Tail(lab.client.bootstrap)
    begins = destination["offset"] if cq.mode == "virtual" else {destination["partition"]: destination["offset"]}
    if destination["topic"] not in lab.client.topics():
        return "gone"
    for partition, offset in begins.items() if isinstance(begins, dict) else enumerate(begins):
        tail.add(destination["topic"], partition, offset)
    for message in tail.drain():
        if message.key().decode() in (destination["key"], destination["id"]):
            headers = dict(message.headers())
            kinds[headers["ce_type"].decode()] += 1
            *_, partition, offset = headers["ce_id"].decode().split("/")
            if headers["ce_type"] == b"cq.match" and (place := Position(int(partition), int(offset))) in missing:
                found.append((place, message.offset()))
    tail.close()
    return f"{dict(kinds)} from {begins}, and of the lost ones {len(found)}, as {found[:3]}"


def _text(cq: Cq) -> str:
    lived = f"live from event {cq.live_from}, dropped at {cq.drop_sent}, gone from {cq.gone_from}"
    return f"{cq.subscriber}'s {cq.text[:300]} ({lived}, {cq.created['destination']['id']})"
