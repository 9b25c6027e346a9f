"""Digests of queries over groups: gathered once for destinations that read the same, HAVING decided for all at once.

The evaluator's own code puts groups together and decides HAVING (`grouping.digests.group_code`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gateway.model.records import Destination
from grouping.digests.cursor import Offsets
from grouping.digests.gather import DigestMatches, DigestQuestion
from grouping.digests.group_code import GroupCode, GroupDestination, TooManyGroups, TooManyTogether
from grouping.digests.group_gather import GroupAnswer, GroupQuestion, gather_groups
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import Row, Rows
from grouping.model.group import GroupPlan, SelectList

__all__ = ["AnswerCache", "GroupRequest", "each_group_digest", "group_digests"]

log = logging.getLogger(__name__)

_MOST_KNOWN = 20_000
"""Answers that are kept."""


class GroupRequest(NamedTuple):
    """One destination's question about groups."""

    destination: Destination
    question: DigestQuestion
    plan: GroupPlan
    select: SelectList
    from_ms: int = 0
    """Where its digest begins."""
    reached: int = 0
    """The offset up to which its partition of the log is taken in."""


class _CachedAnswer(NamedTuple):
    """What is known of a question."""

    answer: GroupAnswer
    groups: Any
    """Its groups, put together (`GroupMerging.groups`)."""
    late: int
    """How many of their matches are of times before the digest."""
    reached: int
    """The offset of the log up to which they were gathered."""


_Answers = dict[bytes, _CachedAnswer | None]
"""By content of a question: its answer, None where it has more groups than a digest may hold."""
_REFUSAL = "It has too many groups, or too large ones."


class AnswerCache:
    """What was gathered of a cut lately: at a tick of many destinations those of one store come in different chunks."""

    def __init__(self) -> None:
        self._covered: Offsets = {}
        self._found: _Answers = {}

    def of(self, covered: Offsets | None) -> _Answers:
        """Return the answers by what decides them, besides the cut; None covers everything, which grows.

        The cut holds nothing of records that come in later, but these wait for later ticks: an answer tells up to
        where the log was read for it.
        """
        if covered is None or covered != self._covered or len(self._found) > _MOST_KNOWN:
            self._covered, self._found = covered or {}, {}
        return self._found


def each_group_digest(
    code: GroupCode, pending: PendingLog, asked: Sequence[GroupRequest], known: AnswerCache
) -> Iterator[DigestMatches]:
    """Yield what destinations are to get, in their order: half of them at a time where all have too many groups.

    Args:
        code: The evaluator's code.
        pending: Where the groups are.
        asked: One cut and one time of all.
        known: What was gathered before.
    """
    try:
        found = group_digests(code, pending, asked, known) if asked else []
    except TooManyTogether:
        half = len(asked) // 2
        for some in (asked[:half], asked[half:]):
            yield from each_group_digest(code, pending, some, AnswerCache())  # nothing is kept of so many
        return
    yield from found


def group_digests(
    code: GroupCode, pending: PendingLog, asked: Sequence[GroupRequest], known: AnswerCache | None = None
) -> list[DigestMatches]:
    """Return what destinations are to get, in their order.

    Args:
        code: The evaluator's code.
        pending: Where the groups are.
        asked: One cut and one time of all.
        known: What was gathered before.

    Raises:
        TooManyTogether: They have too many groups.
    """
    gathered = (known or AnswerCache()).of(asked[0].question.covered if asked else None)
    found: list[DigestMatches | None] = [None] * len(asked)
    for places in _by_query(asked):
        some = [asked[place] for place in places]
        contents = [_content(each) for each in some]
        try:
            made = _made(code, pending, some, contents, gathered)
        except TooManyTogether:
            raise
        except code.faults as fault:
            # A fault of ours in one query, which holds up nobody else's digests: these are tried again.
            log.exception("groups not put together", extra={"group": some[0].plan.group_id})
            failure = f"Its groups failed with {type(fault).__name__}."
            made = [DigestMatches(Rows(), None, (), None, 0, failure)] * len(some)
        for place, matches in zip(places, made, strict=True):
            found[place] = matches
    return [matches for matches in found if matches is not None]


_encode = msgspec.msgpack.Encoder().encode


def _content(each: GroupRequest) -> bytes:
    """Return what decides the answer of a question."""
    question = each.question
    over_ms = each.destination.trigger.over_ms
    query = each.plan.group_id, each.select.select_id
    times = (question.before_ms, over_ms, each.from_ms)
    return _encode((*query, question.store, question.cursor, question.visibility, *times))


def _by_query(asked: Sequence[GroupRequest]) -> Iterable[list[int]]:
    places: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(asked):
        places.setdefault((each.plan.group_id, each.select.select_id), []).append(place)
    return places.values()


def _made(
    code: GroupCode,
    pending: PendingLog,
    asked: Sequence[GroupRequest],
    contents: Sequence[bytes],
    gathered: _Answers,
) -> list[DigestMatches]:
    """Return what destinations of one query get."""
    plan, select = asked[0].plan, asked[0].select
    new = {content: each for content, each in zip(contents, asked, strict=True) if content not in gathered}
    if new:
        _gather(code, pending, select, new, gathered)
    answers = [gathered[content] for content in contents]
    destinations = [
        GroupDestination(
            answer.groups,
            each.destination.row,
            each.question.before_ms is not None and each.destination.clause.even_if_empty,
        )
        for each, answer in zip(asked, answers, strict=True)
        if answer is not None
    ]
    kept = iter(code.kept(plan, select, destinations) if destinations else ())
    made = []
    for known in answers:
        if known is None:
            made.append(DigestMatches(Rows(), None, (), None, 0, refusal=_REFUSAL))
            continue
        groups = next(kept)
        rows = Rows(Row(0, place, 0, body) for place, body in enumerate(groups.rows))
        made.append(DigestMatches(rows, *known.answer, counted=groups.matches, late=known.late, reached=known.reached))
    return made


def _gather(
    code: GroupCode, pending: PendingLog, select: SelectList, new: Mapping[bytes, GroupRequest], gathered: _Answers
) -> None:
    """Answer questions that differ; where one has too many groups, the others are answered without it."""
    left = dict(new)
    while left:
        merge = code.merging(select, len(left))
        questions = [
            GroupQuestion(each.question, each.destination.trigger.over_ms, each.from_ms) for each in left.values()
        ]
        try:
            answers, found = gather_groups(pending, questions, merge.take), merge.groups()
        except TooManyGroups as excess:
            refused = [content for number, content in enumerate(left) if number in excess.questions]
            gathered.update(dict.fromkeys(refused))
            for content in refused:
                del left[content]
            continue
        for (content, each), answer, groups, late in zip(
            left.items(), answers, found, merge.late.tolist(), strict=True
        ):
            gathered[content] = _CachedAnswer(answer, groups, late, each.reached)
        return
