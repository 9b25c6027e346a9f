"""`cq up --detach`: runs the supervisor in the background, and waits until everything is ready or the start failed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["detached"]


def detached(run: Callable[[Callable[[str], None]], int], log: Path, show: Callable[[str], None]) -> int:
    """Run a function in a background process without a terminal, and wait until it reports that it is ready.

    `detached` forks, so it must be called in a process with a single thread. The new process has all settings in
    memory, so no secret has to be passed to it.

    Args:
        run: The function to run, which returns the exit code. Its argument is a function to be called with each line
            for a person.
        log: The file for the output of the background process.
        show: Called with each of these lines, up to the line that begins with ``ready``.

    Returns:
        0 if the function is ready; 1 if it has ended before. The last line then has the reason.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_in_background(run, log, writer))
    os.close(writer)
    try:
        with os.fdopen(reader, encoding="utf-8") as lines:
            for line in lines:
                show(line.rstrip("\n"))
                if line.startswith("ready"):
                    return 0
        os.waitpid(child, 0)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    return 1


def _in_background(run: Callable[[Callable[[str], None]], int], log: Path, writer: int) -> int:
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)

    def tell(line: str) -> None:
        print(line, flush=True)
        try:
            os.write(writer, f"{line}\n".encode())
        except BrokenPipeError:
            return  # the waiting process has seen the line `ready` and has ended

    code = run(tell)
    sys.stdout.flush()
    sys.stderr.flush()
    return code
