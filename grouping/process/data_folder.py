"""The check of a data folder's format. The file `format.json` names the format; a folder of a newer format is refused.

A folder without this file has the first format, which is the only one so far. A release that changes the files of the
folder (checkpoints, files of the servers) must increase `FORMAT`, and must convert folders of older formats here.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from grouping.model.errors import OperationalError

__all__ = ["FORMAT", "claim"]

FORMAT = 1

_FILE = "format.json"


def claim(data: Path) -> None:
    """Check that this version can read the format of an existing folder, and let only this user read the folder.

    A folder without `format.json` gets the file.

    Raises:
        OperationalError: A later version has written the folder, or `format.json` cannot be read.
        OSError: The folder cannot be read or written.
    """
    _close(data)
    path = data / _FILE
    found = _read(path)
    if found is None:
        _write(path)
    elif found > FORMAT:
        raise OperationalError(
            f'the data folder "{data}" has format {found}, and this version reads {FORMAT}',
            hint="Start the version that wrote it, or a later one, or give another folder: --data DIR.",
        )


def _close(data: Path) -> None:
    """Let only the user of this process read the folder, unless another user owns the folder or shares it."""
    found = data.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX and found.st_mode & 0o077:
        data.chmod(0o700)


def _read(path: Path) -> int | None:
    """Return the format in the file `format.json`; None without the file."""
    try:
        found = json.loads(path.read_text("utf-8"))["format"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, int):
        raise OperationalError(
            f'"{path}" does not say the format of its data folder',
            hint="Put back the file of a backup, or give another folder: --data DIR.",
        )
    return found


def _write(path: Path) -> None:
    """Write the file atomically. After an interruption the file is missing or complete."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with aside.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT}, file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
