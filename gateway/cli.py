"""The command line `cq`: starting and stopping everything, each role alone, and statements from a shell."""

from __future__ import annotations

import sys

import typer
from pydantic import ValidationError

from gateway.cli_local import down, status, up
from gateway.cli_roles import evaluator, gateway
from grouping.errors import ContinuousQueryError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Continuous queries over Kafka: register SQL, read what matches as it happens.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (up, down, status, gateway, evaluator):
    app.command()(command)


def main() -> None:
    """Run the command line; what a person can mend is one line, never a stack trace."""
    try:
        app()
    except ContinuousQueryError as error:
        sys.exit("cq: " + ". ".join(part.rstrip(".") for part in (error.message, error.hint) if part) + ".")
    except ValidationError as error:
        first = error.errors(include_input=False)[0]  # an input may be a secret
        name = "CQ_" + "_".join(str(part) for part in first["loc"]).upper()
        sys.exit(f"cq: setting {name} is not valid: {first['msg'].lower()}.")
    except OSError as error:
        where = f' "{error.filename}"' if error.filename else ""
        sys.exit(f"cq: the system refuses{where}: {(error.strerror or str(error)).lower()}.")


if __name__ == "__main__":
    main()
