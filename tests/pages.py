"""The pages of documentation for tests: fenced blocks, links, headings, and generated sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "ROOT", "Block", "anchors", "blocks", "check_section", "links", "page"]

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(?<!`)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        """Where it is."""
        return f"{self.page}:{self.line}"


def page(name: str) -> str:
    """Return the text of a page of `docs/`."""
    return (DOCS / name).read_text("utf-8")


def blocks(name: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page(name)
    return [
        Block(name, text.count("\n", 0, found.start()) + 1, found["language"], found["title"] or "", found["text"])
        for found in _FENCE.finditer(text)
    ]


def links(text: str) -> Iterator[str]:
    """Yield the targets of links, but none within code."""
    return (found[1] for found in _LINK.finditer(_FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """Return the anchors that the headings of a page have."""
    headings = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def check_section(name: str, marker: str, made: str, *, rewrite: bool) -> None:
    """Check that the section of a page between two marks equals the generated text, or rewrite it."""
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, _, rest = page(name).partition(begin)
    found, _, after = rest.partition(end)
    if rewrite:
        (DOCS / name).write_text(f"{before}{begin}\n{made}\n{end}{after}", "utf-8")
    else:
        assert made == found.strip(), f"docs/{name} is to be written anew: pytest --rewrite, and read the diff"
