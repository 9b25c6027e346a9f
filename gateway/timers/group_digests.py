"""Digests of queries over groups: gathered once for destinations that read the same, HAVING decided for all at once.

The evaluator's own code puts groups together and decides HAVING. It is loaded with the first tick that needs it, since
it takes long.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import NamedTuple

import msgspec

from gateway.model.records import Destination
from grouping.digests.cursor import Offsets
from grouping.digests.gather import DigestMatches, DigestQuestion
from grouping.digests.group_gather import GroupAnswer, gather_groups
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import Row, Rows
from grouping.model.group import GroupPlan, SelectList

__all__ = ["GroupRequest", "KnownAnswers", "group_digests"]

log = logging.getLogger(__name__)

_MOST_KNOWN = 20_000
"""Answers that are kept."""


class GroupRequest(NamedTuple):
    """One destination's question about groups."""

    destination: Destination
    question: DigestQuestion
    from_ms: int
    """Where the digest begins."""
    plan: GroupPlan
    select: SelectList


class KnownAnswers:
    """What was gathered of a cut lately: at a tick of many destinations those of one store come in different chunks."""

    def __init__(self) -> None:
        self._covered: Offsets = {}
        self._found: dict[bytes, GroupAnswer] = {}

    def of(self, covered: Offsets | None) -> dict[bytes, GroupAnswer]:
        """Return the answers by what decides them, besides the cut; None covers everything, which grows."""
        if covered is None or covered != self._covered or len(self._found) > _MOST_KNOWN:
            self._covered, self._found = covered or {}, {}
        return self._found


def group_digests(
    pending: PendingLog, asked: Sequence[GroupRequest], known: KnownAnswers | None = None
) -> list[DigestMatches]:
    """Return what destinations are to get, in their order.

    Args:
        pending: Where the groups are.
        asked: One cut and one time of all.
        known: What was gathered before.
    """
    answers = (known or KnownAnswers()).of(asked[0].question.covered if asked else None)
    contents = [_content(each) for each in asked]
    new = {content: each for content, each in zip(contents, asked, strict=True) if content not in answers}
    questions = ((each.question, each.destination.trigger.over_ms) for each in new.values())
    answers.update(zip(new, gather_groups(pending, questions), strict=True))
    found: list[DigestMatches | None] = [None] * len(asked)
    for places in _by_query(asked):
        some = [asked[place] for place in places]
        made = _made(some, answers, [contents[place] for place in places])
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


def _made(
    asked: Sequence[GroupRequest], answers: Mapping[bytes, GroupAnswer], own: Sequence[bytes]
) -> Iterator[DigestMatches]:
    """Yield what destinations of one query get."""
    kept = _kept()
    used = {content: place for place, content in enumerate(dict.fromkeys(own))}
    destinations = [
        kept.GroupDestination(
            used[content],
            each.destination.row,
            each.from_ms,
            each.question.before_ms is not None and each.destination.clause.even_if_empty,
        )
        for each, content in zip(asked, own, strict=True)
    ]
    gathered = [answers[content] for content in used]
    try:
        groups = kept.kept_groups(asked[0].plan, asked[0].select, gathered, destinations)
    except kept.FAULTS as fault:
        # A fault of ours in one query, which holds up nobody else's digests: these are tried again.
        log.exception("groups not put together", extra={"group": asked[0].plan.group_id})
        failure = f"Its groups failed with {type(fault).__name__}."
        for content in own:
            answer = answers[content]
            yield DigestMatches(Rows(), answer.left_ms, answer.held, answer.oldest, 0, failure)
        return
    for content, each in zip(own, groups, strict=True):
        answer = answers[content]
        rows = Rows(Row(0, place, 0, body) for place, body in enumerate(each.rows))
        yield DigestMatches(
            rows, answer.left_ms, answer.held, answer.oldest, answer.repeats, counted=each.matches, late=each.late
        )


@cache
def _kept() -> ModuleType:
    from spark_jobs.groups import kept  # noqa: PLC0415 - its libraries take long to load

    return kept
