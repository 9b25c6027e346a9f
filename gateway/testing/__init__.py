"""The test kit: evaluates a continuous query over given rows, in this process and without servers.

The evaluator's own code decodes the rows, evaluates them and encodes the results. The kit reports the outcome of each
row.

Example:
    >>> from gateway.testing import Stream, evaluate
    >>> quotes = Stream("quotes (symbol STRING, price DOUBLE)")
    >>> intel = "SELECT symbol, price FROM quotes WHERE symbol = 'INTC' AND price < 100"
    >>> hit, miss = evaluate(intel, quotes, [{"symbol": "INTC", "price": 99.0}, {"symbol": "INTC"}])
    >>> hit.matches, hit.result
    (True, {'symbol': 'INTC', 'price': 99.0})
    >>> miss.matches, miss.why
    (False, 'price < 100 is NULL')
"""

_OURS = ("gateway", "grouping", "schemas", "spark_jobs")

try:
    from gateway.testing.digests import digests
    from gateway.testing.evaluation import EvaluatedRow, evaluate
    from gateway.testing.query import ACCEPTED_AT
    from gateway.testing.records import Record
    from gateway.testing.stream import Stream
    from gateway.testing.table import Table
    from grouping.model.errors import InputError
except ModuleNotFoundError as error:
    _library = (error.name or "").partition(".")[0]
    if _library in _OURS:
        raise
    raise ModuleNotFoundError(
        f'gateway.testing needs "{_library}", which is not installed. Install it: pip install "cq-gateway[server]".',
        name=error.name,
    ) from None

__all__ = ["ACCEPTED_AT", "EvaluatedRow", "InputError", "Record", "Stream", "Table", "digests", "evaluate"]
