"""`cq status` on another machine, which knows only the addresses of Kafka and Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.server import Stack


def _status(folder: Path, kafka: str, redis: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gateway.cli", "status", "--kafka", kafka, "--redis", redis, *options]
    environment = {**os.environ, "CQ_DATA": str(folder / "nowhere")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_roles_that_run_elsewhere_are_told(stack: Stack, lab: Lab, tmp_path: Path) -> None:
    """The state of both and of their servers, and of each stream; for people too."""
    source = lab.stream("a INT")
    lab.create("one", f"SELECT a FROM {source.name} WHERE a > 5", clauses="DO PUBLISH SHARED")
    found: dict[str, Any] = {}

    def ready() -> bool:
        found.update(json.loads(_status(tmp_path, stack.bootstrap, stack.redis_url, "--json").stdout))
        states = {found["roles"].get(role, {}).get("state") for role in ("gateway", "evaluator")}
        return bool(found["streams"].get(source.name, {}).get("cqs") == 1 and states == {"ready"})

    wait_until(ready, "the stream's CQ")
    assert {"kafka", "redis", "gateway", "evaluator"} == found["roles"].keys()
    pids = stack.endpoints()["pids"]
    for role in ("gateway", "evaluator"):
        assert ("ready", pids[role]) == (found["roles"][role]["state"], found["roles"][role]["pid"])
        assert found["addresses"][{"gateway": "metrics_url"}.get(role, "evaluator_metrics_url")].startswith("http://")
    assert 1 == found["streams"][source.name]["groups"] <= found["totals"]["groups"]
    shown = _status(tmp_path, stack.bootstrap, stack.redis_url)
    assert f"  stream {source.name}: 1 CQ, 0 events behind" in shown.stdout
    assert (shown.stdout.split()[0] == "ready") == (shown.returncode == 0)


def test_servers_that_do_not_answer_are_silent(stack: Stack, tmp_path: Path) -> None:
    """Each of them by itself; without Redis nothing is known of the roles."""
    answer = json.loads(_status(tmp_path, stack.bootstrap, "redis://127.0.0.1:1/0", "--json").stdout)
    assert ("degraded", {"kafka": "ready", "redis": "silent"}) == (
        answer["state"],
        {name: role["state"] for name, role in answer["roles"].items()},
    )
