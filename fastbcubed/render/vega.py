"""Conversion of Vega-Lite to SVG, in this process or, after a fork or with few addresses, in a separate one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress

from fastbcubed.errors import FastBCubedError, OutOfMemoryError
from fastbcubed.runtime.startup import limit_of_addresses

#: Code of the separate process: reads and answers with a line of JSON each.
CODE = """
import json, sys, vl_convert
for line in sys.stdin.buffer:
    try:
        answer = {"svg": vl_convert.vegalite_to_svg(line.decode())}
    except Exception as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""
#: The smallest chart, which shows whether charts can be drawn.
EMPTY = '{"data": {"values": []}, "mark": "point"}'


class _State:
    """Whether this process lost the converter's threads in a fork, and the process that converts instead."""

    def __init__(self, *, lost: bool = False) -> None:
        self.lost = lost
        # protects the pipes of the other process, which answers one request at a time
        self.lock = threading.Lock()
        self.other: subprocess.Popen[bytes] | None = None


_state = _State()


def svg_of(spec: str) -> str:
    """Return a chart, given as JSON on one line, as SVG.

    The converter uses threads, which a forked child (of multiprocessing, or of a server that loads before it forks)
    does not have, so that it would wait for ever; and it aborts its process if it cannot reserve 65 GiB of address
    space. Where this may happen, another process converts; it takes a second to start, and ends with this process,
    which closes its pipe.
    """
    if not _state.lost and limit_of_addresses() is None:
        import vl_convert

        svg: str = vl_convert.vegalite_to_svg(spec)
        return svg
    with _state.lock:
        try:
            answer = _answer(spec)
        except (OSError, ValueError) as error:
            _end_other()
            raise _no_charts(error) from error
        except BaseException:  # such as Ctrl-C: the next request must not receive this answer
            _end_other()
            raise
    if "error" in answer:
        raise ValueError(answer["error"])
    return str(answer["svg"])


def require_addresses() -> None:
    """Raise OutOfMemoryError if the limit of this process's address space is too low to draw charts."""
    if limit_of_addresses() is not None:
        svg_of(EMPTY)


def _answer(spec: str) -> dict[str, str]:
    """Return the answer of the separate process, which is started if none is running."""
    if _state.other is None or _state.other.poll() is not None:
        command = [sys.executable, "-P", "-c", CODE]  # -P: no modules of the current directory
        _state.other = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    asked, answered = _state.other.stdin, _state.other.stdout
    assert asked is not None and answered is not None
    asked.write(spec.encode() + b"\n")
    asked.flush()
    line = answered.readline()
    if not line:
        raise OSError(f"it ended with exit code {_state.other.wait()}")
    answer: dict[str, str] = json.loads(line)
    return answer


def _end_other() -> None:
    other, _state.other = _state.other, None
    if other is not None:
        other.kill()
        with suppress(OSError):  # a request that was not sent as a whole
            other.communicate()


def _no_charts(error: Exception) -> FastBCubedError:
    """Return the error that says why no chart can be drawn, given that of the separate process."""
    most = limit_of_addresses()
    if most is not None:
        return OutOfMemoryError(
            f"out of memory: the process may use {most >> 20:,} MiB of address space, but charts need about 66 GiB, "
            "which their converter reserves, but does not fill. Raise this limit, or remove it (ulimit -v unlimited), "
            "or omit the report"
        )
    return FastBCubedError(
        "charts cannot be drawn in a process forked from one that has drawn charts, and another process could not draw "
        f"them either: {error}. Start this process by spawn, or draw the page in the parent process"
    )


def _forked() -> None:
    global _state
    _state = _State(lost=_state.lost or "vl_convert" in sys.modules)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
