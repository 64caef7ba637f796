"""No command writes over a file that it reads."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from fastbcubed.errors import OptionError

#: Options that name a file, or a directory, to write to, by the name that argparse has for them.
OUTPUTS = {"out": "--out", "pairs_out": "--out", "report": "--report", "summary": "--summary"}


def refuse_overwriting(options: argparse.Namespace) -> None:
    """Raise OptionError if a file that is to be written is among those that are read."""
    given = vars(options)
    read = [value for name, value in given.items() if name not in OUTPUTS]
    for flag, out in ((flag, given[name]) for name, flag in OUTPUTS.items() if given.get(name)):
        for file in _files(read):
            if _is_in(file, out):
                raise OptionError(
                    f"{flag} {out} would replace {file}, which is read. Name another path for {flag}"
                )


def _files(value: Any) -> Iterator[str]:
    """Yield the files that an option names, alone or as NAME=PATH, one or several."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _files(each)
    elif isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        yield from filter(os.path.isfile, dict.fromkeys([text, text.partition("=")[2]]))


def _is_in(file: str, out: str | os.PathLike[str]) -> bool:
    """Tell whether a file is what is written to, or a table of a result that is written to that directory."""
    if os.path.isfile(out):
        return os.path.samefile(file, out)
    from fastbcubed.sources.files import RESULTS

    folder, name = os.path.split(os.path.realpath(file))
    return folder == os.path.realpath(out) and name.removesuffix(".parquet") in RESULTS
