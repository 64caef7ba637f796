"""Standard input and pipes, which can be read only once and are stored in memory or on disk."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import pyarrow as pa

from fastbcubed.errors import FastBCubedError, FileFormatError, OptionError, SpillError
from fastbcubed.inputs.file_formats import MARKS
from fastbcubed.inputs.locations import Place, State, locate
from fastbcubed.inputs.tables import listed_paths
from fastbcubed.runtime.arguments import is_path, path_of
from fastbcubed.runtime.spill import spill_directory

#: The path that means standard input.
STDIN = "-"
#: Maximum bytes held in memory; longer data go to an unnamed file.
HELD = 64 << 20
#: Magic bytes of compressed data, by the suffix of a file; those of bzip2 could begin a text as well, which has a name.
COMPRESSED = {**MARKS, ".bz2": b"BZh"}


class Piped:
    """The path of a pipe together with its data, read once, which can be opened any number of times."""

    def __init__(self, name: str, data: pa.Buffer) -> None:
        self.name = name
        self.place: Place = _Held(data)

    def __fspath__(self) -> str:
        return self.name


class _Held(Place):
    """A file system with a single file, which answers to any name."""

    unnamed = True

    def __init__(self, data: pa.Buffer) -> None:
        self._data = data

    def exists(self, name: str) -> bool:
        return True

    def state(self, name: str) -> State:
        return (0, self._data.size, 0)

    def open(self, name: str) -> pa.NativeFile:
        return pa.BufferReader(self._data)

    def open_text(self, name: str) -> Any:
        head = self._data[:4].to_pybytes()
        for end, mark in COMPRESSED.items():
            if head.startswith(mark):
                return pa.CompressedInputStream(pa.BufferReader(self._data), pa.Codec.detect(end).name)
        return pa.BufferReader(self._data)


def place_of(source: Any) -> tuple[Place, str]:
    """Return the file system of a path, URI or pipe, and the name of the file in it; pipes are read."""
    source = held(source)
    if isinstance(source, Piped):
        return source.place, source.name
    return locate(path_of(source))


def held(source: Any) -> Any:
    """Return a pipe as its data, a list of files as one path, and anything else unchanged."""
    source = listed_paths(source)
    if not is_pipe(source):
        return source
    path = path_of(source)
    if path == STDIN:
        return Piped("stdin", _read(_stdin()))
    try:
        with open(path, "rb") as file:
            return Piped(path, _read(file))
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}.") from error


def is_pipe(source: Any) -> bool:
    """Return whether this names standard input or a pipe."""
    if isinstance(source, Piped) or not is_path(source):
        return False
    try:
        path = path_of(source)
    except FastBCubedError:  # not a valid path, which is reported when it is read
        return False
    if path == STDIN:
        return True
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def held_once(sources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sources that are paths, converted by `held`; raise if two of them name the same pipe."""
    maybe = {}
    for name, source in sources.items():
        first = source[0] if isinstance(source, list | tuple) and len(source) else source
        if is_path(first):
            maybe[name] = source
    pipes = {name: path_of(source) for name, source in maybe.items() if is_pipe(source)}
    for path in pipes.values():
        names = [name for name, other in pipes.items() if other == path]
        if len(names) > 1:
            raise OptionError(
                f"{' and '.join(names)} are both {path}, which can be read only once; write one of them to a file"
            )
    return {name: held(source) for name, source in maybe.items()}


def _stdin() -> BinaryIO:
    if sys.stdin is None or not hasattr(sys.stdin, "buffer") or sys.stdin.closed:
        raise FileFormatError("There is no standard input to read a table from.")
    if sys.stdin.isatty():
        raise FileFormatError(
            "Standard input is a terminal, not a table. Pipe one to it: zcat pred.csv.gz | fastbcubed evaluate TRUTH -"
        )
    return sys.stdin.buffer


def _read(file: BinaryIO) -> pa.Buffer:
    head = file.read(HELD)
    if len(head) < HELD:
        return pa.py_buffer(head)
    directory = spill_directory(None)
    try:
        with tempfile.TemporaryFile(dir=directory) as spooled:
            spooled.write(head)
            shutil.copyfileobj(file, spooled, 1 << 20)
            spooled.flush()
            return pa.py_buffer(mmap.mmap(spooled.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise SpillError(
            f"data from a pipe cannot be stored in {directory}: {error.strerror or error}"
        ) from error
