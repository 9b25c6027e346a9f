"""`cq logs`: the log lines of the roles."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from gateway.cli.local import Data
from gateway.local.run_folder import RunFolder
from grouping.model.errors import OperationalError
from grouping.settings.given_settings import given_settings

__all__ = ["logs"]


def logs(
    role: Annotated[
        str | None, typer.Argument(help="Only the log of this role, such as evaluator.", show_default="all")
    ] = None,
    data: Data = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of last lines to print.")] = 50,
) -> None:
    """Print the last lines of the logs of `cq up`."""
    folder = RunFolder(data or given_settings().data)
    files = {file.stem: file for file in sorted(folder.log("role").parent.glob("*.log"))}
    if role is not None and role not in files:
        raise OperationalError(f'there is no log of "{role}"', hint=f"There are: {', '.join(files) or 'none'}.")
    if not files:
        raise OperationalError(f'there are no logs in the data folder "{folder.data}"')
    chosen = files.values() if role is None else [files[role]]
    # Every machine with a shell has `tail`. With -F, `tail` also follows a file that is truncated or replaced.
    os.execvp("tail", ["tail", "-n", str(lines), *(["-F"] if follow else []), *map(str, chosen)])
