"""load(): read a saved evaluation or diff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.diff_runs.diff import MARK, Diff, parts_of
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.load import read_saved
from fastbcubed.runtime.arguments import true_or_false


def load(directory: Any, *, check: bool = True) -> Evaluation | Diff:
    """Read an evaluation or a diff written by `save` or `out=`.

    The files are checked first: that they are those of one evaluation, as they were saved, and that what
    they say is possible. So a directory that was damaged, or made up, is refused.

    Parameters
    ----------
    directory : path
        Where it was saved.
    check : bool
        Whether to read all files now and check them. Without it, a large result is there at once: overall scores,
        slices that were asked for when evaluating, the costliest clusters and pages for people take parts of the files,
        of which pages are checked as they are read. All files are read and checked when more is asked.

    Returns
    -------
    Evaluation or Diff
        What was saved, with all that was kept: saved with keep="items", it can be sliced by any attribute that the
        tables had, or by those of another table; with "cells", listed by cluster; with "scores", it
        has overall scores, coverage, summary and the slices that were asked for.

    Raises
    ------
    FileFormatError
        If the directory holds no saved result, files of several, or one that is damaged.
    OptionError
        If this is no path, or `check` is neither True nor False.

    Examples
    --------
    >>> import tempfile
    >>> import fastbcubed as fb
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     fb.evaluate([0, 0, 1], [0, 1, 1]).save(directory)
    ...     fb.load(directory).f1
    0.6666666666666666
    """
    found: Evaluation | Diff = read_saved(directory, _made, check=true_or_false(check, "check"))
    return found


def _made(ev: Evaluation, head: Mapping[str, Any]) -> Evaluation | Diff:
    """Return a diff if the manifest marks one, otherwise the evaluation."""
    return Diff(**parts_of(ev, head[MARK])) if MARK in head else ev
