"""A statement as long as a command may be is read, or refused, in a fraction of a second, whatever fills it."""

from __future__ import annotations

import time

import pytest

from grouping.compiler.prepared import Preparer
from grouping.model.errors import InputError
from grouping.settings.settings import Settings
from grouping.statements.command import parse
from grouping.statements.cq_text import CqText
from grouping.statements.statement_size import check_words
from tests.quotes import catalog

_BYTES = 512 * 1024
_SECONDS = 0.3
"""The limit on a processor that takes `_LOOP_SECONDS` for the loop of `_loop_seconds`."""
_LOOP_SECONDS = 0.1
_CREATE = "CREATE CQ a AS SELECT symbol FROM quotes WHERE "
_FRAMES = (
    (_CREATE + "i = ", ""),
    (_CREATE + "symbol = '", "'"),
    (_CREATE + "symbol LIKE '", "'"),
    (_CREATE + "date_format(at, '", "') = 'a'"),
    (_CREATE + "format_string('", "', symbol) = 'a'"),
    (_CREATE + "from_json(symbol, '", "').a = 1"),
    (_CREATE + "flag EVERY '", "'"),
    ("CREATE STREAM s (", ") WITH (topic = 's')"),
    ("SHOW CQS LIKE '", "'"),
)
"""The beginnings and ends of statements, with a place to fill between them."""
_KINDS = ("1", "a", " ", "''", '"', "\\", "1e1+", "1.", "\n", "a INT,", "%s", "(", "[1]", "'a',", "/*", "AND ")


@pytest.mark.parametrize("kind", _KINDS)
def test_a_large_statement_is_answered_at_once(kind: str) -> None:
    """Each statement of 512 KB takes less than 0.3 s of the processor; a slower processor has more time."""
    slow = {}
    for begin, end in _FRAMES:
        count = (_BYTES - len(begin) - len(end)) // len(kind)
        text = f"{begin}{kind * count}{end}"
        # Other load of the machine makes a time longer, never shorter: a single good time in five is enough.
        if all((ratio := _seconds(text) / _loop_seconds()) >= _SECONDS / _LOOP_SECONDS for _ in range(5)):
            slow[begin] = ratio
    assert not slow


def _seconds(text: str) -> float:
    """Return the CPU seconds until a command's text is compiled or refused."""
    began = time.process_time()
    try:
        check_words(text, Settings().limits.statement_words)
        cut = CqText.cut(text)
        if text.startswith(_CREATE):
            Preparer(catalog()).create(cut)
        else:
            parse(text)
    except InputError:
        pass
    return time.process_time() - began


def _loop_seconds() -> float:
    """Return the CPU seconds of a million additions: the speed of this processor at this moment."""
    began = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - began
