"""Faults that a worker catches while it evaluates: anything raised is a fault of ours, which must stop nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from polars.exceptions import PanicException

from grouping.store.quarantine import SLOW
from spark_jobs.batch.cpu_budget import CpuExceeded

__all__ = ["FAULTS", "fault_reason", "halved"]

FAULTS = (Exception, PanicException)
"""A panic of Polars is no `Exception`; `MemoryError` and Arrow's errors are."""

Records = Iterator[pa.RecordBatch]
Shares = Sequence[str]


def fault_reason(fault: BaseException) -> str:
    """Return why a share is left out; the fault's text may hold what a subscriber or an event says."""
    return SLOW if isinstance(fault, CpuExceeded) else f"it failed with {type(fault).__name__}"


def halved(
    shares: Shares | None,
    every: Callable[[], Shares],
    work: Callable[[Shares | None], Records],
    report: Callable[[str], None],
    left_out: Callable[[str, str], Records],
) -> Records:
    """Yield the records of some shares; where these fail, those of either half, down to the share that is at fault.

    The halves yield again what came before the failure, as the replay of a batch does: each share's in its order.

    Args:
        shares: Ids (`grouping.store.quarantine`); None for all of them, which are not listed unless they fail.
        every: Lists them all.
        work: Makes the records of some, None for all.
        report: Is told of a share that fails, while the failure is being handled.
        left_out: Makes what stands for those of a share that fails, and is given the reason.

    Raises:
        CpuExceeded: Of the work; it names those at fault, so that nothing need be halved.
    """
    try:
        yield from work(shares)
        return
    except CpuExceeded:
        raise
    except FAULTS as fault:
        reason = fault_reason(fault)
        some = every() if shares is None else shares
        if not some:
            raise  # it is nobody's
        if len(some) == 1:
            report(some[0])
    # Outside of the handler, which would keep what the failed work had in memory.
    if len(some) == 1:
        yield from left_out(some[0], reason)
        return
    for half in (some[: len(some) // 2], some[len(some) // 2 :]):
        if half:
            yield from halved(half, every, work, report, left_out)
