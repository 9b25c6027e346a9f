"""Runs the Apache Ivy that pyspark includes, so that jars can be fetched with Java, without Maven."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from gateway.local.java import find_java
from grouping.model.errors import OperationalError

__all__ = ["retrieve"]

Coordinates = tuple[str, str, str]
"""The organisation, module and revision of a jar."""


def retrieve(jars: Iterable[Coordinates], folder: Path, mirror: str, progress: Callable[[int], None]) -> str:
    """Let Ivy fetch exactly these jars into a folder as ``<module>-<revision>.jar``.

    Args:
        jars: The jars to fetch, without their dependencies.
        folder: An empty folder. Ivy leaves files of its own there too.
        mirror: The root URL of a Maven repository; empty for Ivy's default.
        progress: Called with the number of jars that have been fetched.

    Returns:
        Ivy's explanation, in one line, for a jar that was not fetched. Without such a jar, the line has no meaning.

    Raises:
        OperationalError: No supported Java is installed, or pyspark is not installed.
    """
    (folder / "settings.xml").write_text(_settings(folder, mirror), "utf-8")
    (folder / "ivy.xml").write_text(_module(jars), "utf-8")
    command = [find_java().command, "-cp", os.pathsep.join(_own_jars()), "org.apache.ivy.Main"]
    command += ["-settings", str(folder / "settings.xml"), "-ivy", str(folder / "ivy.xml")]
    command += ["-retrieve", str(folder / "[module]-[revision].[ext]")]
    lines: list[str] = []
    arrived = 0
    progress(arrived)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            lines.append(line.strip())
            if "[SUCCESSFUL ]" in line:
                arrived += 1
                progress(arrived)
    reason = _reason(lines)
    # The mirror's address may hold a password.
    return reason.replace(mirror.rstrip("/"), "the mirror") if mirror else reason


def _own_jars() -> list[str]:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise OperationalError("pyspark is not installed", hint='Install the extra: pip install "cq-gateway[server]".')
    folder = Path(spec.origin).parent / "jars"
    return [str(path) for pattern in ("ivy-2*.jar", "commons-cli-1*.jar") for path in folder.glob(pattern)]


def _settings(folder: Path, mirror: str) -> str:
    """Return settings with one repository and a cache in the folder. No dependency is resolved, so no pom is read."""
    root = f" root={quoteattr(mirror.rstrip('/') + '/')}" if mirror else ""
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(folder / "ivy"))}/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="false" timeoutConstraint="patient"{root}/>
  </resolvers>
</ivysettings>
"""


def _module(jars: Iterable[Coordinates]) -> str:
    dependencies = "\n".join(
        f'    <dependency org="{organisation}" name="{module}" rev="{revision}" transitive="false"/>'
        for organisation, module, revision in jars
    )
    return f"""<ivy-module version="2.0">
  <info organisation="cq" module="jars"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _reason(lines: list[str]) -> str:
    """Return the line of Ivy's output that explains the failure best."""
    for sign in ("Exception", "refused", "timed out", "not found", "ERROR"):
        for line in lines:
            if sign in line:
                return line.strip(": \t")
    return lines[-1] if lines else "Ivy gave no reason"
