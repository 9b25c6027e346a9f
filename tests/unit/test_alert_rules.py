"""The alert rules, checked by Prometheus's own tool: some series raise each rule, and some do not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring import FOLDER, alerts

_GATEWAY = 'cq_role{role="gateway", state="active", job="%s", instance="%s"}'
_EVALUATOR = 'cq_role{role="evaluator", state="active", job="any", instance="c"}'
_STANDBY = 'up{job="cq-gateway", instance="b"}'
_START = 'process_start_time_seconds{job="any", instance="c"}'

_RAISING: dict[str, dict[str, str]] = {
    "GatewayDown": {_GATEWAY % ("any", "a"): "1x3 stale"},
    "EvaluatorDown": {_EVALUATOR: "1x3 0x40"},
    "RoleRestarts": {_START: "1x5 2x5 3x5 4x20", _EVALUATOR: "1x40"},
    "RedisRebuilt": {'cq_rebuilds_total{job="any", instance="a"}': "0x5 1x40"},
    "StreamNotEvaluated": {'cq_stream_running{stream="s"}': "0x40"},
    "StreamWithoutEvaluator": {'cq_stream_evaluators{stream="s"}': "0x40"},
    "EventsBehind": {'cq_seconds_behind{stream="s"}': "61x60"},
    "EventsDeleted": {'cq_events_deleted_total{stream="s"}': "0x5 1x40"},
    "TableMemoryNearLimit": {"cq_table_memory_bytes": "91x100", "cq_table_memory_limit_bytes": "100x100"},
    "GroupsQuarantined": {'cq_quarantined_groups{stream="s"}': "1x40"},
    "DeadLetters": {'cq_evaluator_dead_letters{code="undecodable"}': "0x5 1x40"},
    "TicksLate": {
        'cq_tick_lateness_seconds_bucket{le="30"}': "0x200",
        'cq_tick_lateness_seconds_bucket{le="60"}': "0+1x200",
        'cq_tick_lateness_seconds_bucket{le="+Inf"}': "0+1x200",
    },
    "DigestsWait": {"cq_waiting_digests": "1x60"},
    "CommandsUnavailable": {'cq_commands_total{code="unavailable"}': "0+1x100"},
}
"""By alert: the series that raise the alert, a sample every 10 seconds."""

_CALM: dict[str, str] = {
    _GATEWAY % ("cq-gateway", "a"): "1x400",
    _GATEWAY % ("cq-gateway", "b"): "0x3 _x400",
    _STANDBY: "1x3 0x400",
    _EVALUATOR: "1x400",
    _START: "1x400",
    'cq_rebuilds_total{job="any", instance="a"}': "0x400",
    'cq_stream_running{stream="s"}': "1x400",
    'cq_stream_evaluators{stream="s"}': "1x400",
    'cq_seconds_behind{stream="s"}': "5x400",
    'cq_events_deleted_total{stream="s"}': "0x400",
    "cq_table_memory_bytes": "10x400",
    "cq_table_memory_limit_bytes": "100x400",
    'cq_quarantined_groups{stream="s"}': "0x400",
    'cq_evaluator_dead_letters{code="undecodable"}': "7x400",
    'cq_commands_total{code="unavailable"}': "3x400",
    "cq_waiting_digests": "0x400",
}
"""A dead standby beside an active gateway, and all else as it is every day: no alert."""
_MINUTES = {"TableMemoryNearLimit": 15, "TicksLate": 25, "CommandsUnavailable": 10, "EventsBehind": 8, "DigestsWait": 8}
_ACTIVE = {_GATEWAY % ("cq-gateway", "a"): "1x400", _EVALUATOR: "1x400"}


def _case(series: dict[str, str], minutes: int, raised: set[str]) -> dict[str, Any]:
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    queries = [
        {
            "expr": f'count(ALERTS{{alertname="{alert["alert"]}", alertstate="firing"}}) > 0 or vector(0)',
            "eval_time": f"{minutes}m",
            "exp_samples": [{"labels": "{}", "value": int(alert["alert"] in raised)}],
        }
        for alert in alerts()
    ]
    return {"interval": "10s", "input_series": inputs, "promql_expr_test": queries}


def test_each_rule_is_raised_by_its_fault_alone(tmp_path: Path) -> None:
    """A first dead letter, a missing target and a restarting role raise alerts; a dead standby does not."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, of the package prometheus, is not installed")
    assert _RAISING.keys() == {alert["alert"] for alert in alerts()}
    cases = [_case(_CALM, 20, set())]
    for name, series in _RAISING.items():
        roles = {key: value for key, value in _ACTIVE.items() if not (name.endswith("Down") and key in _role_of(name))}
        cases.append(_case(roles | series, _MINUTES.get(name, 4), {name}))
    rules = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "10s", "tests": cases}
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump(rules))
    ran = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert 0 == ran.returncode, ran.stdout + ran.stderr


def _role_of(alert: str) -> set[str]:
    return {_GATEWAY % ("cq-gateway", "a")} if alert == "GatewayDown" else {_EVALUATOR}
