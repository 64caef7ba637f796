"""Score huge clusterings: BCubed, pointwise metrics and ELM, by item, cluster and slice."""

from typing import TYPE_CHECKING

from fastbcubed.runtime import startup as _startup  # noqa: F401  (first: later imports are slow or may fail)

# isort: split
from fastbcubed import errors, metrics
from fastbcubed._version import __version__
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import EvaluationWarning, FastBCubedError
from fastbcubed.evaluate import cice_bcubed, contingency, evaluate, extended_bcubed
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.slice_bins import bins
from fastbcubed.results.table import Table
from fastbcubed.runtime.object_attributes import only_all

if TYPE_CHECKING:
    from fastbcubed import charts, constraints
    from fastbcubed.compare_runs.compare import compare
    from fastbcubed.compare_runs.comparison import Comparison
    from fastbcubed.diff_runs.diff import diff
    from fastbcubed.diff_runs.diff_result import Diff
    from fastbcubed.inputs.examples import example
    from fastbcubed.load_result import load
    from fastbcubed.results.explanation import Explanation
    from fastbcubed.sample.estimate import estimate, estimate_pairs
    from fastbcubed.sample.estimated_runs import EstimatedComparison
    from fastbcubed.sample.estimates import Estimates
    from fastbcubed.sweep_links.sweep import sweep
    from fastbcubed.sweep_links.sweep_result import Sweep

__all__ = [
    "Clustering",
    "Comparison",
    "Contingency",
    "Diff",
    "EstimatedComparison",
    "Estimates",
    "Evaluation",
    "EvaluationWarning",
    "Explanation",
    "FastBCubedError",
    "Sweep",
    "Table",
    "__version__",
    "bins",
    "charts",
    "cice_bcubed",
    "compare",
    "constraints",
    "contingency",
    "diff",
    "errors",
    "estimate",
    "estimate_pairs",
    "evaluate",
    "example",
    "extended_bcubed",
    "load",
    "metrics",
    "sweep",
]

if not TYPE_CHECKING:  # type checkers should report names that do not exist
    #: Modules of the names that are loaded on first use; they take a fifth of the time of importing everything. No
    #: module has the name of its content, because importing a module sets this name in the package.
    _LATER = {
        "Comparison": "compare_runs.comparison",
        "Diff": "diff_runs.diff_result",
        "EstimatedComparison": "sample.estimated_runs",
        "Estimates": "sample.estimates",
        "Explanation": "results.explanation",
        "Sweep": "sweep_links.sweep_result",
        "compare": "compare_runs.compare",
        "diff": "diff_runs.diff",
        "estimate": "sample.estimate",
        "estimate_pairs": "sample.estimate",
        "example": "inputs.examples",
        "load": "load_result",
        "sweep": "sweep_links.sweep",
    }

    def __getattr__(name):
        """Return lazily loaded names: a function, its result's class, the charts, the constraints."""
        from importlib import import_module

        if name in ("charts", "constraints"):
            return import_module(f"fastbcubed.{name}")
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"fastbcubed.{_LATER[name]}"), name)
        return found

    __dir__ = only_all(globals())
