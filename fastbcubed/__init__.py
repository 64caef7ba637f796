"""Score huge clusterings: BCubed, pointwise metrics and ELM, by item, cluster and slice."""

from fastbcubed import constraints, errors, metrics
from fastbcubed._version import __version__
from fastbcubed.cells.contingency import Contingency
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.errors import EvaluationWarning, FastBCubedError
from fastbcubed.evaluate import contingency, evaluate
from fastbcubed.extended import cice_bcubed, extended_bcubed
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.files.loading import load
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.bins import bins
from fastbcubed.sources.examples import example

__all__ = [
    "Clustering",
    "Contingency",
    "Evaluation",
    "EvaluationWarning",
    "FastBCubedError",
    "Table",
    "__version__",
    "bins",
    "cice_bcubed",
    "constraints",
    "contingency",
    "errors",
    "evaluate",
    "example",
    "extended_bcubed",
    "load",
    "metrics",
]
