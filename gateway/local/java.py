"""Finds a Java for Kafka and Spark that Spark supports: the Java of JAVA_HOME, or else the Java on the PATH."""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grouping.model.errors import OperationalError

__all__ = ["SUPPORTED", "Java", "find_java"]

SUPPORTED = (17, 21)
"""Java versions that Spark supports."""

log = logging.getLogger(__name__)

HINT = "Install a Java 17 or 21 (a JRE is enough) and put it on the PATH, or set JAVA_HOME to it."


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime."""

    home: Path
    """The JAVA_HOME of this runtime."""

    version: int
    """The feature release, such as 17 or 21."""

    @property
    def command(self) -> str:
        """The path of the program ``java``."""
        return str(self.home / "bin" / "java")


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first supported Java.

    Args:
        environment: The environment with JAVA_HOME and PATH; None for the environment of this process.

    Raises:
        OperationalError: No Java was found, or only unsupported versions.
    """
    environment = os.environ if environment is None else environment
    unsupported = []
    for path in _candidates(environment):
        java = _ask(path)
        if java is None:
            unsupported.append(f"{path} does not run")
        elif java.version in SUPPORTED:
            if unsupported:
                _warn(f"JAVA_HOME is passed over: {', '.join(unsupported)}; Java {java.version} of {java.home} is used")
            return java
        else:
            unsupported.append(f"{path} is Java {java.version}")
    if unsupported:
        raise OperationalError(f"no supported Java: {', '.join(unsupported)}", hint=HINT)
    raise OperationalError("no Java was found", hint=HINT)


@functools.cache
def _warn(line: str) -> None:
    """Log a warning. The same warning is logged only once, although several callers look for Java."""
    log.warning(line)


def _candidates(environment: Mapping[str, str]) -> Iterator[str]:
    if home := environment.get("JAVA_HOME"):
        yield str(Path(home) / "bin" / "java")
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield found


def _ask(path: str) -> Java | None:
    """Ask the Java at a path for its version and its home, since the path may be a link or a shim."""
    command = [path, "-XshowSettings:properties", "-version"]
    try:
        properties = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", properties, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", properties, re.MULTILINE)
    return Java(Path(home[1]), int(version[1])) if home and version else None
