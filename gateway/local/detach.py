"""`cq up --detach`: the supervisor runs on in the background; the caller waits until it is ready or has failed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["detached"]


def detached(run: Callable[[Callable[[str], None]], int], log: Path, show: Callable[[str], None]) -> int:
    """Run a function in a background process, without a terminal, until it reports that it is ready.

    The function forks, so only a process with a single thread may call it, and secrets need not be passed on.

    Args:
        run: The function to run; its argument is a function for its lines, its result the exit code.
        log: The file for its output.
        show: Called with each line, up to ``ready …``.

    Returns:
        0 once ready; 1 after a line with the reason has been shown.
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
            return  # the waiting process has its answer and has ended

    code = run(tell)
    sys.stdout.flush()
    sys.stderr.flush()
    return code
