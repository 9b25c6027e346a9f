"""`cq doctor`: what is wrong, in a line each, and its repair."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.roles import Kafka, Redis
from gateway.local.run_folder import RunFolder
from grouping.model.wording import counted
from grouping.settings import Settings

__all__ = ["doctor"]

Data = Annotated[Path | None, typer.Option(help="Folder of a `cq up`.", show_default="cq-data")]


def doctor(
    data: Data = None,
    kafka: Kafka = None,
    redis: Redis = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without a loss.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Compare catalog, Redis and topics; the exit code is 1 when something is wrong, and stays so."""
    from gateway.doctor.doctor import Doctor  # the command line starts without it

    examiner = Doctor(_settings(data, kafka, redis))
    findings = examiner.examine()
    done = examiner.repair(findings) if repair else []
    if done:
        findings = examiner.examine()
    if as_json:
        print(json.dumps({"findings": [finding._asdict() for finding in findings], "repaired": done}))
    else:
        for each in done:
            print(f"done: {each}")
        for finding in findings:
            subject = f"{finding.subject}: " if finding.subject else ""
            print(f"{finding.code}  {subject}{finding.detail}\n    {finding.hint}")
        print(counted(len(findings), "finding") if findings else "everything is as the catalog says")
    raise typer.Exit(1 if findings else 0)


def _settings(data: Path | None, kafka: str | None, redis: str | None) -> Settings:
    """Return the settings; servers that are not given are those of the `cq up` that runs on the folder, if one does."""
    folder = data or Settings().data
    running = RunFolder(folder).read(RunFolder(folder).endpoints)
    given = {
        "CQ_DATA": data,
        "CQ_KAFKA_BOOTSTRAP": kafka or running.get("bootstrap"),
        "CQ_REDIS_URL": redis or running.get("redis_url"),
    }
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    return Settings()
