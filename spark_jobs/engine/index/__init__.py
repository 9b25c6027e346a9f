"""Indexes over constant rows, in which a whole batch of events is looked up at once.

The indexes exported here handle only int64 keys and row numbers. `keys.py` converts values to such keys, and
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
