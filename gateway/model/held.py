"""A held command: its resources are being created, and later commands of its subscriber wait for it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["NotYet"]


class NotYet(Exception):
    """A command cannot be carried out yet. Nothing was changed, and the command is tried again later."""

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        """Set the condition.

        Args:
            is_ready: Tells whether the command may be tried again. The function is called often, so it must be quick.
        """
        super().__init__("a command is to be held")
        self.is_ready = is_ready
