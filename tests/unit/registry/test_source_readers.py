"""REVOKE finds the CQs that need the right to read a source, however the search is divided."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from gateway.access.source_rights import SourceRights
from gateway.model.names import Names
from gateway.model.unit import CqKey
from gateway.sources.grants import SourceGrants
from gateway.sources.readers import FoundReaders, SourceReaders
from grouping.model.catalog import Catalog, Stream
from grouping.model.query import ChangeAccess
from grouping.model.source_access import Access
from grouping.settings.settings import Settings
from grouping.statements.command import parse

_STREAM = Stream("s_1", "quotes", (), "quotes", "json", {}, "", owner="ann", access=Access("granted"))


class _Loaded:
    """CQs whose names begin with "r" read the stream, others another stream."""

    def existing(self, key: CqKey) -> Any:
        return SimpleNamespace(views=(), name=key.name)

    def destination_of(self, cq: Any) -> Any:
        return SimpleNamespace(stream_id="s_1" if cq.name.startswith("r") else "s_2")


class _Office:
    """Subscribers with CQs, whose right to read the stream is revoked."""

    def __init__(self, **names: list[str]) -> None:
        self.names = {subscriber: Names(each) for subscriber, each in names.items()}
        self.loads: list[int] = []
        self.working: Any = SimpleNamespace(
            inventory=SimpleNamespace(live_cqs=Counter(s_1=1)),
            names=self.names.__getitem__,
            subscribers=lambda: sorted(self.names),
            load=self._load,
            unit=SimpleNamespace(sources=SimpleNamespace(replace_stream=lambda stream: None)),
        )
        readers = SourceReaders(self.working, SimpleNamespace)
        self.grants = SourceGrants(SourceRights(Settings()), self.working, readers)

    def _load(self, keys: list[CqKey]) -> _Loaded:
        self.loads[-1] += len(keys)
        return _Loaded()

    def revoke(self, rest: str = "") -> FoundReaders:
        self.loads.append(0)
        return self.grants.losers(_parsed(f"REVOKE READ ON STREAM quotes FROM {rest}"), _STREAM)

    def cascade(self, whom: str) -> bool:
        """Drop CQs, and tell whether there may be more."""
        found = self.revoke(f"{whom} CASCADE")
        for key in found.keys:
            self.names[key.subscriber].discard(key.name)
        return found.more

    def left(self) -> list[str]:
        return [name for names in self.names.values() for name in names.after("") if name.startswith("r")]


def _parsed(text: str) -> ChangeAccess:
    statement = parse(text)
    assert isinstance(statement, ChangeAccess)
    return statement


def _named(first: str, count: int) -> list[str]:
    return [f"{first}{number:06}" for number in range(count)]


def test_a_cascade_drops_what_a_revoke_counted() -> None:
    """A REVOKE without CASCADE drops nothing, so a CASCADE after it begins with the first CQ."""
    office = _Office(bob=_named("r", 4_500))
    counted = office.revoke("'bob'")
    assert (2_000, True) == (len(counted.keys), counted.more)
    assert [True, True, False] == [office.cascade("'bob'") for _ in range(3)]
    assert not office.left()


def test_a_cascade_whose_unit_is_carried_out_again_loses_no_cq() -> None:
    """The drops of a unit that is carried out again are undone: the search finds the same CQs once more."""
    office = _Office(bob=_named("a", 21_000) + _named("r", 2_500))
    first, second, third = (office.revoke("'bob' CASCADE") for _ in range(3))
    assert ([], True) == first
    assert 2_000 == len(second.keys)
    assert second == third


def test_a_search_examines_a_part_of_the_cqs_and_reaches_the_end() -> None:
    """Each REVOKE examines some 20,000 CQs, of one subscriber or of many, and the next goes on behind them."""
    many = {f"s{number:02}": _named("a", 1_000) for number in range(60)}
    office = _Office(**many, zoe=_named("a", 45_000) + _named("r", 3_000) + _named("z", 30_000))
    assert not all(office.cascade("ALL") for _ in range(12))
    assert not office.left()
    assert max(office.loads) <= 21_000


def test_a_cq_that_a_grant_allowed_is_found() -> None:
    """CQs that were created after a GRANT are found, even if their names lie in a part that was examined before."""
    office = _Office(bob=_named("s", 30_000))
    assert office.cascade("'bob'")
    office.grants.change(_parsed("GRANT READ ON STREAM quotes TO 'bob'"), Catalog([_STREAM]), "ann")
    office.names["bob"].add("r")
    assert not all(office.cascade("'bob'") for _ in range(3))
    assert not office.left()
