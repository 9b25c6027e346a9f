"""The exits of a batch: the rows that end a stay, if the stay has lasted for the interval of FOR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from grouping.plan.lasting import LastingMatches
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.event_clock import NO_TIME
from spark_jobs.engine.operators.lasting.falls import OpenStays
from spark_jobs.engine.operators.lasting.lowest_values import BatchRows, KeyedValues, LastMatches, Waits
from spark_jobs.engine.operators.lasting.waiting_rows import NO_MATCH, Exits, Rises
from spark_jobs.engine.operators.timed_state import NEVER
from spark_jobs.engine.rows.silent_rows import CHAIN, ENTERED

__all__ = ["FollowedRises", "exit_waits", "found_exits", "with_lows"]

_LOWEST = np.iinfo(np.int64).min
"""The upper bound of a stay's constants if the key is in for no constant: no constant is below this bound."""


class FollowedRises(NamedTuple):
    """Rises with the rows of a batch that follow them."""

    rises: Rises
    key: Ints
    """The index of each rise's key in the batch."""
    first: Ints
    """The first row that follows each rise."""
    columns: Mapping[str, pa.Array]
    """Columns of the rises for a query with UNTIL (`key_extremes.SPECIAL`); empty without UNTIL."""

    def special(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column of `columns`; an empty column of the type `kind` if the state never had a rise."""
        return self.columns.get(name, pa.nulls(0, kind))

    def taken(self, places: Ints) -> FollowedRises:
        """Return some of the rises."""
        own = pa.array(places)
        columns = {name: values.take(own) for name, values in self.columns.items()}
        return FollowedRises(self.rises.taken(places), self.key[places], self.first[places], columns)


def with_lows(rows: KeyedValues, followed: FollowedRises) -> Rises:
    """Return rises whose fields `low` and `is_open` take the rows of a batch into account."""
    rises = followed.rises
    low, goes_on = rows.lows(followed.first, followed.key)
    return rises._replace(low=np.minimum(rises.low, low), is_open=rises.is_open & goes_on)


def exit_waits(exits: Exits, first: Ints, key: Ints) -> Waits:
    """Return exits as `Waits`.

    A later row of the key that is no match may have an event time within the interval of the stay. Then the stay ended
    with that row, before the end of the interval, so there is no exit.
    """
    return Waits(first, key, exits.until, exits.high, exits.floor, exits.is_floored == 1)


def found_exits(
    batch: BatchRows,
    waiting: FollowedRises,
    passed: FollowedRises,
    new: FollowedRises,
    node: LastingMatches,
    chains: Sequence[bytes | None],
) -> tuple[Exits, Ints, dict[str, pa.Array]]:
    """Return the exits among the rows of a batch.

    Args:
        batch: The rows.
        waiting: The rises of the batch's keys that waited for the watermark when the batch began.
        passed: The rises of the batch's keys whose interval the watermark had passed.
        new: The rises among the rows.
        node: The computation's node.
        chains: For a query with UNTIL, the packed extremes of each key of the batch before the batch.

    Returns:
        Three things: the exits; the row of each exit; and for a query with UNTIL, columns of the rows with which the
        stays began.
    """
    rows, last = batch.values, batch.last
    first_waiting = np.full(last.offset.size, NEVER)
    np.minimum.at(first_waiting, waiting.key, waiting.rises.offset)
    is_first = waiting.rises.offset == first_waiting[waiting.key]
    later = passed.taken(np.flatnonzero(passed.rises.offset > first_waiting[passed.key]))
    first = waiting.taken(np.flatnonzero(is_first))
    quiet, begun = np.flatnonzero((first_waiting == NEVER) & (last.offset != NO_MATCH)), (waiting, later, new)
    columns: dict[str, pa.Array] = {}
    if node.until:
        parts = [_before_all_rises(rows, last, quiet), _inside_before_rises(first)]
        parts += [_entered(each, node.milliseconds) for each in begun]
        quiet_chains = pa.array([chains[key] for key in quiet.tolist()], pa.binary())
        known = [each.special(CHAIN, pa.binary()) for each in (first, *begun)]
        columns[CHAIN] = pa.concat_arrays([quiet_chains, *known])
        unknown = pa.nulls(quiet.size + first.key.size, pa.int64())
        columns[ENTERED] = pa.concat_arrays([unknown, *(each.special(ENTERED, pa.int64()) for each in begun)])
    else:
        parts = [_before_all_rises(rows, last, quiet), _before_rises(first)]
        parts += [part for each in begun for part in _of_rises(each, node.milliseconds)]
    stays, place = OpenStays.joined(parts)
    found = stays.falls(rows)
    lasted = np.flatnonzero((rows.times[found.row] > stays.until[found.stay]) & ~rows.is_renewed[found.row])
    place, row, high = pa.array(place[found.stay[lasted]]), found.row[lasted], found.high[lasted]
    stays, columns = stays.taken(found.stay[lasted]), {name: values.take(place) for name, values in columns.items()}
    is_match = rows.is_match[row]
    floor = np.where(is_match, rows.values[row], stays.floor)
    floor = np.where(is_match & stays.is_floored, np.maximum(floor, stays.floor), floor)
    is_floored = (is_match | stays.is_floored).astype(np.int64)
    time = rows.times[row] - node.milliseconds
    exits = Exits(batch.offsets[row], time, floor, is_floored, high, stays.begin, stays.after, stays.until)
    return exits, row, columns


def _before_all_rises(rows: KeyedValues, last: LastMatches, keys: Ints) -> OpenStays:
    """Return the stays of keys that have no waiting rise: a key is in for all constants below its last value."""
    return _ended_stays(rows.begins[keys], keys, last.value[keys], last.offset[keys])


def _before_rises(followed: FollowedRises) -> OpenStays:
    """Return the stays that began before the key's first waiting rise.

    The key is in for all constants below the value of the row before this rise, and below all values since.
    """
    some = np.flatnonzero((followed.rises.before_offset != NO_MATCH) & (followed.rises.is_open == 1))
    rises, key, first, _ = followed.taken(some)
    return _ended_stays(first, key, np.minimum(rises.before, rises.low), rises.before_offset)


def _ended_stays(first: Ints, key: Ints, high: Ints, begin: Ints) -> OpenStays:
    """Return stays whose interval has ended, so that any later fall is an exit."""
    nothing = np.zeros(key.size, np.int64)
    return OpenStays(first, key, nothing, nothing.astype(np.bool_), high, begin, nothing + NO_MATCH, nothing + NO_TIME)


def _inside_before_rises(followed: FollowedRises) -> OpenStays:
    """Return the stays of queries with UNTIL that had begun before the key's first waiting rise."""
    rises = followed.rises
    high = np.where(rises.is_open == 1, rises.low, _LOWEST)
    stays = _ended_stays(followed.first, followed.key, high, rises.offset)
    return stays._replace(floor=np.full(high.size, _LOWEST), is_floored=np.ones(high.size, np.bool_))


def _entered(followed: FollowedRises, milliseconds: int) -> OpenStays:
    """Return the stays of queries with UNTIL that began with rises."""
    rises = followed.rises
    is_floored = (rises.before_offset != NO_MATCH) & (rises.young == 0)
    floor = np.where(is_floored, rises.before, _LOWEST)
    high = np.where(rises.is_open == 1, rises.low, _LOWEST)
    until, all_queries = rises.time + milliseconds, np.full(high.size, NO_MATCH)
    is_floored = is_floored | (rises.is_open == 0)
    return OpenStays(followed.first, followed.key, floor, is_floored, high, rises.offset, all_queries, until)


def _of_rises(followed: FollowedRises, milliseconds: int) -> list[OpenStays]:
    """Return the stays that began with rises.

    Returns:
        Two sets of stays: for each rise, the stay for all entries; and for each young rise, a further stay only for the
        entries that began after the key's previous row.
    """
    some = followed.taken(np.flatnonzero(followed.rises.is_open == 1))
    rises = some.rises
    until, all_queries = rises.time + milliseconds, np.full(some.key.size, NO_MATCH)
    is_floored = rises.before_offset != NO_MATCH
    usual = OpenStays(some.first, some.key, rises.before, is_floored, rises.low, rises.offset, all_queries, until)
    young = OpenStays(
        some.first,
        some.key,
        rises.before,
        np.zeros(some.key.size, np.bool_),
        np.minimum(rises.low, rises.before),
        rises.offset,
        rises.before_offset,
        until,
    )
    return [usual, young.taken(np.flatnonzero(is_floored & (rises.young == 1)))]
