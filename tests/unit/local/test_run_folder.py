"""A data folder with files in an unknown form: `cq up` starts all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.local.launch import Ports
from gateway.local.run_folder import RunFolder


@pytest.mark.parametrize(
    "body", [b"", b"\xff\x00", b"[1, 2]", b"null", b'{"kafka": "nine"}', b'{"kafka": -1}', b'{"ka']
)
def test_files_of_another_form_count_as_none(tmp_path: Path, body: bytes) -> None:
    """Whatever a lock, a list of ports or a state holds that cannot be read, there is a port, and nobody runs."""
    run = RunFolder(tmp_path)
    (tmp_path / "run").mkdir()
    for name in ("lock", "ports.json", "supervisor.json"):
        (tmp_path / "run" / name).write_bytes(body)
    assert run.holder() is None
    assert isinstance(run.read(run.state), dict)
    assert 0 < Ports(run).take("kafka", 0) < 1 << 16
