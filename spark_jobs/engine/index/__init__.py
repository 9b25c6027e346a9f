"""Indexes over constant rows, looked up by a whole batch of events at once.

The indexes handle only int64 keys and row numbers. `spark_jobs.engine.index.keys` makes such keys of values, and
`lookup.py` leaves out NULLs.
"""

from spark_jobs.engine.index.composite import CompositeIndex
from spark_jobs.engine.index.equality import EqualityIndex, KeyDirectory, mix
from spark_jobs.engine.index.interval import ContainingIntervals, IntervalIndex
from spark_jobs.engine.index.ordered import OrderedIndex
from spark_jobs.engine.index.ranges import Ints, Pairs, Ranges

__all__ = [
    "CompositeIndex",
    "EqualityIndex",
    "Ints",
    "IntervalIndex",
    "KeyDirectory",
    "OrderedIndex",
    "Pairs",
    "Ranges",
    "ContainingIntervals",
    "mix",
]
