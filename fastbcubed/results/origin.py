"""Origin of an evaluation: its inputs, as results show them, and the manifest."""

from __future__ import annotations

import inspect
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.errors import FastBCubedError, Message
from fastbcubed.inputs.locations import at_home
from fastbcubed.inputs.pair import Pair
from fastbcubed.results.slice_bins import Bins
from fastbcubed.results.warnings import same_source, swapped_names
from fastbcubed.runtime.arguments import path_of
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool

if TYPE_CHECKING:
    from fastbcubed.inputs.fingerprint import Content

#: Arguments left out of the manifest: reported elsewhere, or different between machines without effect on figures.
UNTOLD = ("truth", "prediction", "baseline", "experiment", "out", "progress", "threads", "spill_dir")


@dataclass(eq=False)
class Origin:
    """The inputs and arguments that an evaluation was made from."""

    names: Mapping[str, str]  #: names of the two sides
    engine: str = "memory"
    same_source: str | None = None  #: kind of source if both sides were read from the same one
    swapped_names: str | None = None  #: why names suggest that the sides are swapped, if they do
    by_name: bool = False  #: whether either side has a name, by its path or column
    #: arguments that belong into the manifest, as plain values
    arguments: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[dict[str, Any]] = ()  #: notes on how the inputs were read
    #: how the columns of each side were read, why, and their alternatives; None for a side without columns
    reading: Mapping[str, Any] = field(default_factory=dict)
    pair: Pair | None = field(default=None, repr=False)  #: both sides, to be read again if needed
    contents: Sequence[Content] | None = None  #: row count and fingerprint of both sides, if known
    saved: Mapping[str, Any] | None = None  #: the manifest, if the evaluation was loaded

    @classmethod
    def of(cls, given: Any, arguments: Mapping[str, Any], answer: Any) -> Origin:
        """Describe the inputs of an engine's answer, without reading them."""
        say = by_names(arguments, answer.names)
        told = say({name: as_told(value) for name, value in arguments.items() if name not in UNTOLD})
        return cls(
            say(dict(zip(("truth", "prediction"), answer.names, strict=True))),
            answer.engine,
            same_source(given),
            swapped_names(given),
            given.table is not None or any(answer.reading.values()),
            told,
            say(answer.notes),
            answer.reading,
            answer.pair,
            answer.contents,
        )

    def manifest(self, memory_limit: int | None) -> dict[str, Any]:
        """Return the manifest: versions, engine, arguments, and rows and fingerprint of each side."""
        if self.saved is not None:
            return dict(self.saved)
        return {
            "versions": _versions(),
            "engine": self.engine,
            "memory_limit": memory_limit
            if "memory_limit" in self.arguments
            else None,  # otherwise it depends on free memory
            "arguments": dict(self.arguments),
            **self.sides,
        }

    @cached_property
    def sides(self) -> dict[str, dict[str, Any]]:
        """Rows and fingerprint of each side, computed from all rows on first access; None if inputs no longer exist."""
        found: list[dict[str, Any]] = [{"rows": None, "fingerprint": None}] * 2
        if self.contents is not None:
            found = [content._asdict() for content in self.contents]
        elif self.pair is not None:
            from fastbcubed.inputs.fingerprint import contents

            try:
                with Pool() as pool:
                    found = [content._asdict() for content in contents(self.pair, pool)]
            except (FastBCubedError, OSError):  # files that were moved or deleted
                pass
        return dict(zip(("truth", "prediction"), found, strict=True))

    def at_rest(self, memory_limit: int | None) -> Origin:
        """Return a copy that has the manifest and no longer refers to the inputs."""
        return replace(self, pair=None, contents=None, saved=self.manifest(memory_limit))


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        "fastbcubed": __version__,
        "numpy": np.__version__,
        "numba": version("numba"),
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
    }


def not_default(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from their defaults; data are always included."""
    found, defaults = {}, _defaults(function)
    for name, value in given.items():
        default = defaults[name]
        comparable = isinstance(value, tuple if isinstance(default, tuple) else (str, bool, int, float))
        if value is not default and not (comparable and value == default):
            found[name] = value
    return found


@cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def by_names(arguments: Mapping[str, Any], sides: Iterable[str]) -> Callable[[Any], Any]:
    """Return a function that replaces paths in values by file names, so that folders of this machine do not appear.

    Files with the same name keep the folders in which they differ. `sides` has the names of the sides, which are paths
    if they are files; arguments that are paths are also replaced. With ``paths=True`` among the arguments, values are
    unchanged.

    Examples
    --------
    >>> say = by_names({"table": "data/all.csv"}, ["/home/me/old/run.csv", "/home/me/new/run.csv", "the prediction"])
    >>> say(["column 'a' of /home/me/new/run.csv", {"table": "data/all.csv"}])
    ["column 'a' of new/run.csv", {'table': 'all.csv'}]
    """
    found = [side for side in sides if not side.startswith("the ")]
    places = ["table", "attributes", "weight"]
    if arguments.get("table") is None:  # otherwise these are columns
        places += ["truth", "prediction", "baseline", "experiment", "runs"]
    for name in arguments.keys() & places:
        given, kind = arguments[name], os.PathLike if name == "weight" else str | os.PathLike
        # a side that is a mapping has a label of each item
        each = given.values() if name == "runs" and isinstance(given, Mapping) else [given]
        found += [path_of(path) for path in each if isinstance(path, kind)]
    if arguments.get("paths") or not found:
        return lambda value: value
    parts = {path: os.path.abspath(at_home(path)).split(os.sep) for path in found}
    shown: dict[str, str] = {}
    for path, own in parts.items():
        others = [each for each in parts.values() if each != own]
        n = next(n for n in range(1, len(own) + 1) if all(each[-n:] != own[-n:] for each in others))
        shown[path] = shown[at_home(path)] = "/".join(own[-n:])
    pattern = re.compile("|".join(map(re.escape, sorted(shown, key=len, reverse=True))))

    def say(value: Any) -> Any:
        if isinstance(value, Message):
            return value.replaced(lambda part: say(part) if isinstance(part, str) else part)
        if isinstance(value, str):
            return pattern.sub(lambda match: shown[match[0]], value)
        if isinstance(value, Mapping):
            return {key: say(each) for key, each in value.items()}
        return [say(each) for each in value] if isinstance(value, list | tuple) else value

    return say


#: Levels of lists and dicts that a manifest shows of an argument; options have at most four.
LEVELS = 8


def as_told(value: Any, levels: int = LEVELS) -> Any:
    """Return an argument as shown in a manifest: plain values unchanged, functions by name, data by type.

    Examples
    --------
    >>> as_told(["f1", len]), as_told({"truth": "drop"}), as_told(np.ones(3))
    (['f1', 'len'], {'truth': 'drop'}, 'numpy.ndarray')
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, os.PathLike | Bins):
        return str(value)
    if levels and isinstance(value, list | tuple) and len(value) <= 1000:
        return [as_told(each, levels - 1) for each in value]
    if levels and isinstance(value, Mapping) and len(value) <= 1000:
        return {str(name): as_told(each, levels - 1) for name, each in value.items()}
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
