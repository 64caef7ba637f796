"""Conversion of Vega-Lite to SVG, in this process or, after a fork, in a separate one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

from fastbcubed.errors import FastBCubedError

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
    does not have, so that it would wait for ever. There, another process converts; it takes a second to start, and ends
    with this process, which closes its pipe.
    """
    if not _state.lost:
        import vl_convert

        svg: str = vl_convert.vegalite_to_svg(spec)
        return svg
    with _state.lock:
        try:
            if _state.other is None or _state.other.poll() is not None:
                command = [sys.executable, "-c", CODE]
                _state.other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            asked, answered = _state.other.stdin, _state.other.stdout
            assert asked is not None and answered is not None
            asked.write(spec.encode() + b"\n")
            asked.flush()
            answer = json.loads(answered.readline())
        except (OSError, ValueError) as error:
            raise FastBCubedError(
                "charts cannot be drawn in a process forked from one that has drawn charts, and no other "
                f"process could be started to draw them: {error}. Start this process by spawn, or draw the "
                "page in the parent process"
            ) from error
        except BaseException:  # such as Ctrl-C: the next request must not receive this answer
            if _state.other is not None:
                _state.other.kill()
            raise
    if "error" in answer:
        raise ValueError(answer["error"])
    return str(answer["svg"])


def _forked() -> None:
    global _state
    _state = _State(lost=_state.lost or "vl_convert" in sys.modules)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
