"""Adds pages to the site of `make docs`: the READMEs of rooms and the changelog.

A page in `docs/` links to files of the repository by their paths, such as `../gateway/README.md`, so that the links
also work where the repository is browsed. This module makes such files pages of the site, and changes the links.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_ROOMS = ("gateway", "grouping", "spark_jobs", "tests")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the repository that are pages too."""
    for path, page in _pages().items():
        files.append(File.generated(config, page, content=(_ROOT / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links from file to file into links from page to page."""
    pages = _pages()
    origins = {target: path for path, target in pages.items()}
    here = page.file.src_uri
    origin = origins.get(here, f"docs/{here}")

    def to_page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link[1]))
        found = pages.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        return link[1] if found is None else posixpath.relpath(found, posixpath.dirname(here) or ".")

    return _LINK.sub(to_page, markdown)


def _pages() -> dict[str, str]:
    """Return file of the repository → page of the site."""
    return dict(_found())


def _found() -> Iterator[tuple[str, str]]:
    yield "CHANGELOG.md", "changelog.md"
    for room in _ROOMS:
        for readme in sorted((_ROOT / room).rglob("README.md")):
            path = readme.relative_to(_ROOT).as_posix()
            yield path, f"rooms/{path.removesuffix('/README.md').replace('/', '-')}.md"
