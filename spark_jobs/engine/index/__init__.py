"""Indexes over constant rows, looked up by a whole batch of events at once.

They know int64 keys and row numbers only: the meaning of a key, and NULLs, are `spark_jobs.engine.index.keys`'
business.
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
