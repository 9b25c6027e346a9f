"""Fetches the jars of the Kafka broker and of Spark's Kafka connector, once for each user, with the Ivy in pyspark.

A lock file names each jar with its SHA-256. So Ivy does not have to resolve dependencies, and each jar is checked
before use. Each version of a lock file has a folder of its own in the cache, so versions of the product do not disturb
each other. Jars come from Ivy's default (Maven Central), or from the user's mirror (setting ``jars.mirror``).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from gateway.local.ivy import retrieve
from grouping.model.errors import OperationalError
from grouping.settings.given_settings import given_settings
from grouping.settings.settings import JarSettings

__all__ = ["KAFKA", "SPARK", "Jar", "cache_folder", "ensure_jars", "read_lock", "show_progress"]

KAFKA = "kafka.lock"
"""The lock file for the Apache Kafka broker and its logging libraries."""

SPARK = "spark.lock"
"""The lock file for Spark's Kafka source."""

DownloadProgress = Callable[[int, int], None]
"""Called with the number of jars that are in the folder, and the number of all jars."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A line of a lock file."""

    organisation: str
    module: str
    revision: str
    sha256: str

    @property
    def file(self) -> str:
        """The jar's file name in the cache."""
        return f"{self.module}-{self.revision}.jar"


def read_lock(name: str, package: str = __package__) -> list[Jar]:
    """Return the jars of a lock file in a package. Each line is ``<sha256> <organisation>:<module>:<revision>``.

    Example:
        >>> [jar.file for jar in read_lock(SPARK)][:2]
        ['spark-sql-kafka-0-10_2.13-4.2.0.jar', 'spark-token-provider-kafka-0-10_2.13-4.2.0.jar']
    """
    text = resources.files(package).joinpath(name).read_text("utf-8")
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    split = ((sha256, *coordinates.split(":")) for sha256, coordinates in lines)
    return [Jar(organisation, module, revision, sha256) for sha256, organisation, module, revision in split]


def cache_folder(settings: JarSettings) -> Path:
    """Return the folder for jars: the folder in the settings or, by default, a folder in the user's cache."""
    if settings.cache is not None:
        return settings.cache
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cq-gateway" / "jars"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cq-gateway" / "jars"


def ensure_jars(
    name: str,
    settings: JarSettings,
    progress: DownloadProgress = lambda *_: None,
    package: str = __package__,
) -> Path:
    """Fetch the missing jars of a lock file, and return the folder with exactly its jars.

    Several processes may call this function at the same time. The first one fetches the jars, and the others wait.

    Args:
        name: `KAFKA`, `SPARK` or another lock file.
        settings: The settings with the cache and the mirror.
        progress: Called with the number of fetched jars: at the start, and after each jar. Never called if no jar is
            missing.
        package: The package with the lock file.

    Raises:
        OperationalError: A jar cannot be fetched or has a wrong checksum, no Java is installed, or the folder cannot be
            written.
    """
    jars = read_lock(name, package)
    version = hashlib.sha256("".join(jar.sha256 for jar in jars).encode()).hexdigest()[:12]
    folder = cache_folder(settings) / f"{name.removesuffix('.lock')}-{version}"
    if _missing(folder, jars):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / ".lock"):
                for left_over in folder.glob(".fetch-*"):  # the folder was left by a killed process
                    shutil.rmtree(left_over, ignore_errors=True)
                missing = _missing(folder, jars)
                _fetch(folder, missing, settings, lambda new: progress(len(jars) - len(missing) + new, len(jars)))
        except OSError as error:
            raise OperationalError(
                f'the jars cannot be kept in "{folder}": {(error.strerror or str(error)).lower()}',
                hint="Free disk space, or give another folder: CQ_JARS_CACHE.",
            ) from error
    return folder


def _missing(folder: Path, jars: Iterable[Jar]) -> list[Jar]:
    """Return the jars that are missing in a folder, or have a wrong checksum there."""
    return [jar for jar in jars if _sha256(folder / jar.file) != jar.sha256]


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, jars: list[Jar], settings: JarSettings, progress: Callable[[int], None]) -> None:
    """Let Ivy fetch jars into a temporary folder, check them, and move them to their folder."""
    if not jars:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        aside = Path(name)
        coordinates = [(jar.organisation, jar.module, jar.revision) for jar in jars]
        reason = retrieve(coordinates, aside, settings.mirror.get_secret_value(), progress)
        for jar in jars:
            found = _sha256(aside / jar.file)
            if found is None:
                raise OperationalError(
                    f'jar "{jar.file}" cannot be fetched: {reason}',
                    hint="Check the network, or name a Maven repository that can be reached: CQ_JARS_MIRROR.",
                )
            if found != jar.sha256:
                raise OperationalError(
                    f'jar "{jar.file}" is not the one that was locked: its SHA-256 is {found}',
                    hint="Something on the way from the Maven repository changes files; try another network or mirror.",
                )
            (aside / jar.file).replace(folder / jar.file)


def show_progress(fetched: int, total: int) -> None:
    """Show on standard error how many jars are in the folder: on a terminal in one line, otherwise in a few lines."""
    terminal = sys.stderr.isatty()
    if terminal or fetched == total or fetched % 10 == 0:
        end = "\n" if fetched == total or not terminal else ""
        start = "\r" if terminal else ""
        print(f"{start}fetching jars: {fetched} of {total}", end=end, file=sys.stderr, flush=True)


def main() -> None:
    """Fetch the jars of all lock files, or of the lock files in the arguments, for ``make setup`` and image builds."""
    try:
        settings = given_settings().jars
        for name in sys.argv[1:] or (KAFKA, SPARK):
            print(ensure_jars(name, settings, show_progress))
    except OperationalError as error:
        sys.exit(f"cq: {error.line}")


if __name__ == "__main__":
    main()
