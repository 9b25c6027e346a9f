"""A dataflow of Pathway over a folder of CSV files; `dataflows.py` runs it with a Python that has Pathway.

``python pathway_flow.py FOLDER shared`` joins events, profiles and the queries' constants in one dataflow; ``… alone``
has a dataflow for each query. The program prints the seconds of the run.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import pathway as pw


class Event(pw.Schema):
    row: int
    symbol: str
    price: float


class Profile(pw.Schema):
    symbol: str
    industry: str


class Constants(pw.Schema):
    number: int
    industry: str
    bound: float


def main(folder: Path, how: str) -> None:
    """Run the dataflow once over all present data, which costs Pathway least."""
    events, profiles = _read(folder, "events", Event), _read(folder, "profiles", Profile)
    joined = events.join(profiles, events.symbol == profiles.symbol).select(events.row, events.price, profiles.industry)
    if how == "shared":
        constants = _read(folder, "constants", Constants)
        matches = joined.join(constants, joined.industry == constants.industry).filter(pw.left.price < pw.right.bound)
        pw.io.csv.write(matches.select(pw.left.row, pw.right.number), str(folder / "found.csv"))
    else:
        with (folder / "constants.csv").open() as file:
            for each in csv.DictReader(file):
                matches = joined.filter((pw.this.industry == each["industry"]) & (pw.this.price < float(each["bound"])))
                pw.io.csv.write(matches.select(pw.this.row), str(folder / f"found{each['number']}.csv"))
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(time.perf_counter() - began)


def _read(folder: Path, name: str, schema: type[pw.Schema]) -> pw.Table:
    return pw.io.csv.read(str(folder / f"{name}.csv"), schema=schema, mode="static")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
