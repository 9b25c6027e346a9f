"""Compares the CQs and sources in Redis with those on the catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gateway.doctor.catalog import CatalogState
from gateway.doctor.finding import Finding, shown
from gateway.model.inventory import Inventory
from gateway.model.records import CatalogCq
from gateway.model.unit import CqKey
from gateway.state.stored_cqs import stored_cqs
from grouping.settings.settings import Settings

__all__ = ["REFILL_HINT", "check_registry", "differences"]

REFILL_HINT = "Run cq doctor --repair: the gateway then fills Redis again from the catalog."


def check_registry(settings: Settings, catalog: CatalogState, inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about CQs and sources that Redis lacks, that the catalog lacks, or that have different values.

    Args:
        settings: The settings with Redis's address.
        catalog: The expected state.
        inventory: The sources in Redis.
    """
    known: dict[str, Mapping[Any, object]] = {
        "stream": inventory.streams,
        "table": inventory.tables,
        "view": inventory.views,
        "quota": inventory.quotas,
        "pause": {f"{stream}/{group}": pause for stream, of in inventory.pauses.items() for group, pause in of.items()},
    }
    for kind, wanted in catalog.sources.items():
        yield from differences(kind, wanted, known[kind])
    yield from _check_cqs(settings, catalog.cqs)


def differences(kind: str, wanted: Mapping[str, object], found: Mapping[Any, object]) -> Iterator[Finding]:
    """Yield findings about names that Redis lacks, names that the catalog lacks, and names with different values.

    Args:
        kind: The noun for the messages. The codes of the findings begin with it.
        wanted: Name → value on the catalog.
        found: Name → value in Redis.
    """
    other = [name for name in wanted.keys() & found.keys() if wanted[name] != found[name]]
    for code, names in (
        (f"{kind}-missing", wanted.keys() - found.keys()),
        (f"{kind}-unknown", found.keys() - wanted.keys()),
        (f"{kind}-differs", other),
    ):
        if names:
            yield _finding(code, names, kind)


def _finding(code: str, names: Collection[str], noun: str) -> Finding:
    detail = f"Redis: {_why(code)} {shown(names, noun)}."
    return Finding(code, "", detail, REFILL_HINT, "refill Redis", frozenset(names))


def _why(code: str) -> str:
    kind = code.rpartition("-")[2]
    return {"missing": "it lacks", "unknown": "the catalog lacks", "differs": "the catalog has another value for"}[kind]


def _check_cqs(settings: Settings, wanted: Mapping[CqKey, CatalogCq]) -> Iterator[Finding]:
    missing, differs = set(wanted), []
    unknown = []
    for key, stored in stored_cqs(settings, {each.subscriber for each in wanted}):
        record = wanted.get(key)
        missing.discard(key)
        if record is None:
            unknown.append(key)
        elif _essence(stored) != _essence(record.cq):
            differs.append(key)
    for code, keys in (("cq-missing", missing), ("cq-unknown", unknown), ("cq-differs", differs)):
        if keys:
            yield _finding(code, [f"{key.subscriber}.{key.name}" for key in keys], "CQ")


def _essence(cq: Any) -> tuple[object, ...]:
    return cq.destination_id, cq.start_ms, cq.expire_ms, cq.paused
