"""The servers that an operator's command uses: given on the command line, or started by a running `cq up`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.local.run_folder import RunFolder
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import Settings

__all__ = ["Data", "Kafka", "Redis", "settings_of"]

Data = Annotated[Path | None, typer.Option(help="Folder of a `cq up`.", show_default="cq-data")]
Kafka = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Kafka.", show_default="127.0.0.1:9092")]
Redis = Annotated[str | None, typer.Option(metavar="URL", help="Redis or Valkey.", show_default="CQ_REDIS_URL")]


def settings_of(data: Path | None, kafka: str | None, redis: str | None) -> Settings:
    """Return the settings with the given servers, completed by the servers of a `cq up` that runs on the folder."""
    folder = RunFolder(data or given_settings().data)
    running = folder.read(folder.endpoints)
    given = {
        "CQ_DATA": data,
        "CQ_KAFKA_BOOTSTRAP": kafka or running.get("bootstrap"),
        "CQ_REDIS_URL": redis or running.get("redis_url"),
    }
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    return given_settings()
