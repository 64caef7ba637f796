"""Score huge clusterings: BCubed, pointwise metrics and ELM, by item, cluster and slice."""

from typing import TYPE_CHECKING

from fastbcubed import errors, metrics
from fastbcubed._version import __version__
from fastbcubed.cells.contingency import Contingency
from fastbcubed.changes.difference import Diff
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.compare import compare
from fastbcubed.comparison.comparison import Comparison
from fastbcubed.diff import diff
from fastbcubed.errors import EvaluationWarning, FastBCubedError
from fastbcubed.estimate import estimate, estimate_pairs
from fastbcubed.evaluate import contingency, evaluate
from fastbcubed.extended import cice_bcubed, extended_bcubed
from fastbcubed.load import load
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.bins import bins
from fastbcubed.sampling.estimated import Estimates
from fastbcubed.sources.examples import example
from fastbcubed.sweep import sweep
from fastbcubed.thresholds.swept import Sweep

if TYPE_CHECKING:
    from fastbcubed import charts, constraints

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

    def __getattr__(name):
        """Return the charts or the constraints, loaded on their first use."""
        if name not in ("charts", "constraints"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"fastbcubed.{name}")

    def __dir__():
        return sorted({*globals(), *__all__})
