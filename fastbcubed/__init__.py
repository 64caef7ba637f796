"""Score huge clusterings: BCubed, pointwise metrics and ELM, by item, cluster and slice."""

from typing import TYPE_CHECKING

from fastbcubed.runtime import starting as _starting  # noqa: F401  (first: what follows takes long, or may be lacking)

# isort: split
from fastbcubed import errors, metrics
from fastbcubed._version import __version__
from fastbcubed.cells.contingency import Contingency
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.errors import EvaluationWarning, FastBCubedError
from fastbcubed.evaluate import contingency, evaluate
from fastbcubed.extended import cice_bcubed, extended_bcubed
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.bins import bins
from fastbcubed.runtime.completion import only_all
from fastbcubed.sources.examples import example

if TYPE_CHECKING:
    from fastbcubed import charts, constraints
    from fastbcubed.changes.difference import Diff
    from fastbcubed.compare_runs import compare
    from fastbcubed.comparison.comparison import Comparison
    from fastbcubed.diff_runs import diff
    from fastbcubed.estimate_scores import estimate, estimate_pairs
    from fastbcubed.load_result import load
    from fastbcubed.sampling.estimated import Estimates
    from fastbcubed.sweep_thresholds import sweep
    from fastbcubed.thresholds.swept import Sweep

__all__ = [
    "Clustering",
    "Comparison",
    "Contingency",
    "Diff",
    "Estimates",
    "Evaluation",
    "EvaluationWarning",
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

if not TYPE_CHECKING:  # of a name that is not there, type checkers are to say so
    #: Where names stand that are loaded on their first use: a fifth of the whole import. No module is called as what
    #: it holds, for whoever imports a module sets that name of the package.
    _LATER = {
        "Comparison": "comparison.comparison",
        "Diff": "changes.difference",
        "Estimates": "sampling.estimated",
        "Sweep": "thresholds.swept",
        "compare": "compare_runs",
        "diff": "diff_runs",
        "estimate": "estimate_scores",
        "estimate_pairs": "estimate_scores",
        "load": "load_result",
        "sweep": "sweep_thresholds",
    }

    def __getattr__(name):
        """Return what is loaded on its first use: a function, its result's class, the charts, the constraints."""
        from importlib import import_module

        if name in ("charts", "constraints"):
            return import_module(f"fastbcubed.{name}")
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"fastbcubed.{_LATER[name]}"), name)
        return found

    __dir__ = only_all(globals())
