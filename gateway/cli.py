"""The command line `cq`: starting and stopping everything, each role alone, and statements from a shell."""

from __future__ import annotations

import sys

import typer

from gateway.cli_client import sql, tail
from gateway.cli_errors import TELLABLE, error_line
from gateway.cli_local import down, status, up
from gateway.cli_roles import evaluator, gateway
from gateway.demo import demo

__all__ = ["app", "main"]

app = typer.Typer(
    help="Continuous queries over Kafka: register SQL, read what matches as it happens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, up, down, status, sql, tail, gateway, evaluator):
    app.command()(command)


def main() -> None:
    """Run the command line."""
    try:
        app()
    except TELLABLE as error:
        sys.exit(error_line(error))


if __name__ == "__main__":
    main()
