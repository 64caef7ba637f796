"""load(): read a saved evaluation or diff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.diff_runs.diff_result import Diff
from fastbcubed.diff_runs.diff_summary import MARK, parts_of
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.load import read_saved
from fastbcubed.runtime.arguments import true_or_false


def load(directory: Any, *, check: bool = True) -> Evaluation | Diff:
    """Read an evaluation or a diff written by `save` or `out=`.

    The files are checked first: that they belong to one evaluation, and are unchanged by their checksums. So a
    damaged directory is refused.

    Parameters
    ----------
    directory : path
        Where it was saved.
    check : bool
        Whether to read and check all files now. Without it, a large result is available at once: overall scores, slices
        computed by the evaluation, the costliest clusters, repairs and reports need only parts of the files, checked
        page by page as they are read. All files are read and checked when more is requested.

    Returns
    -------
    Evaluation or Diff
        The saved result with everything kept: saved with keep="items", it can be sliced by any attribute of its tables
        or of another table; with "cells", listed by cluster; with "scores", it has overall scores, coverage, summary
        and the slices computed before.

    Raises
    ------
    FileFormatError
        If the directory has no saved result, files of several, a damaged one, or one that an earlier version saved.
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
