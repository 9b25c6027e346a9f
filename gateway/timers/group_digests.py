"""Digests of queries over groups: gathered once for destinations that read the same, HAVING decided for all at once.

The evaluator's own code puts groups together and decides HAVING. It is loaded with the first tick that needs it, since
it takes long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import NamedTuple

import msgspec

from gateway.model.records import Destination
from grouping.digests.gather import DigestMatches, DigestQuestion
from grouping.digests.group_gather import GroupAnswer, gather_groups
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import Row, Rows
from grouping.model.group import GroupPlan, SelectList

__all__ = ["GroupRequest", "group_digests"]


class GroupRequest(NamedTuple):
    """One destination's question about groups."""

    destination: Destination
    question: DigestQuestion
    from_ms: int
    """Where the digest begins."""
    plan: GroupPlan
    select: SelectList


def group_digests(log: PendingLog, asked: Sequence[GroupRequest]) -> list[DigestMatches]:
    """Return what destinations are to get, in their order.

    Args:
        log: Where the groups are.
        asked: One cut and one time of all.
    """
    numbers: dict[bytes, int] = {}
    own = [numbers.setdefault(_content(each), len(numbers)) for each in asked]
    first = {number: each for number, each in reversed(list(zip(own, asked, strict=True)))}
    questions = ((first[number].question, first[number].destination.trigger.over_ms) for number in range(len(numbers)))
    answers = list(gather_groups(log, questions))
    found: list[DigestMatches | None] = [None] * len(asked)
    for places in _by_query(asked):
        some = [asked[place] for place in places]
        made = _made(some, answers, [own[place] for place in places])
        for place, matches in zip(places, made, strict=True):
            found[place] = matches
    return [matches for matches in found if matches is not None]


_encode = msgspec.msgpack.Encoder().encode


def _content(each: GroupRequest) -> bytes:
    """Return what decides the answer of a question."""
    question = each.question
    over_ms = each.destination.trigger.over_ms
    return _encode((question.store, question.cursor, question.visibility, question.before_ms, over_ms))


def _by_query(asked: Sequence[GroupRequest]) -> Iterable[list[int]]:
    places: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(asked):
        places.setdefault((each.plan.group_id, each.select.select_id), []).append(place)
    return places.values()


def _made(asked: Sequence[GroupRequest], answers: Sequence[GroupAnswer], own: Sequence[int]) -> Iterator[DigestMatches]:
    """Yield what destinations of one query get."""
    kept = _kept()
    used = {number: place for place, number in enumerate(dict.fromkeys(own))}
    destinations = [
        kept.GroupDestination(
            used[number],
            each.destination.row,
            each.from_ms,
            each.question.before_ms is not None and each.destination.clause.even_if_empty,
        )
        for each, number in zip(asked, own, strict=True)
    ]
    groups = kept.kept_groups(asked[0].plan, asked[0].select, [answers[number] for number in used], destinations)
    for number, each in zip(own, groups, strict=True):
        answer = answers[number]
        rows = Rows(Row(0, place, 0, body) for place, body in enumerate(each.rows))
        yield DigestMatches(
            rows, answer.left_ms, answer.held, answer.oldest, answer.repeats, counted=each.matches, late=each.late
        )


@cache
def _kept() -> ModuleType:
    from spark_jobs.groups import kept  # noqa: PLC0415 - its libraries take long to load

    return kept
