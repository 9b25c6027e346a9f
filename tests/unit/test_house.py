"""The tree stays easy to search: small rooms, small files, and tests that use public names."""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict

import pytest

import gateway.sdk
import gateway.testing
from tests.pages import DOCS, ROOT
from tests.unit.prose import MOST_PRONOUNS, read_prose, read_source

_FOLDERS = ("gateway", "grouping", "schemas", "spark_jobs", "tests")
_FILES = sorted(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py"))
_MOST_FILES, _MOST_LINES = 20, 350
_PATCHED = re.compile(r"""setattr\(\s*(?:[\w.]+,\s*["']_|["'][\w.]+\._)[a-zA-Z]""")
"""A private name set from outside; the linter sees the reading of private names."""
_PARTICIPLES = frozenset(("anew", "met", "owed", "said", "told"))
"""Words that name nothing: a variable is called after the thing that it has, such as `report` or `pairs`."""


def test_no_room_is_too_large() -> None:
    """A room has 20 files at most, besides its mark of a package."""
    rooms = Counter(path.parent for path in _FILES if path.name != "__init__.py")
    large = {str(room.relative_to(ROOT)): count for room, count in rooms.items() if count > _MOST_FILES}
    assert not large, large


def test_no_file_is_too_long() -> None:
    """A file has 350 lines at most."""
    lines = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in _FILES}
    long = {name: count for name, count in lines.items() if count > _MOST_LINES}
    assert not long, long


def test_every_module_is_in_the_readme_of_its_room() -> None:
    """A room's README lists each of its files, but for files required by Python."""
    rooms = {path.parent for path in _FILES if path.parent.relative_to(ROOT).parts[0] != "tests"}
    readmes = {room: (room / "README.md").read_text("utf-8") for room in rooms}
    files = [path for path in _FILES if path.parent in rooms and not path.name.startswith("__")]
    left_out = [str(path.relative_to(ROOT)) for path in files if f"{path.name}`" not in readmes[path.parent]]
    assert not left_out, left_out


def test_no_test_sets_a_private_name() -> None:
    """Settings that tests change, such as limits, have public names."""
    setting = [
        f"{path.relative_to(ROOT)}: {found}" for path in _FILES for found in _PATCHED.findall(path.read_text("utf-8"))
    ]
    assert not setting, setting


def test_sentences_name_their_subject() -> None:
    """Sentences begin with a noun (`prose.py` lists forbidden beginnings), and few of a room's words are pronouns."""
    for room, prose in read_prose(_FILES, ROOT).items():
        assert not prose.nameless
        assert prose.share <= MOST_PRONOUNS, f"{room}: {prose.share:.3f} of the words are pronoun-like"


def test_no_refusal_begins_with_a_pronoun() -> None:
    """An error, its detail and its hint name the thing: "such a type", "so long a list" and "It is" do not."""
    sources = [path for path in _FILES if path.relative_to(ROOT).parts[0] != "tests"]
    texts = [f"{path.name}:{line}: {text}" for path in sources for line, text in read_source(path).errors]
    assert len(texts) > 100
    assert not [text for text in texts if text.split(": ", 1)[1].lower().startswith(("such ", "so ", "it "))]


def test_a_name_of_a_class_means_one_thing() -> None:
    """No two files define a class or type of the same name, but for names of the SDK and of the test kit."""
    users = {*gateway.sdk.__all__, *gateway.testing.__all__}
    found: dict[str, set[str]] = defaultdict(set)
    for path in _FILES:
        if path.relative_to(ROOT).parts[0] != "tests":
            for name in read_source(path).types:
                found[name.lstrip("_")].add(str(path.relative_to(ROOT)))
    assert len(found) > 800
    assert not {name: files for name, files in found.items() if len(files) > 1 and name not in users}


def test_names_are_of_things() -> None:
    """No function, argument or variable is called after what happened to it; names of tests are sentences."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in _FILES
        for name in read_source(path).names
        if not name.startswith("test_") and not _PARTICIPLES.isdisjoint(name.lower().split("_"))
    }
    assert not found, sorted(found)


def _layers(folder: str) -> dict[str, int]:
    """Return the rooms and loose files of a folder, each with its layer, the uppermost first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == [folder.replace("/", ".")]
    )
    return {name: number for number, layer in enumerate(layers) for name in layer.split(" | ")}


@pytest.mark.parametrize("folder", ["gateway", "grouping", "spark_jobs/engine", "spark_jobs/runtime"])
def test_rooms_are_listed_in_the_order_of_their_imports(folder: str) -> None:
    """The README of a folder, and the architecture page, have all its rooms in the order that import-linter holds."""
    layers = _layers(folder)
    readme = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", (ROOT / folder / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(layers) == sorted(readme)
    assert sorted(readme, key=layers.__getitem__) == readme
    page = (DOCS / "architecture.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| `{folder}/` \| (.*?) \|", page, re.MULTILINE)
    rooms = re.findall(r"`(\w+)`", row)
    assert sorted(name for name in layers if (ROOT / folder / name).is_dir()) == sorted(rooms)
    assert sorted(rooms, key=layers.__getitem__) == rooms
