"""`cq doctor`: prints faults of the installation, with a hint for each fault, and repairs them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from gateway.cli.running import Data, Kafka, Redis, settings_of
from grouping.model.wording import counted

__all__ = ["doctor"]


def doctor(
    data: Data = None,
    kafka: Kafka = None,
    redis: Redis = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without a loss.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare catalog, Redis and topics. The exit code is 1 if there are faults that were not repaired."""
    from gateway.doctor.doctor import Doctor  # imported here, so that other commands start faster

    examiner = Doctor(settings_of(data, kafka, redis))
    findings = examiner.examine()
    done = examiner.repair(findings) if repair else []
    if done:
        findings = examiner.examine()
    if as_json:
        print(json.dumps({"findings": [finding.fields for finding in findings], "repaired": done}))
    else:
        for each in done:
            print(f"done: {each}")
        for finding in findings:
            subject = f"{finding.subject}: " if finding.subject else ""
            print(f"{finding.code}  {subject}{finding.detail}\n    {finding.hint}")
        print(counted(len(findings), "finding") if findings else "everything is as the catalog says")
    raise typer.Exit(1 if findings else 0)
