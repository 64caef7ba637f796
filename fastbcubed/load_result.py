"""load(): read a saved result."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from fastbcubed.diff_runs.diff_result import Diff
from fastbcubed.diff_runs.diff_summary import MARK, parts_of
from fastbcubed.results.load import read_saved
from fastbcubed.runtime.arguments import true_or_false

#: The classes of results that are saved as tables, and their modules, which are imported for these alone.
KINDS = {
    "comparison": ("compare_runs.comparison", "Comparison"),
    "sweep": ("sweep_links.sweep_result", "Sweep"),
    "estimates": ("sample.estimates", "Estimates"),
    "pairs": ("sample.judged_pairs", "PairEstimates"),
}


def load(directory: Any, *, check: bool = True) -> Any:
    """Read an evaluation, diff, comparison, sweep or estimates written by `save` or `out=`.

    The files are checked first: that they belong to one result, and are unchanged by their checksums. So a damaged
    directory is refused.

    Parameters
    ----------
    directory : path
        Where it was saved.
    check : bool
        Whether to read and check all files now. Without it, a large evaluation is available at once: overall scores,
        slices computed by the evaluation, the costliest clusters, repairs and reports need only parts of the files,
        checked page by page as they are read. All files are read and checked when more is requested.

    Returns
    -------
    Evaluation, Diff, Comparison, Sweep, Estimates or PairEstimates
        The saved result with everything kept: an evaluation or diff saved with keep="items" can be sliced by any
        attribute of its tables or of another table; with "cells", listed by cluster; with "scores", it has overall
        scores, coverage, summary and the slices computed before. Others show, convert and report the same as when
        they were saved; what they were saved without raises NotKeptError.

    Raises
    ------
    FileFormatError
        If the directory has no saved result, files of several, a damaged one, or one that a version before 1.0 saved.
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
    return read_saved(directory, _made, check=true_or_false(check, "check"))


def _made(found: Any, head: Mapping[str, Any]) -> Any:
    """Return a result from its tables and manifest, or from its evaluation, which a diff has, too."""
    if "kind" in head:
        module, name = KINDS[head["kind"]]
        return getattr(import_module(f"fastbcubed.{module}"), name)._restored(head, found)
    return Diff(**parts_of(found, head[MARK])) if MARK in head else found
