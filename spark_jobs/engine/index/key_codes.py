"""Codes for the equality keys of a group: distinct constants are numbered, and a value has the code of its constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.expression import Reference
from grouping.model.sql_type import STRING, SqlType
from spark_jobs.engine.index import Ints, KeyDirectory, mix
from spark_jobs.engine.index.keys import key_space
from spark_jobs.engine.rows.arrays import Codes, distinct_values
from spark_jobs.engine.rows.event_column import EventColumns, hash_strings

__all__ = ["JointCodes", "KeyCodes"]


class KeyCodes:
    """The distinct constants of one ``column = :c`` conjunct."""

    def __init__(
        self, column: Reference, column_type: SqlType, sql_type: SqlType, constants: pa.Array, length: int | None = None
    ) -> None:
        """Number the distinct constants.

        Args:
            column: The column that is compared with the constants.
            column_type: The type of the column.
            sql_type: The type of the constants.
            constants: The constants of the rows.
            length: If given, constants are compared only with this number of first characters of a STRING column.
        """
        self.column = column
        self._length = length
        self._strings: pa.Array | None = None
        self._clashes: dict[str, int] = {}
        if column_type == STRING:
            self._strings = _encoded(constants).dictionary
            hashes = hash_strings(self._strings)
            self._find_clashes(hashes, self._strings)
        else:
            self._space = key_space(column_type, (sql_type,), (constants,))
            self._distinct = distinct_values(self._space.constants(constants.drop_null()))
            hashes = mix(self._distinct)
        self.count = int(hashes.size)
        self._directory = KeyDirectory(hashes)

    def constants(self, constants: pa.Array) -> Codes:
        """Return the codes of the constants that the constructor numbered; -1 for NULL."""
        if self._strings is not None:
            codes: Codes = _encoded(constants).indices.fill_null(-1).to_numpy(zero_copy_only=False)
            return codes
        found = self._directory.find(mix(self._space.constants(constants)))
        return np.where(constants.is_valid().to_numpy(zero_copy_only=False), found, np.int32(-1))

    def find(self, events: EventColumns) -> Codes:
        """Return for each event the code of its value; -1 if the value is NULL or equals no constant."""
        column = events[self.column]
        if self._strings is None:
            found = self._directory.find(self._space.hashes(column))
        else:
            what = "hashes" if self._length is None else f"hashes of first {self._length}"
            texts = column.values if self._length is None else column.beginnings(self._length)
            hashes = column.cached(what, lambda _: hash_strings(texts))
            found = self._verified(texts, self._directory.find(hashes), self._strings)
        return column.spread(found, -1)

    def _find_clashes(self, hashes: NDArray[np.uint64], strings: pa.Array) -> None:
        """Find different strings with equal hashes; a million strings have such a pair with a chance of 3 in 10^8."""
        distinct, counts = np.unique(hashes, return_counts=True)
        if distinct.size < hashes.size:
            for code in np.flatnonzero(np.isin(hashes, distinct[counts > 1])):
                self._clashes[strings[int(code)].as_py()] = int(code)

    def _verified(self, texts: pa.Array, found: Codes, strings: pa.Array) -> Codes:
        """Compare the strings themselves, since different strings may have equal hashes."""
        hit = np.flatnonzero(found >= 0)
        same = pc.equal(texts.take(pa.array(hit)), strings.take(pa.array(found[hit])))
        found[hit[~same.fill_null(False).to_numpy(zero_copy_only=False)]] = -1
        if self._clashes:
            for position, value in enumerate(texts.to_pylist()):
                if value in self._clashes:
                    found[position] = self._clashes[value]
        return found

    @property
    def nbytes(self) -> int:
        """Memory in bytes, without the strings if they are those of the constants themselves."""
        if self._strings is None:
            return self._directory.nbytes + self._distinct.nbytes
        return self._directory.nbytes + (0 if self._length is None else int(self._strings.nbytes))


class JointCodes:
    """Codes of the combinations of constants of one or more equality conjuncts."""

    def __init__(self, keys: Sequence[KeyCodes], directories: Sequence[KeyDirectory], count: int) -> None:
        self._keys = keys
        self._directories = directories
        self.count = count

    @classmethod
    def of(cls, keys: Sequence[KeyCodes], constants: Sequence[pa.Array]) -> tuple[JointCodes, Codes]:
        """Number the distinct combinations, and return the number of each row; -1 if a constant is NULL."""
        directories: list[KeyDirectory] = []
        count = keys[0].count
        codes = keys[0].constants(constants[0])
        for key, values in zip(keys[1:], constants[1:], strict=True):
            pairs = _pairs(codes, key.constants(values), key.count)
            distinct = distinct_values(pairs[pairs >= 0])
            directories.append(KeyDirectory(mix(distinct)))
            codes = _known(directories[-1], pairs)
            count = int(distinct.size)
        return cls(keys, directories, count), codes

    def find(self, events: EventColumns) -> Codes:
        """Return each event's code; -1 if no row has its combination of values."""
        codes = self._keys[0].find(events)
        for key, directory in zip(self._keys[1:], self._directories, strict=True):
            codes = _known(directory, _pairs(codes, key.find(events), key.count))
        return codes

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(key.nbytes for key in self._keys) + sum(directory.nbytes for directory in self._directories)


def _encoded(constants: pa.Array) -> pa.DictionaryArray:
    return constants if pa.types.is_dictionary(constants.type) else constants.dictionary_encode()


def _pairs(first: Codes, second: Codes, count: int) -> Ints:
    return np.where((first >= 0) & (second >= 0), first.astype(np.int64) * count + second, -1)


def _known(directory: KeyDirectory, pairs: Ints) -> Codes:
    return np.where(pairs >= 0, directory.find(mix(pairs)), np.int32(-1))
