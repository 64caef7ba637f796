"""The command line: flags → arguments of the library, its results → text or JSON, errors → exit codes.

Nothing heavy is imported before the flags are known to be right.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TextIO

from fastbcubed._version import __version__
from fastbcubed.cli.commands import parser
from fastbcubed.cli.overwriting import refuse_overwriting
from fastbcubed.cli.rewording import in_flags
from fastbcubed.cli.saying import give_up, say, to_stdout
from fastbcubed.errors import FastBCubedError, VerificationError
from fastbcubed.runtime.starting import STOPPED, WRONG, lacking

#: Objects that are made before the garbage collector looks at them: more than a command loads. Usually these are 700.
OBJECTS_AT_ONCE = 500_000

FAULT, READER_GONE, TERMINATED = 70, 141, 143


class Terminated(BaseException):
    """The process was asked to end, by SIGTERM."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; that of this process, which ends with it, if none is given."""
    code = _run(argv)
    if argv is None:
        gc.freeze()  # else Python looks through all that is loaded, for garbage, twice as it ends: 0.1 s
    return code


def _run(argv: Sequence[str] | None) -> int:
    _open_streams()
    try:
        with _raising_on_sigterm(), _collecting_rarely():
            try:
                options = parser().parse_args(argv)
                refuse_overwriting(options)
                return int(options.run(options))
            finally:
                with to_stdout():
                    sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help, --version, a wrong flag
        return stop.code if isinstance(stop.code, int) else WRONG
    except KeyboardInterrupt:
        say("stopped")
        return STOPPED
    except Terminated:
        say("terminated")
        return TERMINATED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        give_up(sys.stdout)
        return READER_GONE
    except VerificationError as error:
        say(str(error))
        return FAULT
    except FastBCubedError as error:
        say(in_flags(str(error)))
        return WRONG
    except MemoryError as error:
        say(f"out of memory{f': {error}' if str(error) else ''}")
        return WRONG
    except OSError as error:
        if error.errno == errno.EBADF:  # a file that we have closed
            return _report(error)
        _give_up_if_full(sys.stdout)
        say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return WRONG
    except ImportError as error:
        said = lacking(error)
        if said is None:
            return _report(error)
        say(said)
        return WRONG
    except Exception as error:
        return _report(error)


def _report(error: Exception) -> int:
    """Say that an error is ours, and how to report it; with its traceback if that is asked for."""
    if os.environ.get("FASTBCUBED_TRACEBACK", "0") not in ("", "0"):
        import traceback

        say("".join(traceback.format_exception(error)).rstrip())
        how = "the traceback above"
    else:
        how = "what FASTBCUBED_TRACEBACK=1 shows"
    said = " ".join(str(error).split())
    say(
        f"unexpected {type(error).__name__}{f': {said[:300]}' if said else ''}. This is an error of fastbcubed "
        f"{__version__}, not of yours; please report it, with the command and {how}"
    )
    return FAULT


def _open_streams() -> None:
    """Open streams that the caller has closed; what is written to them is for nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def _give_up_if_full(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        give_up(stream)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Let the garbage collector look at objects less often: most of those of a command are loaded code, which stays."""
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS_AT_ONCE, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def _raising_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does: by an exception, so that everybody cleans up."""

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    ours = threading.current_thread() is threading.main_thread()  # the only one that may set handlers
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
