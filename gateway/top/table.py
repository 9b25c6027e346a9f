"""Draws the activity of a prefix as tables for a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from gateway.top.activity import Activity

__all__ = ["tables"]


def tables(activity: Activity) -> Group:
    """Return the tables of streams, of the groups that cost most, and of the subscribers with the most CQs."""
    streams = _table("stream", "CQs", "groups", "events/s", "matches/s", "behind", "lag", "cores", "query")
    for each in activity.streams:
        streams.add_row(
            _shortened(each.stream),
            f"{each.cqs:,}",
            f"{each.groups:,}",
            f"{each.events_per_second:,.0f}",
            f"{each.matches_per_second:,.0f}",
            f"{each.behind:,}",
            f"{each.seconds_behind:.1f} s",
            f"{each.cores:.2f}",
            "lane" if each.lane else "own",
        )
    groups = _table("share", "µs/event", "checked", "matches", "CQs", "index", "stream", "group")
    for one in activity.groups:
        groups.add_row(
            f"{one.share:.0%}",
            f"{one.micros_per_event:,.2f}",
            f"{one.candidates_per_event:,.2f}",
            f"{one.matches_per_event:,.2f}",
            f"{one.cqs:,}",
            one.index,
            _shortened(one.stream),
            _shortened(f"{one.group} {one.signature}"),
        )
    subscribers = _table("subscriber", "CQs")
    for who in activity.subscribers:
        subscribers.add_row(_shortened(who.subscriber), f"{who.cqs:,}")
    return Group(streams, groups, subscribers)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in titles:
        name = title in ("stream", "group", "subscriber")
        # If the terminal is too narrow, columns that may wrap become narrower first, so numbers are not cut off.
        table.add_column(title, justify="left" if name or title == "index" else "right", no_wrap=not name)
    return table


def _shortened(name: str) -> Text:
    """Return a name that ends with an ellipsis if its column is too narrow."""
    return Text(name, no_wrap=True, overflow="ellipsis")
