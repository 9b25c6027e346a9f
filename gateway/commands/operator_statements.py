"""Statements about other subscribers' CQs, for subscribers in the role ``operator``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice

import msgspec

from gateway.access.roles import OPERATOR, in_role, is_operator
from gateway.commands.listing import cq_item, like_filter, page_limit, page_of, search
from gateway.commands.prepared import Answer, PreparedCommand, Result
from gateway.model.group_pause import GroupPause
from gateway.model.loaded import Loaded
from gateway.model.quota import QUOTA_NAMES, Quota
from gateway.model.unit import CqKey
from gateway.registry.registry import Registry
from gateway.sources.declarations import Origin
from gateway.state.catalog_records import pause_record, quota_record
from gateway.state.match_counts import MatchCounts
from gateway.state.work import Change, joined
from gateway.state.working_copy import WorkingCopy
from grouping.model.errors import InputError
from grouping.model.ids import CqName, GroupId, StreamId, Subscriber
from grouping.model.query import DropCqs, Pause, SetQuota, ShowCqsOf, ShowQuota
from grouping.settings.settings import Settings
from grouping.statements.tokens import clipped

__all__ = ["OperatorStatements", "check_operator"]

_DROPPED_AT_ONCE = 2_000
"""The largest number of CQs that one DROP CQS drops, because a unit of work has at most a few thousand CQs."""


class OperatorStatements:
    """Carries out operators' statements within the working copy's unit."""

    def __init__(self, settings: Settings, working: WorkingCopy, registry: Registry, counts: MatchCounts) -> None:
        self._settings = settings
        self._working = working
        self._registry = registry
        self._counts = counts

    def show_cqs(self, command: PreparedCommand[ShowCqsOf], origin: Origin) -> Answer:
        """Return one page of the CQs of a subscriber, or of all subscribers.

        Raises:
            InputError: ``syntax-error``: AFTER does not have the form of `next` in a reply.
        """
        statement = command.statement
        limit = page_limit(statement.limit)
        matches = like_filter("%" if statement.like is None else statement.like)
        chosen, last = search(self._following(statement), lambda key: matches(key.name), limit)
        page = self._working.load(chosen)
        place, of_all = ("after", True) if statement.subscriber is None else ("cq", False)
        searched_to = None if last is None else json.dumps(last) if of_all else last.name
        item = partial(self._item, page, now_ms=origin.accepted_ms)
        return Answer(page_of("cqs", place, chosen, limit, item, searched_to))

    def _following(self, statement: ShowCqsOf) -> Iterator[CqKey]:
        """Yield the CQs after the CQ that AFTER names, ordered by subscriber and name."""
        last = _place(statement)
        own = self._working.names
        names: Iterator[tuple[Subscriber, str]] = (
            (last.subscriber, name) for name in own(last.subscriber).after(last.name)
        )
        if statement.subscriber is None:
            others = (each for each in self._working.subscribers() if each > last.subscriber)
            names = chain(names, ((each, name) for each in others for name in own(each).after("")))
        return (CqKey(who, CqName(name)) for who, name in names)

    def _item(self, loaded: Loaded, key: CqKey, now_ms: int) -> Result:
        item, cq = cq_item(loaded, key, now_ms), loaded.existing(key)
        membership = loaded.membership_of(cq)
        destination = membership.destination
        matches: int | None = None
        if destination.mode != "virtual":
            matches, _ = self._counts.of(destination.stream_id, membership.number)
        cost = {"matches": matches, "text_bytes": len(str(cq.text).encode("utf-8", "surrogatepass"))}
        return {"subscriber": key.subscriber, **item, "cost": cost, "after": json.dumps(key)}

    def drop_cqs(self, command: PreparedCommand[DropCqs], origin: Origin) -> Answer:
        """Drop the CQs of a subscriber whose names match a pattern, at most `_DROPPED_AT_ONCE` of them."""
        subscriber = Subscriber(command.statement.subscriber)
        names = filter(like_filter(command.statement.like), list(self._working.names(subscriber).after("")))
        keys = [CqKey(subscriber, CqName(name)) for name in islice(names, _DROPPED_AT_ONCE + 1)]
        left, keys = len(keys) > _DROPPED_AT_ONCE, keys[:_DROPPED_AT_ONCE]
        found = self._registry.load(keys)
        changes = [self._registry.drop(found, key, key.name, origin.accepted_ms) for key in keys]
        return Answer({"subscriber": subscriber, "dropped": len(keys), "more": left}, joined(changes))

    def set_quota(self, command: PreparedCommand[SetQuota], origin: Origin) -> Answer:
        """Set limits of a subscriber, and return all its limits."""
        name = command.statement.subscriber
        old = self._working.inventory.quotas.get(name, Quota())
        new = msgspec.structs.replace(old, **dict(command.statement.limits))
        kept = None if new == Quota() else new
        self._working.unit.set_quota(name, kept)
        return Answer(self._quota(name), Change(catalog=(quota_record(name, kept),)))

    def show_quota(self, command: PreparedCommand[ShowQuota], origin: Origin) -> Answer:
        """Return the limits of a subscriber."""
        return Answer(self._quota(command.statement.subscriber))

    def _quota(self, name: str) -> Result:
        """Return the limits of a subscriber, and which of them SET QUOTA has set."""
        inventory, limits = self._working.inventory, self._settings.limits
        own = inventory.quotas.get(name, Quota())
        return {
            "subscriber": name,
            "limits": {each: inventory.limit(name, each, limits) for each in QUOTA_NAMES},
            "own": [each for each in QUOTA_NAMES if getattr(own, each) is not None],
        }

    def pause_group(self, command: PreparedCommand[Pause], origin: Origin) -> Answer:
        """Pause or resume a group.

        Raises:
            InputError: ``unknown-group``: no group has this id.
        """
        statement = command.statement
        group_id, inventory = GroupId(statement.name), self._working.inventory
        stream_id = self._stream_of(group_id)
        pause = inventory.pauses.get(stream_id, {}).get(group_id)
        change = Change()
        if (pause is not None) != statement.paused:
            pause = GroupPause(origin.owner, origin.accepted_ms) if statement.paused else None
            self._working.unit.set_pause(stream_id, group_id, pause)
            change = Change(catalog=(pause_record(stream_id, group_id, pause),))
        result: Result = {"group": group_id, "stream": inventory.streams[stream_id].name, "paused": statement.paused}
        return Answer(result, change)

    def _stream_of(self, group_id: GroupId) -> StreamId:
        """Return the stream of a live or paused group."""
        inventory = self._working.inventory
        for stream_id in inventory.streams:
            if group_id in inventory.groups(stream_id) or group_id in inventory.pauses.get(stream_id, ()):
                return stream_id
        raise InputError(
            f'there is no group "{clipped(group_id)}"',
            code="unknown-group",
            detail="The group's last CQ may have been dropped, or have expired.",
            hint="SHOW GROUPS lists the live groups.",
        )


def check_operator(settings: Settings, subscriber: str, own_form: str | None) -> None:
    """Check that a subscriber may send statements of operators.

    Args:
        settings: The settings.
        subscriber: The sender.
        own_form: The statement that does the same for the sender's own CQs.

    Raises:
        InputError: ``not-allowed``.
    """
    if is_operator(settings, subscriber):
        return
    named = in_role(settings, subscriber, OPERATOR)
    raise InputError(
        "only an operator may send this statement",
        code="not-allowed",
        detail="Without tokens, the gateway cannot check who sent the command."
        if named
        else "The statement is about other subscribers.",
        hint="Set CQ_AUTH_MODE=token to require tokens, or CQ_AUTH_OPERATORS_BY_KEY=true to trust the record's key."
        if named
        else own_form,
    )


def _place(statement: ShowCqsOf) -> CqKey:
    """Return the CQ that AFTER names; the name is empty without AFTER.

    Raises:
        InputError: ``syntax-error``: AFTER does not have the form of `next` in a reply.
    """
    if statement.subscriber is not None or statement.after is None:
        return CqKey.of(statement.subscriber or "", statement.after or "")
    try:
        return CqKey.of(*msgspec.json.decode(statement.after, type=tuple[str, str]))
    except msgspec.DecodeError:
        raise InputError(
            "AFTER names no CQ",
            code="syntax-error",
            detail='AFTER takes a subscriber and a name, as the field "next" of a reply has them.',
            hint="""Write it as AFTER '["alice", "intel"]'.""",
        ) from None
