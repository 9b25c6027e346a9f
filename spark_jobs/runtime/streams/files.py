"""The files of Spark's checkpoints, in a local folder or at a URL that Hadoop's clients can reach."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError

__all__ = ["Files", "HadoopFiles", "LocalFiles", "files_of"]

_T = TypeVar("_T")


class Files(Protocol):
    """The file system of checkpoints. No method fails for a missing file or folder."""

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's entries; no names for a missing folder."""

    def text(self, path: str) -> str | None:
        """Return a file's text; None for a missing file."""

    def write(self, path: str, text: str) -> None:
        """Write a file. Meanwhile, readers find the new or the previous file, or no file, never a part of a file."""

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all of its contents."""


def files_of(location: str, spark: SparkSession) -> Files:
    """Return the file system of a location."""
    return HadoopFiles(spark) if "://" in location else LocalFiles()


class LocalFiles:
    """A folder of this machine."""

    def names(self, folder: str) -> list[str]:
        """See `Files`."""
        path = Path(folder)
        return [entry.name for entry in path.iterdir()] if path.is_dir() else []

    def text(self, path: str) -> str | None:
        """See `Files`."""
        try:
            return Path(path).read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        """See `Files`."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        written = Path(f"{path}.new")
        written.write_text(text, "utf-8")
        _checksum(Path(path)).unlink(missing_ok=True)
        written.replace(path)

    def remove(self, path: str) -> None:
        """See `Files`."""
        if Path(path).is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)
            _checksum(Path(path)).unlink(missing_ok=True)


class HadoopFiles:
    """The file system that Spark uses for its checkpoints: the same clients, with the same options and credentials.

    Raises:
        OperationalError: Each method raises this error if the file system does not answer.
    """

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._java: Any = context._jvm  # noqa: SLF001  # pyspark has no public way to Hadoop
        self._options: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001

    def names(self, folder: str) -> list[str]:
        """See `Files`."""

        def listed() -> list[str]:
            system, path = self._at(folder)
            return [entry.getPath().getName() for entry in system.listStatus(path)] if system.exists(path) else []

        return _answered(folder, listed)

    def text(self, path: str) -> str | None:
        """See `Files`."""

        def read() -> str | None:
            system, file = self._at(path)
            if not system.exists(file):
                return None
            stream = system.open(file)
            try:
                return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

        return _answered(path, read)

    def write(self, path: str, text: str) -> None:
        """See `Files`."""

        def replaced() -> None:
            system, file = self._at(path)
            _, written = self._at(f"{path}.new")
            stream = system.create(written, True)
            stream.write(text.encode())
            stream.close()
            system.delete(file, False)
            if not system.rename(written, file):
                raise OperationalError(f'"{path}" cannot be written')

        _answered(path, replaced)

    def remove(self, path: str) -> None:
        """See `Files`."""

        def deleted() -> None:
            system, entry = self._at(path)
            system.delete(entry, True)

        _answered(path, deleted)

    def _at(self, location: str) -> tuple[Any, Any]:
        path = self._java.org.apache.hadoop.fs.Path(location)
        return path.getFileSystem(self._options), path


def _checksum(path: Path) -> Path:
    """Return the file with Hadoop's checksum of a file; Hadoop refuses to read a file whose checksum is wrong."""
    return path.with_name(f".{path.name}.crc")


def _answered(location: str, call: Callable[[], _T]) -> _T:
    try:
        return call()
    except Py4JError as exc:
        java_error = getattr(exc, "java_exception", None)
        reason = str(java_error.toString() if java_error is not None else exc).splitlines()[0]
        raise OperationalError(f'checkpoints at "{location}" are out of reach', detail=reason) from exc
