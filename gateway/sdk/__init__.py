"""The subscriber's side: programs create and follow CQs, and need only a connection to Kafka.

    from gateway.sdk import connect

    with connect("127.0.0.1:9092", "alice") as client:
        client.create_stream("quotes", {"symbol": "STRING", "price": "DOUBLE"}, partitions=2)
        intel = client.create("intel", "SELECT symbol, price FROM quotes WHERE symbol = 'INTC' AND price < 100")
        with client.subscribe(intel) as results:
            for match in results:
                print(match.row)

`gateway.sdk.aio` has the same client for asyncio. The SDK does not import Spark, Redis or the compiler.
"""

from gateway.sdk.client import Client, connect
from gateway.sdk.errors import (
    BadCursor,
    BadQuery,
    BadStatement,
    BadTime,
    ClientClosed,
    CommandRejection,
    Conflict,
    FilterUnavailable,
    GatewayError,
    NoReply,
    NotAllowed,
    NotFound,
    PartialRejection,
    ResultsGone,
    SigningUnavailable,
    TransportError,
    Unavailable,
)
from gateway.sdk.pipeline import Tally
from gateway.sdk.results import (
    ContinuousQuery,
    Destination,
    Digest,
    End,
    Match,
    Pause,
    Quarantine,
    Reply,
    Throttle,
    Trigger,
)
from gateway.sdk.signing import SigningKey
from gateway.sdk.subscription import Subscription
from gateway.sdk.tables import Table

# The names that these classes had in version 0.1.0; they stay valid.
Refused, Closed, Quarantined = NotAllowed, ClientClosed, Quarantine
CommandRejected, SomeRejected = CommandRejection, PartialRejection

__all__ = [
    "BadCursor",
    "BadQuery",
    "BadStatement",
    "BadTime",
    "Client",
    "ClientClosed",
    "Closed",
    "CommandRejected",
    "CommandRejection",
    "Conflict",
    "ContinuousQuery",
    "Destination",
    "Digest",
    "End",
    "FilterUnavailable",
    "GatewayError",
    "Match",
    "NoReply",
    "NotAllowed",
    "NotFound",
    "PartialRejection",
    "Pause",
    "Quarantine",
    "Quarantined",
    "Refused",
    "Reply",
    "ResultsGone",
    "SigningKey",
    "SigningUnavailable",
    "SomeRejected",
    "Subscription",
    "Table",
    "Tally",
    "Throttle",
    "TransportError",
    "Trigger",
    "Unavailable",
    "connect",
]
