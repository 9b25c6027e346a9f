"""Indexes over constant rows, looked up by a whole batch of events at once.

They know int64 keys and row numbers only: what a key means, and NULLs, are `spark_jobs.index.keys`' business.
"""

from spark_jobs.index.composite import CompositeIndex
from spark_jobs.index.equality import EqualityIndex, KeyDirectory, mix
from spark_jobs.index.interval import ContainingIntervals, IntervalIndex
from spark_jobs.index.ordered import OrderedIndex
from spark_jobs.index.ranges import Ints, Pairs, Ranges

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
