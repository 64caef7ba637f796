"""Entry point of the command line: parses, refuses to overwrite inputs, runs, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO

from fastbcubed._version import __version__
from fastbcubed.cli.commands import parser
from fastbcubed.cli.idle_flags import refuse_idle_flags
from fastbcubed.cli.output import give_up, in_flags, say, to_stdout
from fastbcubed.errors import MORE_MEMORY, FastBCubedError, OptionError, lacks_memory
from fastbcubed.runtime.arguments import local_path, path_of
from fastbcubed.runtime.exit_codes import FAULT, READER_GONE, STOPPED, TERMINATED, WRONG
from fastbcubed.runtime.startup import end_process, lacking, stop_at_once

#: Options that name a file or directory to write, by their name in the parsed arguments.
OUTPUTS = {"out": "--out", "pairs_out": "--out", "report": "--report", "summary": "--summary"}


def refuse_overwriting(options: argparse.Namespace) -> None:
    """Raise OptionError if an output is also an input, or is not local, which only Spark can write."""
    given = vars(options)
    read = [value for name, value in given.items() if name not in OUTPUTS]
    for flag, out in ((flag, path_of(given[name])) for name, flag in OUTPUTS.items() if given.get(name)):
        if given.get("engine") != "spark":
            local_path(out)
        for file in _files(read):
            if _is_in(file, out):
                raise OptionError(
                    f"{flag} {out} would replace {file}, which is an input. Name another path for {flag}"
                )


def _files(value: Any) -> Iterator[str]:
    """Yield the files among the values of options, given alone, as NAME=PATH, or in a list."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _files(each)
    elif isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        yield from filter(os.path.isfile, dict.fromkeys([text, text.partition("=")[2]]))


def _is_in(file: str, out: str | os.PathLike[str]) -> bool:
    """Return whether a file is the output itself, or a table of a result in the output directory."""
    if os.path.isfile(out):
        return os.path.samefile(file, out)
    from fastbcubed.inputs.files import RESULTS

    folder, name = os.path.split(os.path.realpath(file))
    return folder == os.path.realpath(out) and name.removesuffix(".parquet") in RESULTS


class Terminated(BaseException):
    """Raised when SIGTERM asks the process to end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; without `argv`, take the process's arguments and end it."""
    code = _run(argv)
    if argv is None:
        end_process(code)
    return code


def _run(argv: Sequence[str] | None) -> int:
    _open_streams()
    heard: list[BaseException] = []
    try:
        with _ended_by_signals(heard):
            try:
                options = parser().parse_args(argv)
                refuse_idle_flags(options)
                refuse_overwriting(options)
                code = int(options.run(options))
            finally:
                with to_stdout():
                    sys.stdout.flush()
    except BaseException as error:
        return _code_of(heard[0] if heard else error)
    return _code_of(heard[0]) if heard else code  # Python only prints exceptions raised in callbacks from C


def _code_of(error: BaseException) -> int:
    """Print why the command ended, and return the exit code; re-raise exceptions that are not handled here."""
    match error:
        case SystemExit():  # argparse: --help, --version, a wrong flag
            return error.code if isinstance(error.code, int) else WRONG
        case KeyboardInterrupt():
            say("stopped")
            return STOPPED
        case Terminated():
            say("terminated")
            return TERMINATED
        case BrokenPipeError():  # the reader, such as head, closed the pipe
            give_up(sys.stdout)
            return READER_GONE
        case FastBCubedError():
            say(in_flags(error.message))
            return WRONG
        case Exception() if lacks_memory(error):
            return _out_of_memory(error)
        case OSError() if error.errno != errno.EBADF:  # a file that we closed ourselves
            _give_up_if_full(sys.stdout)
            say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
            return WRONG
        case ImportError() if said := lacking(error):
            say(said)
            return WRONG
        case Exception():
            return _report(error)
    raise error


def _out_of_memory(error: Exception) -> int:
    say(in_flags(f"out of memory{f': {error}' if str(error) else ''}. {MORE_MEMORY}"))
    return WRONG


def _report(error: Exception) -> int:
    """Report a bug in fastbcubed, with its traceback if requested."""
    if os.environ.get("FASTBCUBED_TRACEBACK", "0") not in ("", "0"):
        import traceback

        say("".join(traceback.format_exception(error)).rstrip())
        how = "the traceback above"
    else:
        how = "the output of FASTBCUBED_TRACEBACK=1"
    said = " ".join(str(error).split())
    say(
        f"unexpected {type(error).__name__}{f': {said[:300]}' if said else ''}. This is a bug in "
        f"fastbcubed {__version__}, not your mistake; please report it with the command and {how}"
    )
    return FAULT


def _open_streams() -> None:
    """Replace output streams that are closed by ones that discard output."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def _give_up_if_full(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        give_up(stream)


@contextmanager
def _ended_by_signals(heard: list[BaseException]) -> Iterator[None]:
    """Raise an exception on SIGTERM and Ctrl-C so that cleanup runs, and append it to `heard`, as it may be lost."""

    def end(number: int, _: object) -> NoReturn:
        heard.append(KeyboardInterrupt() if number == signal.SIGINT else Terminated())
        raise heard[-1]

    usual = {signal.SIGINT: (signal.default_int_handler, stop_at_once), signal.SIGTERM: (signal.SIG_DFL,)}
    ours = threading.current_thread() is threading.main_thread()  # only the main thread may set handlers
    before = {number: signal.getsignal(number) for number in usual} if ours else {}
    before = {number: handler for number, handler in before.items() if handler in usual[number]}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
