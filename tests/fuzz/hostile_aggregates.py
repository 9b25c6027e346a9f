"""Hostile aggregates beside a witness: long texts, DISTINCT, patterns that take the square of a text, huge keys.

Run ``python -m tests.fuzz.hostile_aggregates --queries 1000 --seed 7``: the witness has its result, and the reply to a
command, within 30 s each time.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tests.stack.lab import Lab, Source
from tests.stack.server import Stack

__all__ = ["COLUMNS", "WITNESS_SECONDS", "hostile_aggregate", "hostile_rounds"]

COLUMNS = "n INT, body STRING, tags ARRAY<STRING>"
WITNESS_SECONDS = 30.0
"""Longest time from an event to the witness's result and the reply to the witness's next command."""
_PATTERNS = (".*x|.", "[^x]*x|[^x]", "(a+b|a)", "(a|b)*c|a", "a{1,50}b|a", "[a-z]+\\d|[a-z]", "\\w+@|\\w")
_VALUES = (
    "regexp_count(body, '{pattern}')",
    "length(regexp_replace(body, '{pattern}', 'yy'))",
    "size(regexp_extract_all(body, '{pattern}', 0))",
    "levenshtein(body, reverse(body))",
    "length(repeat(body, {times}))",
    "size(split(body, '{pattern}'))",
    "aggregate(tags, 0, (s, t) -> s + levenshtein(t, body))",
    "length(concat_ws(body, tags))",
)
_AGGREGATES = ("sum({})", "max({})", "count(DISTINCT {})", "avg({})", "approx_count_distinct({})", "stddev({})")
_KEYS = ("", "", "body", "repeat(body, 2)", "substring(body, 1 + n, 100000)", "{value}", "concat(body, n)")
_HAVINGS = (
    "",
    "",
    " HAVING regexp_count(max(body), '{pattern}') > {times}",
    " HAVING levenshtein(max(body), reverse(min(body))) > {times}",
)
_FILTERS = ("", "", " FILTER (WHERE {value} > {times})")


def hostile_aggregate(rng: random.Random, stream: str) -> str:
    """Return a query with GROUP BY that costs as much as possible."""
    times = rng.randrange(2, 200)
    value, other = (rng.choice(_VALUES).format(pattern=rng.choice(_PATTERNS), times=times) for _ in range(2))
    condition = rng.choice(_FILTERS).replace("{value}", other).replace("{times}", str(times))
    key = rng.choice(_KEYS).replace("{value}", other)
    aggregate = rng.choice(_AGGREGATES).replace("{}", value) + condition
    where = rng.choice(["", f" WHERE n > -{times}", f" WHERE {other} > -{times}"])
    having = rng.choice(_HAVINGS).replace("{pattern}", rng.choice(_PATTERNS)).replace("{times}", str(times))
    return f"SELECT {aggregate} AS v FROM {stream}{where}" + (f" GROUP BY {key}" if key else "") + having


def _hostile_event(rng: random.Random, number: int) -> bytes:
    size = rng.choice([10, 10_000, 100_000, 500_000, 800_000])  # with the tags, less than Kafka takes
    body = rng.choice(["a", "ab", "abc1", "é"]) * size
    tags = [body[: rng.randrange(1, 3_000)] for _ in range(rng.randrange(20))]
    event = {"n": number, "body": body.encode()[:size].decode(errors="ignore"), "tags": tags}
    return json.dumps(event, ensure_ascii=False).encode()


def hostile_rounds(lab: Lab, source: Source, rng: random.Random, rounds: int, at_once: int) -> Iterator[float]:
    """Yield for each round the seconds from its events to the witness's result of the last of them, and a reply.

    Args:
        lab: The gateway.
        source: A stream of `COLUMNS`.
        rng: Decides all of it.
        rounds: The number of rounds.
        at_once: Hostile queries in each, of a new subscriber; they are dropped at its end.
    """
    witness = lab.create("witness", f"SELECT n FROM {source.name}", clauses="DO PUBLISH SHARED")
    number = 0
    for _ in range(rounds):
        mallory = f"mallory-{uuid.uuid4().hex[:8]}"
        made = []
        for name in map(str, range(at_once)):
            text = f"CREATE CQ \"{name}\" AS {hostile_aggregate(rng, source.name)} EVERY '1 second'"
            if lab.client.execute(text, mallory).code == "ok":
                made.append(name)
        began = time.monotonic()
        for _ in range(3):
            source.publish_values(_hostile_event(rng, number))
            number += 1
        lab.results.until(
            lambda last=number - 1: any(one.row["n"] == last for one in lab.results.of(witness["destination"])),
            f"the witness's result of event {number - 1}",
            10 * WITNESS_SECONDS,
        )
        lab.client.result("DESCRIBE CQ witness", lab.subscriber())
        yield time.monotonic() - began
        for name in made:
            lab.client.execute(f'DROP CQ "{name}"', mallory)


def run(
    queries: Annotated[int, typer.Option(help="Hostile queries in all.")] = 1_000,
    at_once: Annotated[int, typer.Option(help="Queries of one subscriber at once.")] = 5,
    seed: Annotated[int, typer.Option(help="Decides all of it; 0 for any.")] = 0,
) -> None:
    """Run a number of hostile queries."""
    seed = seed or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cq-hostile-") as folder:
        stack = Stack(Path(folder) / "data")
        stack.up()
        try:
            lab = Lab(stack.bootstrap)
            waits: list[float] = []
            for wait in hostile_rounds(lab, lab.stream(COLUMNS), random.Random(seed), -(-queries // at_once), at_once):
                waits.append(wait)
                print(f"{len(waits) * at_once} queries, {wait:.1f} s, longest {max(waits):.1f} s", flush=True)
        finally:
            stack.down()
    late = sum(wait > WITNESS_SECONDS for wait in waits)
    print(f"the witness waited {max(waits):.1f} s at most; more than {WITNESS_SECONDS:.0f} s {late} times")
    raise SystemExit(late > 0)


if __name__ == "__main__":
    typer.run(run)
