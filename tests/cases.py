"""Golden case files: the input of a stage of the compiler, and the expected output.

A file under ``tests/cases/<folder>/`` holds one or more cases, with a blank line between them:

    # Why this case is there; one line or several.
    stage option=value
    the input, of as many lines as it needs
    ----
    the expected output

A case ends where a blank line is followed by a line that begins with ``#``, or with the file. Run pytest with
``--rewrite`` to fill in the present output, then read the diff.

Example of use:

    @pytest.mark.parametrize("case", load("render"), ids=str)
    def test_render(case: Case, pytestconfig: pytest.Config) -> None:
        case.check(render(case.input), rewrite=pytestconfig.getoption("--rewrite", default=False))
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from grouping.model.errors import InputError

__all__ = ["Case", "load", "refusal"]

FOLDER = Path(__file__).parent / "cases"
DIVIDER = "----"
_NEXT_CASE = re.compile(r"\n\s*\n(?=#)")


@dataclass(frozen=True, slots=True)
class Case:
    """An input of a stage and its golden output."""

    path: Path
    index: int
    """Place within the file, from 0."""
    comment: str
    stage: str
    options: dict[str, str] = field(hash=False)
    input: str
    expected: str

    def check(self, actual: str, *, rewrite: bool = False) -> None:
        """Assert the expected output, or with `rewrite` store the output as expected."""
        actual = actual.strip("\n")
        if rewrite and actual != self.expected:
            self._rewrite(actual)
            return
        assert self.expected == actual, f"{self}: {self.comment}"

    def _rewrite(self, actual: str) -> None:
        blocks = _blocks(self.path)
        lines = blocks[self.index].split("\n")
        blocks[self.index] = "\n".join([*lines[: lines.index(DIVIDER) + 1], actual])
        self.path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}-{self.index}"


def load(folder: str, stage: str | None = None) -> list[Case]:
    """Return the cases of a folder's files in order, or of a single stage."""
    paths = sorted((FOLDER / folder).glob("*.case"))
    if not paths:
        raise FileNotFoundError(f"there are no case files in {FOLDER / folder}")
    cases = [_parse(path, index, block) for path in paths for index, block in enumerate(_blocks(path))]
    return [case for case in cases if stage is None or case.stage == stage]


def refusal(error: InputError) -> str:
    """Return the text that stands for a refusal in a case's output."""
    lines = [f"error: {error.code}", f"message: {error.message}", f"detail: {error.detail}", f"hint: {error.hint}"]
    return "\n".join(line for line in lines if not line.endswith(": None"))


def _blocks(path: Path) -> list[str]:
    return _NEXT_CASE.split(path.read_text(encoding="utf-8").strip("\n"))


def _parse(path: Path, index: int, block: str) -> Case:
    lines = block.split("\n")
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    stage, *options = shlex.split(lines[first])
    try:
        divider = lines.index(DIVIDER)
    except ValueError:
        raise ValueError(f"{path}: case {index} has no line {DIVIDER}") from None
    return Case(
        path=path,
        index=index,
        comment=" ".join(line.lstrip("# ") for line in lines[:first]),
        stage=stage,
        options=dict(option.split("=", 1) for option in options),
        input="\n".join(lines[first + 1 : divider]),
        expected="\n".join(lines[divider + 1 :]).strip("\n"),
    )
