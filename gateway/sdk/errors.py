"""The errors that the SDK raises.

    GatewayError
    ├── CommandRejection       the gateway rejected the command: code, message, detail, hint
    │   ├── BadStatement       syntax-error, unknown-statement, malformed-command, command-too-large
    │   ├── BadQuery           unknown-column, unknown-function, type-mismatch, unsupported-query
    │   ├── NotFound           unknown-cq, unknown-group, unknown-stream
    │   ├── Conflict           cq-exists, stream-exists, stream-in-use, stream-mismatch
    │   ├── BadTime            bad-interval, bad-time, already-expired
    │   ├── NotAllowed         not-allowed, quota-exceeded
    │   └── Unavailable        unavailable: nothing was changed, the command can be sent again
    ├── PartialRejection       some of many commands were rejected; has all outcomes in order
    ├── TransportError         Kafka failed, or could not be reached
    │   ├── NoReply            a command's reply did not come in time; send the same command id again
    │   └── ResultsGone        the next results of a reader were deleted
    ├── BadCursor              the text is not a cursor of this SDK
    ├── FilterUnavailable      a virtual destination's filter cannot be applied here
    ├── SigningUnavailable     commands cannot be signed: the key is not valid, or PyJWT is missing
    └── ClientClosed           the client or subscription was closed

Only `driver_errors.py` turns errors of the Kafka driver into these errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.sdk.results import Reply

__all__ = [
    "BadCursor",
    "BadQuery",
    "BadStatement",
    "BadTime",
    "ClientClosed",
    "CommandRejection",
    "Conflict",
    "FilterUnavailable",
    "GatewayError",
    "NoReply",
    "NotAllowed",
    "NotFound",
    "PartialRejection",
    "ResultsGone",
    "SigningUnavailable",
    "TransportError",
    "Unavailable",
    "rejection",
]


class GatewayError(Exception):
    """The base class of the SDK's errors: a message in lower case and, for some errors, a detail and a hint."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        """Further facts, in full sentences."""
        self.hint = hint
        """Advice, in full sentences."""


class CommandRejection(GatewayError):
    """The rejection of a command. For a code that this SDK does not know, the error has this class itself."""

    def __init__(
        self, message: str, *, code: str, command_id: str, detail: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.code = code
        """The code of the rejection, as listed in docs/commands.md. Codes never change their meaning."""
        self.command_id = command_id
        """The id of the rejected command."""
        self.reply: Reply | None = None
        """The whole reply."""

    def __str__(self) -> str:
        """The code and the message, followed by the detail and the hint if there are any."""
        return " ".join(part for part in (f"{self.code}: {self.message}.", self.detail, self.hint) if part)


class BadStatement(CommandRejection):
    """The text is not a statement that the gateway knows."""


class BadQuery(CommandRejection):
    """The statement is well formed, but its SELECT cannot be a continuous query."""


class NotFound(CommandRejection):
    """The command names a CQ, group or source that does not exist, or that this subscriber may not see."""


class Conflict(CommandRejection):
    """The command conflicts with existing objects: a name is taken, a source is in use, or a topic does not fit."""


class BadTime(CommandRejection):
    """A time or an interval in a clause is malformed, or the time is in the past."""


class NotAllowed(CommandRejection):
    """The command is well formed, but the subscriber may not send it, or it would exceed a quota."""


class Unavailable(CommandRejection):
    """The gateway could not carry the command out at this time, and changed nothing."""


class PartialRejection(GatewayError):
    """Some of many commands were rejected; all other commands were carried out."""

    def __init__(self, outcomes: Sequence[object]) -> None:
        errors = [outcome for outcome in outcomes if isinstance(outcome, CommandRejection)]
        super().__init__(f"{len(errors)} of {len(outcomes)} commands were rejected", detail=str(errors[0]))
        self.outcomes = outcomes
        """For each command, in the given order: its reply or its `CommandRejection`."""
        self.errors = errors
        """Only the rejections, in the same order."""


class TransportError(GatewayError):
    """Kafka failed, or could not be reached."""


class NoReply(TransportError):
    """No reply came in time; the command may or may not have been carried out."""

    def __init__(self, command_id: str, seconds: float, postponed: Reply | None = None) -> None:
        earlier = "" if postponed is None else f" Before, the gateway could not carry it out: {postponed.message}."
        super().__init__(
            f'no reply to command "{command_id}" within {seconds:g} s',
            detail=f"The gateway may be down or unreachable; the command may still be carried out.{earlier}",
            hint="Send it again with the same command_id: that never carries it out twice.",
        )
        self.command_id = command_id


class ResultsGone(TransportError):
    """The next results of a reader have been deleted, by retention or with their topic."""


class BadCursor(GatewayError):
    """The text is not a cursor of this SDK."""


class FilterUnavailable(GatewayError):
    """The filter of a virtual destination cannot be applied: DuckDB is not installed, or the filter is not usable."""


class SigningUnavailable(GatewayError):
    """Commands cannot be signed: the key is not valid, or PyJWT is not installed."""


class ClientClosed(GatewayError):
    """The client or subscription was closed."""


_CLASSES: dict[str, type[CommandRejection]] = {
    "malformed-command": BadStatement,
    "command-too-large": BadStatement,
    "syntax-error": BadStatement,
    "unknown-statement": BadStatement,
    "unknown-stream": NotFound,
    "unknown-cq": NotFound,
    "unknown-group": NotFound,
    "unknown-column": BadQuery,
    "unknown-function": BadQuery,
    "type-mismatch": BadQuery,
    "unsupported-query": BadQuery,
    "cq-exists": Conflict,
    "stream-exists": Conflict,
    "stream-in-use": Conflict,
    "stream-mismatch": Conflict,
    "bad-interval": BadTime,
    "bad-time": BadTime,
    "already-expired": BadTime,
    "not-allowed": NotAllowed,
    "quota-exceeded": NotAllowed,
    "unavailable": Unavailable,
}


def rejection(code: str, message: str, *, command_id: str, detail: str | None, hint: str | None) -> CommandRejection:
    """Return the exception for a rejected reply.

    Example:
        >>> type(rejection("unknown-cq", 'CQ "a" does not exist', command_id="1", detail=None, hint=None)).__name__
        'NotFound'
    """
    kind = _CLASSES.get(code, CommandRejection)
    return kind(message, code=code, command_id=command_id, detail=detail, hint=hint)
