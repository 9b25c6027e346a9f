"""Messages of `cq` for missing or misspelt input: a line with a remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.client import show_result
from gateway.cli.main import app

_WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from gateway.cli.entry import main
main()
"""


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_a_subscribers_installation_has_no_command_line() -> None:
    """Without the server's libraries `cq` names the package to install; a missing module of ours is our fault."""
    ran = _run("-c", _WITHOUT.format(name="typer"))
    lack, cure = '"typer", which is not installed', 'pip install "cq-gateway[server,local]"'
    assert (1, [f"cq: the command line needs {lack}. Install it: {cure}."]) == (ran.returncode, ran.stderr.splitlines())
    ran = _run("-c", _WITHOUT.format(name="schemas"))
    assert "Traceback" in ran.stderr


def test_a_misspelt_setting_is_told() -> None:
    """A variable that sets nothing is reported with a similar name; the command goes on."""
    ran = _run("-m", "gateway.cli", "status", "--data", "nowhere", CQ_KAFKA_BOOTSRAP="k:1")
    line = 'cq: CQ_KAFKA_BOOTSRAP is not a setting and is ignored. Did you mean "CQ_KAFKA_BOOTSTRAP"?'
    assert (1, [line]) == (ran.returncode, ran.stderr.splitlines())


def test_a_missing_data_folder_is_told(tmp_path: Path) -> None:
    """A person learns that there is none; a program finds the state as before."""
    folder = tmp_path / "nowhere"
    ran = CliRunner().invoke(app, ["status", "--data", str(folder)])
    assert (1, f'there is no data folder "{folder}"\n') == (ran.exit_code, ran.output)
    ran = CliRunner().invoke(app, ["status", "--data", str(folder), "--json"])
    assert (1, "stopped") == (ran.exit_code, json.loads(ran.output)["state"])
    assert not folder.exists()


def test_a_page_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The hint is a clause that can be copied behind the statement."""
    show_result("listed", {"cqs": [{"cq": "it's"}], "next": "it's"})
    assert "more: AFTER 'it''s'" == capsys.readouterr().out.splitlines()[-1]


def test_an_empty_listing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the reply's form is shown."""
    show_result("listed", {"timers": [], "next": None})
    assert ["listed", "  none"] == capsys.readouterr().out.splitlines()


def test_columns_are_shown_as_they_are_declared(capsys: pytest.CaptureFixture[str]) -> None:
    """In a description, and in a listing, whose items are lines."""
    columns = [{"name": "symbol", "type": "STRING"}, {"name": "staff", "type": "INT"}]
    show_result("described", {"table": "profiles", "columns": columns, "primary_key": ["symbol"]})
    wanted = ["  table        profiles", "  columns      symbol STRING, staff INT", "  primary_key  symbol"]
    assert ["described", *wanted] == capsys.readouterr().out.splitlines()
    show_result("listed", {"tables": [{"table": "profiles", "columns": columns}], "next": None})
    assert "profiles symbol STRING, staff INT" == " ".join(capsys.readouterr().out.splitlines()[-1].split())


def test_texts_are_shown_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    """Patterns with brackets, and words that some terminals show as pictures, stay as they are."""
    texts = [r"^\[/api\]", "[/red]", "urn:id:7"]
    show_result("x :100: y", {"views": [{"view": text} for text in texts], "next": None})
    message, _, *lines = capsys.readouterr().out.splitlines()
    assert "x :100: y" == message
    assert texts == [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give either a statement"),
        (["SHOW CQS", "--file", "all.sql"], "give either a statement"),
        (["--file", "nowhere.sql"], "the file cannot be read"),
    ],
)
def test_a_statement_or_a_file(arguments: list[str], expected: str) -> None:
    """`cq sql` without either, or with both, says so, and connects to nothing."""
    ran = CliRunner().invoke(app, ["sql", *arguments], env={"COLUMNS": "200"})
    assert 2 == ran.exit_code
    assert expected in ran.output
