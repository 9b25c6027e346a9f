"""The long run over records: broken and well-formed ones of every kind, each decoded in a batch and alone.

Run ``python -m tests.fuzz.records --records 100000 --seed 7``. The run prints the outcomes by kind. If a batch has a
wrong outcome, the run prints the command that repeats the batch, and goes on.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from typing import Annotated

import typer

from tests.fuzz.record_kinds import record_kinds
from tests.fuzz.record_outcomes import check_batch
from tests.fuzz.surfaces import assert_detail

_BATCH = 25
"""The number of records in a batch."""


def run(
    records: Annotated[int, typer.Option(help="Records of all kinds together.")] = 100_000,
    seed: Annotated[int, typer.Option(help="What decides all of it; 0 for any.")] = 0,
    only: Annotated[str, typer.Option(help="The one kind to run.")] = "",
    batch: Annotated[int, typer.Option(help="The one batch to run; -1 for all.")] = -1,
) -> None:
    """Decode a number of records."""
    seed = seed or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}")
    kinds = [only] if only else [*record_kinds()]
    wrong = 0
    total: Counter[str] = Counter()
    for name in kinds:
        counts: Counter[str] = Counter()
        began = time.process_time()
        for number in range(-(-records // len(kinds) // _BATCH)) if batch < 0 else [batch]:
            try:
                counts += _outcomes(random.Random(f"{seed}/{name}/{number}"), name)
            except BaseException:
                traceback.print_exc()
                print(f'it fails: python -m tests.fuzz.records --seed {seed} --only "{name}" --batch {number}')
                wrong += 1
                if batch >= 0:
                    raise
        total += counts
        _show(name, counts, time.process_time() - began)
    _show("all", total, time.process_time())
    if wrong:
        raise SystemExit(f"{wrong} batches have a wrong outcome")


def _outcomes(rng: random.Random, name: str) -> Counter[str]:
    records, found = check_batch(rng, name, _BATCH)
    for place, detail in found.letters.items():
        assert_detail(detail, records[place])
    empty = len(records) - len(found.rows.keys() | found.letters.keys())
    rows, misfits = sum(map(len, found.rows.values())), sum(found.misfits.values())
    figures = {"records": len(records), "events": rows, "dead letters": len(found.letters), "NULLs": misfits}
    return Counter(figures | {"no event": empty})


def _show(name: str, counts: Counter[str], seconds: float) -> None:
    shown = ", ".join(f"{counts[each]:,} {each}" for each in ("records", "events", "dead letters", "NULLs", "no event"))
    print(f"{name}: {shown}; {seconds:.0f} s of CPU time", flush=True)


if __name__ == "__main__":
    typer.run(run)
