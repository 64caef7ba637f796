"""Start of the command-line process, before anything that takes long is loaded.

An error while loading, or Ctrl-C, ends the process with a one-line message instead of a traceback. Garbage is
collected less often, and matrix products use no threads.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from types import TracebackType
from typing import NoReturn

from fastbcubed._version import __version__, install
from fastbcubed.runtime.exit_codes import STOPPED, WRONG

#: Number of new objects between two garbage collections, more than a command loads; the default is 700.
OBJECTS_AT_ONCE = 500_000
#: Bytes of address space that the libraries and their threads take before any work. With less, C++ may end the process
#: without mentioning memory when a thread of Arrow cannot allocate it.
LEAST_ADDRESSES = 512 << 20


def lacking(error: ImportError) -> str | None:
    """Return a message on a package that cannot be loaded; None if the missing module is part of this package."""
    if (error.name or "").partition(".")[0] == "fastbcubed":
        return None
    cause = (str(error).strip() or type(error).__name__).splitlines()[0]
    return (
        f"a package that this command needs cannot be loaded: {cause.rstrip('.')}. Install fastbcubed again "
        f"with its dependencies: {install()}"
    )


def limit_of_addresses() -> int | None:
    """Return the bytes of address space that the process may use (``ulimit -v``); None if they are not limited."""
    try:
        import resource
    except ImportError:  # on Windows, which has no such limit
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most


def too_few_addresses() -> str | None:
    """Return a message if the process's address space is limited to less than it needs to start; otherwise None."""
    most = limit_of_addresses()
    if most is None or most >= LEAST_ADDRESSES:
        return None
    return (
        f"out of memory: the process may use {most >> 20} MiB of address space, but needs {LEAST_ADDRESSES >> 20} MiB "
        "to start and about 1 GiB to work. Raise this limit, or remove it with ulimit -v unlimited"
    )


def stop_at_once(*_: object) -> NoReturn:
    """End the process on Ctrl-C while packages load; KeyboardInterrupt could be lost in a callback from C.

    Nothing has been written at that point that would have to be removed.
    """
    with suppress(OSError):  # if there is no stderr
        os.write(2, b"fastbcubed: stopped\n")
    os._exit(STOPPED)


def end_process(code: int) -> None:
    """End the command-line process without shutting down the interpreter, unless the process is traced or profiled.

    A thread of Arrow may still be releasing data that it has read, such as a NumPy array, for which it needs the
    interpreter. An interpreter that is shutting down ends that thread, and C++ then ends the process with code 134
    and "terminate called without an active exception" (apache/arrow #34314; Arrow 26, Python up to 3.13). Skipping
    the shutdown also saves 0.1 s.
    """
    if not _is_command_line() or sys.gettrace() is not None or sys.getprofile() is not None:
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # full or closed, which has been reported
            stream.flush()
    os._exit(code)


def _told(error: BaseException) -> str | None:
    from fastbcubed.errors import ALLOW_MORE, lacks_memory

    if lacks_memory(error):
        cause = (str(error).strip() or type(error).__name__).splitlines()[-1]
        return f"out of memory: {cause.rstrip('.')}. {ALLOW_MORE}"
    return lacking(error) if isinstance(error, ImportError) else None


def _is_command_line() -> bool:
    name = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    return name == "fastbcubed" or sys.orig_argv[-len(sys.argv) - 1 :][:2] == ["-m", "fastbcubed"]


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, KeyboardInterrupt):
        stop_at_once()
    said = _told(error)
    if said is None:
        sys.__excepthook__(kind, error, trace)
        return
    if sys.stderr is not None:
        print(f"fastbcubed: {said}", file=sys.stderr, flush=True)
    os._exit(WRONG)  # Python's exit code would be 1


if _is_command_line():
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        with suppress(OSError):  # if stdout is full or closed, the command line reports it
            print(f"fastbcubed {__version__}", flush=True)
            os._exit(0)  # loading everything else would take ten times as long
    if (_said := too_few_addresses()) is not None:
        with suppress(OSError):
            os.write(2, f"fastbcubed: {_said}\n".encode())
        os._exit(WRONG)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise in background jobs
        with suppress(ValueError):  # if loaded by a thread other than the main one
            signal.signal(signal.SIGINT, stop_at_once)
    gc.set_threshold(OBJECTS_AT_ONCE)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # by default NumPy starts one thread per core
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _end
