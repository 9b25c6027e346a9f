"""The documentation is true: links and paths lead somewhere, and everything that users name is documented."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import get_args

import pytest
import typer
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from gateway import metrics
from gateway.cli.main import app
from grouping.access.access_path import IndexKind
from grouping.access.function_page import function_page
from grouping.model.errors import CODES
from grouping.model.sql_type import PLAIN_TYPES
from grouping.process.metrics_server import RoleMetric, RoleState
from grouping.settings.secret_files import secrets
from grouping.settings.settings import Settings
from grouping.settings.settings_table import settings_table, variables
from grouping.statements.clauses import CLAUSE_READERS
from grouping.statements.command import STATEMENTS, parse
from grouping.statements.stream_declaration import CHOICES, OPTIONS
from spark_jobs.runtime.driver.metrics import StreamMetrics
from tests.pages import DOCS, ROOT, anchors, blocks, check_section, links, page

_PAGES = sorted(str(path.relative_to(DOCS)) for path in (*DOCS.glob("*.md"), *DOCS.glob("records/*.md")))
_TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *map(DOCS.joinpath, _PAGES), *DOCS.glob("design/*.md")]
_READMES = [
    path for room in ("gateway", "grouping", "spark_jobs", "tests") for path in (ROOT / room).rglob("README.md")
]
_PATH = re.compile(r"`((?:docs|docker|gateway|grouping|schemas|spark_jobs|tests)/[\w./-]*)(?:::\w+)?`")
_TEST_NAME = re.compile(r"`([\w/]+\.py)::(\w+)`")
_TEST_FILE = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)(?:::\w+)?`")
_NAMED_BESIDE = re.compile(r"`(\w+|[A-Z]\w*\.\w+)(?:\(\))?`,? \(`([\w/]+\.py)`\)")
_MODULE_NAME = re.compile(r"`([a-z_]+)\.(?!py`)([A-Za-z_]\w*)`")
_SHELL = re.compile(r"^(?:\.venv/bin/)?cq ([\w-]+)(.*)$", re.MULTILINE)


@pytest.mark.parametrize("path", [*_TEXTS, *_READMES], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """A link leads to a file of the repository, and to an existing heading if one is given."""
    for link in links(path.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), link
        assert not anchor or anchor in anchors(found.read_text("utf-8")), link


@pytest.mark.parametrize("path", [*_TEXTS, *_READMES], ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_are_there(path: Path) -> None:
    """Every path written for the repository exists."""
    for name in _PATH.findall(path.read_text("utf-8")):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", [*_TEXTS, *_READMES], ids=lambda path: str(path.relative_to(ROOT)))
def test_signposts_lead_to_definitions(path: Path) -> None:
    """A file named on a page defines the name beside it: ``file.py::name`` and ``name`` (``file.py``)."""
    text = path.read_text("utf-8")
    for file, name in _TEST_NAME.findall(text):
        assert any(_defines(found, name) for found in _files(file)), f"{file}::{name}"
    for name, file in _NAMED_BESIDE.findall(text):
        assert any(_defines(found, name.split(".")[0]) for found in _files(file)), f"{name} in {file}"
    if path.parent.name == "design":
        for module, name in _MODULE_NAME.findall(text):
            assert not (found := _files(f"{module}.py")) or any(_defines(file, name) for file in found), name
    for file in _TEST_FILE.findall(text):
        assert _files(file), file


@lru_cache(maxsize=1)
def _sources() -> tuple[str, ...]:
    """Return the paths of the modules of the repository."""
    folders = ("docs", "gateway", "grouping", "schemas", "spark_jobs", "tests")
    return tuple(str(path) for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _files(name: str) -> list[Path]:
    """Return the modules of the repository that have a path with this end."""
    return [Path(path) for path in _sources() if path.endswith(f"/{name.removeprefix('/')}")]


def _defines(path: Path, name: str) -> bool:
    """Return whether a module has a function, a class or a variable of this name."""
    pattern = rf"^\s*(?:(?:async )?def|class) {name}\b|^\s*{name}\b[^=\n]*="
    return bool(re.search(pattern, path.read_text("utf-8"), re.MULTILINE))


def test_every_page_is_in_the_contents() -> None:
    """The site's contents list each page."""
    contents = (ROOT / "mkdocs.yml").read_text()
    assert not [name for name in _PAGES if f" {name}\n" not in contents]


def test_every_design_note_is_in_the_index() -> None:
    """The index of design notes links each note, and a note has at most 25 lines."""
    notes = [path for path in (DOCS / "design").glob("*.md") if path.name != "index.md"]
    assert len(notes) > 20
    assert {path.name for path in notes} == set(links(page("design/index.md")))
    assert not [path.name for path in notes if len(path.read_text("utf-8").splitlines()) > 25]


def test_the_settings_are_listed(rewrite: bool) -> None:
    """The table of settings equals the table generated from the settings."""
    check_section("settings.md", "settings", settings_table(), rewrite=rewrite)


def test_the_limits_are_listed() -> None:
    """The table of limits names each setting that bounds the cost of a CREATE."""
    section = page("sizing.md").partition("\n## Limits\n")[2].partition("\n## ")[0]
    assert not [name for name in variables() if name.startswith("CQ_LIMITS_") and f"`{name}`" not in section]


def test_the_secrets_are_listed() -> None:
    """The page names each secret setting, and nothing else as one."""
    section = page("security.md").partition("\n## Secrets\n")[2]
    assert {f"CQ_{part}_{name}".upper() for part, name in secrets(Settings)} == set(
        re.findall(r"`(CQ_\w+)`", section.partition("There are ")[2].partition("No secret")[0])
    )


def test_the_functions_are_listed(rewrite: bool) -> None:
    """The list of functions equals the list generated from the compiler's tables."""
    check_section("expressions.md", "functions", function_page(), rewrite=rewrite)


def test_the_metrics_are_listed(rewrite: bool) -> None:
    """The table of metrics equals the table generated from the metrics."""
    check_section("monitoring.md", "metrics", "\n".join(_metrics()), rewrite=rewrite)


def test_the_findings_of_the_doctor_are_listed() -> None:
    """Each code of `cq doctor` has its row, and so has each kind of object that Redis may lack."""
    section = page("operating.md").partition("## `cq doctor`")[2].partition("\n## ")[0]
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "gateway" / "doctor").glob("*.py"))
    codes = {*re.findall(r'Finding\(\s*"([a-z-]+)"', source), *re.findall(r'\("((?:cq|row)-\w+)"', source)}
    kinds = re.findall(r'^        "(\w+)": (?:inventory|\{)', source, re.MULTILINE)
    assert len(codes) > 15
    assert len(kinds) > 4
    assert not [name for name in (*codes, *kinds) if f"`{name}`" not in section]


def test_every_metric_is_public() -> None:
    """The module of the gateway's metrics names all of them, from which the table is made."""
    made = {name for name, value in vars(metrics).items() if isinstance(value, MetricWrapperBase)}
    assert made <= set(metrics.__all__), made - set(metrics.__all__)


@pytest.mark.parametrize("path", [*_TEXTS, *_READMES], ids=lambda path: str(path.relative_to(ROOT)))
def test_metrics_are_there(path: Path) -> None:
    """Every name given as a metric on a page is a metric, under its name in Prometheus."""
    known = {"cq_token", *re.findall(r"^\| `(cq_\w+?)(?:_bucket)?[`,]", "\n".join(_metrics()), re.MULTILINE)}
    assert set(re.findall(r"`(cq_[a-z_]+)`", path.read_text("utf-8"))) <= known


def _metrics() -> Iterator[str]:
    yield "| metric | labels | |"
    yield "|---|---|---|"
    for family, labels in _families():
        suffix = {"counter": "_total", "histogram": "_bucket, …_sum, …_count"}.get(family.type, "")
        shown = ", ".join(f"`{label}`" for label in labels)
        yield f"| `{family.name}{suffix}` | {shown} | {family.documentation} |"


def _families() -> Iterator[tuple[Metric, Sequence[str]]]:
    """Yield the metrics of both roles, of the gateway and of the evaluator, with their labels."""
    for family in RoleMetric(RoleState(), "gateway").collect():
        yield family, family._labelnames  # noqa: SLF001
    for metric in (getattr(metrics, name) for name in metrics.__all__):
        if isinstance(metric, MetricWrapperBase):
            [family] = metric.describe()
            yield family, metric._labelnames  # noqa: SLF001  # the client library has no public way to its labels
    for family in StreamMetrics(dict).collect():
        yield family, family._labelnames  # noqa: SLF001


def test_the_codes_are_listed() -> None:
    """Each code of a rejected command has its row, in the order of the code's own list, and most have an example."""
    section = page("commands.md").partition("<!-- codes -->")[2].partition("<!-- /codes -->")[0]
    assert list(CODES) == re.findall(r"^\| `([a-z-]+)`", section, re.MULTILINE)
    shown = {block.title.removeprefix("rejected: ") for name in _PAGES for block in blocks(name) if block.title}
    assert set(CODES) - shown <= {"malformed-command", "command-too-large", "unknown-group", "unavailable"}


def test_every_statement_and_clause_has_an_example() -> None:
    """The page of statements has an example of each statement, clause, option and choice; all of them parse."""
    examples = [block.text for block in blocks("statements.md") if block.language == "sql"]
    accepted = [block.text for block in blocks("statements.md") if block.language == "sql" and not block.title]
    for text in accepted:
        parse(text)
    for words in STATEMENTS:
        assert any(re.match(r"\s+".join(words) + r"\b", text) for text in examples), words
    whole = "\n".join(accepted)
    clauses = ("AS", "SHARED", "DEDICATED", "VIRTUAL", "DIGEST ALL", "DIGEST LATEST BY", "DIGEST COUNT", "DIGEST TOP")
    further = ("EVEN IF EMPTY", "EVERY CRON", "AT TIME ZONE", "EXPIRE AFTER", "SET", "LIKE", "AFTER", "LIMIT")
    for word in (*CLAUSE_READERS, *clauses, *further, *OPTIONS):
        # The gateway of the examples has no registry, so the example of that option is refused.
        assert re.search(rf"\b{word}\b", "\n".join(examples) if word == "registry" else whole), word
    for choice in (choice for choices in CHOICES.values() for choice in choices):
        assert f"'{choice}'" in whole, choice


def test_pages_do_not_collide() -> None:
    """Pages whose examples run in sequence on the same stack create no source twice."""
    created: dict[str, str] = {}
    for name in _PAGES:
        for block in blocks(name):
            if block.title.startswith("rejected") or name in ("testing.md", "commands.md"):
                continue
            for source in re.findall(r"CREATE (?:STREAM|TABLE|VIEW) (\w+)", block.text):
                if source != "IF":
                    assert created.setdefault(source, name) == name, source
            for source in re.findall(r'create_(?:stream|table|view)\(\s*"(\w+)"', block.text):
                assert created.setdefault(source, name) == name, source
    assert len(created) > 20


def test_drawings_fit_into_a_window() -> None:
    """`docs/site.css` wraps long lines of code; a drawing, which cannot be wrapped, has 130 characters at most."""
    assert "white-space: pre-wrap" in page("site.css")
    for name in _PAGES:
        for block in blocks(name):
            if not block.language or block.language == "text":
                assert max(map(len, block.text.splitlines())) <= 130, block


def test_every_kind_of_index_is_listed() -> None:
    """The table under EXPLAIN has each kind of index that a plan may name, and no page names a further kind."""
    table = page("statements.md").partition("| `index` |")[2].partition("\n\n")[0]
    kinds = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert list(get_args(IndexKind)) == kinds
    named = {found for name in _PAGES for found in re.findall(r"index\S* is `(\w+)`", page(name))}
    assert named <= set(kinds)


def test_every_type_is_listed() -> None:
    """The table of types has each type that a column may have."""
    table = page("expressions.md").partition("## Types")[2].partition("\n\n##")[0]
    for name in (*PLAIN_TYPES, "DECIMAL(p,s)"):
        assert f"`{name}`" in table, name


def test_commands_and_variables_are_there() -> None:
    """Shell commands on the pages exist: commands of `cq` with their options, targets of make, variables."""
    command = typer.main.get_command(app)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known_variables = {*variables(), "CQ_STATUS_FILE", "CQ_REQUIRE_NETNS"}
    for path in _TEXTS:
        text = path.read_text("utf-8")
        for name, arguments in _SHELL.findall(text):
            known = {option for param in command.commands[name].params for option in param.opts}  # type: ignore[attr-defined]
            plain = re.sub(r'"[^"]*"', "", arguments)
            assert set(re.findall(r"--[a-z-]+", plain)) <= known, f"{path.name}: cq {name}{arguments}"
        assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= targets, path.name
        assert set(re.findall(r"\bCQ_[A-Z_]+\b", text)) <= known_variables, path.name


def test_every_word_of_the_glossary_is_there_once() -> None:
    """The glossary has each term once, in alphabetic order."""
    terms = re.findall(r"^\| ([^|]+) \|", page("glossary.md"), re.MULTILINE)[1:]
    terms = [term for term in terms if not term.startswith("-")]
    assert sorted(set(terms), key=str.casefold) == terms
