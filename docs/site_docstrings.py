"""Shows the examples of docstrings as blocks of code on the page of the SDK."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:\n((?:[ ]{4}.*\n?|\n)+)", re.MULTILINE)


class Examples(griffe.Extension):
    """Makes a block of code from the lines under ``Example:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of each object before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    code = textwrap.dedent(example[1]).strip("\n")
    fenced = f"```{'pycon' if code.startswith('>>>') else 'python'}\n{code}\n```"
    return f"Example:\n{textwrap.indent(fenced, '    ')}\n\n"
