"""load(): read a saved result."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from fastbcubed.diff_runs.diff_result import Diff
from fastbcubed.diff_runs.diff_summary import MARK, parts_of
from fastbcubed.results.load import read_saved
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.runtime.memory_budget import memory_limit as bytes_of

#: The module and class of each kind of result that is saved as tables; the modules are imported when needed.
KINDS = {
    "comparison": ("compare_runs.comparison", "Comparison"),
    "sweep": ("sweep_links.sweep_result", "Sweep"),
    "estimates": ("sample.estimates", "Estimates"),
    "estimated_runs": ("sample.estimated_runs", "EstimatedComparison"),
    "pairs": ("sample.judged_pairs", "PairEstimates"),
}


def load(directory: Any, *, check: bool = True, memory_limit: int | str | None = None) -> Any:
    """Read an evaluation, diff, comparison, sweep or estimates written by `save` or with `out`.

    The files are checked first: they must belong to one result and match their checksums. A damaged result raises an
    error.

    Parameters
    ----------
    directory : path
        The directory in which the result was saved.
    check : bool
        Whether to read and check all files before the result is returned. With ``check=False``, a large evaluation is
        available immediately: overall scores, saved slices, the costliest clusters, repairs and reports need only parts
        of the files. The parts needed are checked page by page as they are read, and all files are read and checked
        when other results are requested.
    memory_limit : int or str, optional
        The memory that the result may take, such as "2GiB"; no limit by default. An evaluation that needs more memory
        than the limit is read in parts, as with ``check=False``, and methods that need all of its cells raise an error.
        A diff, comparison or other result that needs more memory than the limit raises an error. The process may take
        128 MiB in addition to the limit.

    Returns
    -------
    Evaluation, Diff, Comparison, Sweep, Estimates, EstimatedComparison or PairEstimates
        The saved result with everything that was kept. An evaluation or diff saved with ``keep="items"`` can be sliced
        by any attribute of its tables or of another table. With ``keep="cells"``, clusters can be listed. With
        ``keep="scores"``, overall scores, coverage, summary and the slices computed before saving are available. Other
        results can be shown, converted and reported in the same way as before saving. Requesting data that were not
        saved raises NotKeptError.

    Raises
    ------
    FileFormatError
        If the directory contains no saved result, files of several results, a damaged result, or a result saved by a
        version before 1.0.
    OptionError
        If `directory` is not a path, `check` is neither True nor False, or `memory_limit` is not a size or is too
        small.

    Examples
    --------
    >>> import tempfile
    >>> import fastbcubed as fb
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     fb.evaluate([0, 0, 1], [0, 1, 1]).save(directory)
    ...     fb.load(directory).f1
    0.6666666666666666
    """
    limit = None if memory_limit is None else bytes_of(memory_limit)
    return read_saved(directory, _made, check=true_or_false(check, "check"), limit=limit)


def _made(found: Any, head: Mapping[str, Any]) -> Any:
    """Return a result from its tables and manifest, or from its evaluation, which a diff has as well."""
    if "kind" in head:
        module, name = KINDS[head["kind"]]
        return getattr(import_module(f"fastbcubed.{module}"), name)._restored(head, found)
    return Diff(**parts_of(found, head[MARK])) if MARK in head else found
