"""The command line `cq`: starts and stops everything, or runs a single role, and sends statements."""

from __future__ import annotations

import os
import sys

import typer

from gateway.cli.client import sql, tail
from gateway.cli.demo import demo
from gateway.cli.doctor import doctor
from gateway.cli.errors import TELLABLE, error_line
from gateway.cli.local import down, up
from gateway.cli.logs import logs
from gateway.cli.records.dead_letters import dead_letters
from gateway.cli.records.publish import publish
from gateway.cli.records.streams import streams
from gateway.cli.roles import evaluator, gateway
from gateway.cli.scripts.export import export
from gateway.cli.status import status
from gateway.cli.top import top
from gateway.cli.variables import unknown_variables

__all__ = ["app", "main"]

app = typer.Typer(
    help="Continuous queries over Kafka: register SQL, read what matches as it happens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    demo,
    up,
    down,
    status,
    top,
    doctor,
    logs,
    sql,
    tail,
    publish,
    dead_letters,
    export,
    gateway,
    evaluator,
):
    app.command()(command)
app.add_typer(streams, name="streams")


def main() -> None:
    """Run the command line."""
    if (line := unknown_variables(os.environ)) is not None:
        print(f"cq: {line}", file=sys.stderr)
    try:
        app()
    except TELLABLE as error:
        sys.exit(error_line(error))
