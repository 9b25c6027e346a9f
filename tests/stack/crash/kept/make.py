"""Makes the data folder that `test_kept_folder.py` starts on: CQs of every kind, as an earlier version left them.

    python -m tests.stack.crash.kept.make CLONE ARCHIVE

CLONE is a clone of the repository at that version, with its `.venv`; ARCHIVE the `.tar.xz` to write. The test looks for
the objects created here: run this only for a further version, in addition to the existing archive.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.kafka_client import RawClient
from tests.kafka_tail import Results

__all__ = ["CQS", "PENDING", "STREAM"]

STREAM = """CREATE STREAM quotes (symbol STRING, price DOUBLE, n BIGINT)
WITH (topic = 'quotes', format = 'json', partitions = 2)"""
CQS = {
    "shared": "SELECT symbol, price FROM quotes WHERE symbol = 'INTC' AND price < 100 DO PUBLISH SHARED",
    "twin": "SELECT symbol, price FROM quotes WHERE symbol = 'INTC' AND price < 100 DO PUBLISH SHARED",
    "every": "SELECT n FROM quotes DO PUBLISH SHARED",
    "dedicated": "SELECT symbol, n FROM quotes WHERE price BETWEEN 10 AND 60 DO PUBLISH DEDICATED",
    "virtual": "SELECT symbol, n FROM quotes WHERE symbol LIKE 'IN%' AND price < 90 DO PUBLISH VIRTUAL",
    "timed": "SELECT symbol, n FROM quotes WHERE price < 100 DO PUBLISH SHARED DIGEST ALL EVERY '10 minutes'",
    "top": "SELECT n FROM quotes WHERE price < 100 DO PUBLISH SHARED DIGEST TOP 2 BY n EVERY '10 minutes'",
    "cron": "SELECT n FROM quotes WHERE price > 1e6 EVERY CRON '0 8 * * MON' AT TIME ZONE 'Europe/Madrid'",
    "paused": "SELECT n FROM quotes WHERE n >= 0 DO PUBLISH SHARED",
    "expiring": "SELECT symbol FROM quotes WHERE price IN (1, 50) DO PUBLISH SHARED EXPIRE '2999-01-01T00:00:00Z'",
    "later": "SELECT symbol FROM quotes WHERE price > 3 START '2998-01-01T00:00:00Z'",
    "replaced": "SELECT symbol, n FROM quotes WHERE price > 20",
    "gone": "SELECT symbol FROM quotes WHERE price > 21",
}
"""The CQs of alice; `gone` is dropped."""
PENDING = 6
"""Events with numbers below this are in the folder; all of them match `timed` and wait for its tick."""


def fill(client: RawClient) -> None:
    """Create all objects that the test looks for, and publish the first events."""
    client.result(STREAM)
    for name, text in CQS.items():
        client.result(f"CREATE CQ {name} AS {text}")
    client.result(f"CREATE CQ shared AS {CQS['shared']}", "bob")
    client.result("CREATE OR REPLACE CQ replaced AS SELECT symbol, n FROM quotes WHERE price > 30")
    client.result("PAUSE CQ paused")
    client.result("DROP CQ gone")
    results = Results(client.bootstrap)
    every = client.result("DESCRIBE CQ every")
    results.follow(every["destination"])
    for number in range(PENDING):
        event = {"symbol": "INTC" if number % 2 else "AMD", "price": 10.0 * number, "n": number}
        client.publish("quotes", json.dumps(event).encode(), partition=number % 2)
    results.until(lambda: len(results.of(every["destination"])) == PENDING, "the events' matches")
    results.close()


def _cq(clone: Path, *arguments: str) -> None:
    command = [str(clone / ".venv/bin/python3"), "-m", "gateway.cli", *arguments]
    subprocess.run(command, cwd=clone, stdin=subprocess.DEVNULL, check=True)


def _make(clone: Path, archive: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        _cq(clone, "up", "--data", str(data), "--detach")
        try:
            client = RawClient(json.loads((data / "endpoints.json").read_text())["bootstrap"])
            fill(client)
            client.close()
        finally:
            _cq(clone, "down", "--data", str(data))
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            packed.add(data, "data", filter=_small)


def _small(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out logs, and the owners of files."""
    if entry.name.startswith(("data/logs/", "data/kafka/logs/")):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    _make(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
