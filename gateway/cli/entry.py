"""The entry point of `cq`. If only the SDK is installed, `main` prints which library is missing."""

from __future__ import annotations

import sys

__all__ = ["main"]

_OURS = ("gateway", "grouping", "schemas", "spark_jobs")


def main() -> None:
    """Run the command line."""
    try:
        from gateway.cli.main import main as run
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in _OURS:
            raise
        sys.exit(
            f'cq: the command line needs "{library}", which is not installed. '
            'Install it: pip install "cq-gateway[server,local]".'
        )
    run()
