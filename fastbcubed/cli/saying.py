"""What the command line writes on stdout as JSON, and on stderr as messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def print_json(text: str) -> None:
    """Write JSON; names that the encoding of stdout lacks are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2)
    with to_stdout():
        print(text)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Name standard output in the error of a disk that is full."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def say(message: str) -> None:
    """Write a message on stderr, where nobody may be listening."""
    try:
        print(f"fastbcubed: {message}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Let a stream write to nobody, so that Python need not fail with it again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
