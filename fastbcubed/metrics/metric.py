"""What the library knows about a score: name, range, direction, definition, how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fastbcubed.contingency import Contingency

Floats = NDArray[np.float64]
Formula = Callable[[Floats, Floats, Floats, Floats], Floats]
Combine = Callable[[Mapping[str, Any], float], Any]


@dataclass(frozen=True)
class Metric:
    """A score. Exactly one of `formula`, `combine` and `score` says how it is computed."""

    name: str
    family: str  # "pointwise" | "bcubed" | "elm" | "overlap"
    low: float
    high: float
    best: Literal["higher", "lower", "neither"]
    summary: str  # one sentence for people
    definition: str  # the formula as plain text
    source: str  # short reference: a key of REFERENCES, or "fastbcubed"
    formula: Formula | None = None  # of an item's matrix; lifted by the weighted mean over items
    combine: Combine | None = None  # from the means of `needs`, and beta
    score: Callable[[Contingency], float] | None = None  # of all items at once; not of a slice
    formula_of_beta: Callable[[float], Formula] | None = None  # where `formula` depends on it
    matrix: Callable[[Any], tuple[Floats, Floats, Floats]] | None = (
        None  # its own tp, fp, fn of a cover's cells
    )
    options: Mapping[str, str] | None = None  # in which of its readings it is computed
    needs: tuple[str, ...] = ()
    uses_tn: bool = False
    leave_one_out: bool = False  # the formula gets the matrix without the item itself
    unweighted_only: bool = False
    labelled_only: bool = False  # needs the true cluster of every item of a predicted one
    on_covers: bool = False  # defined where clusters overlap, too
    covers_only: bool = False  # defined there alone
    experimental: bool = False
    alias_of: str | None = None

    @property
    def overall_only(self) -> bool:
        """Whether the score is one of all items only: of no slice and no single cluster."""
        return self.score is not None

    @property
    def item_name(self) -> str | None:
        """The column that has this score item by item; None for a score that items do not have.

        That of mean_f1 is item_f1, and that of precision is precision.
        """
        return self.name.replace("mean_", "item_") if self.formula else None

    def at(self, beta: float) -> Metric:
        """Return this score with its formula for `beta`; most do not depend on it."""
        if self.formula_of_beta is None:
            return self
        return replace(self, formula=self.formula_of_beta(beta))

    def undefined(
        self, *, weighted: bool, weighting: str, outside: bool, overlapping: bool = False
    ) -> str | None:
        """Return why the score is not defined for such input, and what to do; None if it is."""
        if overlapping and not (self.on_covers or self.covers_only):
            return "it is not defined where clusters may overlap; pass partitions, without overlapping=True"
        if self.covers_only and not overlapping:
            return "it compares clusterings whose clusters may overlap; pass overlapping=True"
        if self.unweighted_only and weighted:
            how = "in the mean" if weighting == "outer" else "in the clusters and in the mean"
            return f"it lets all items count equally, but they have weights {how}; pass no weights"
        if outside and (self.uses_tn or self.labelled_only):
            what = "true negatives" if self.uses_tn else "the true cluster of every item"
            policies = 'unmatched="drop" or unmatched="singleton"'
            return f'it needs {what}, which unmatched="outside" leaves open; pass {policies}'
        return None


REFERENCES = {
    "van Staden 2024": "S. van Staden, Pointwise Metrics for Clustering Evaluation, arXiv:2405.10421, 2024.",
    "Bagga and Baldwin 1998": "A. Bagga and B. Baldwin, Algorithms for Scoring Coreference Chains,"
    " LREC Workshop on Linguistic Coreference, 1998.",
    "Amigó et al. 2009": "E. Amigó, J. Gonzalo, J. Artiles and F. Verdejo, A comparison of"
    " extrinsic clustering evaluation metrics based on formal constraints, Information Retrieval"
    " 12, 2009.",
    "van Heusden et al. 2022": "R. van Heusden, J. Kamps and M. Marx, BCubed Revisited: Elements"
    " Like Me, ICTIR 2022.",
    "Rosales-Méndez and Ramírez-Cruz 2013": "H. Rosales-Méndez and Y. Ramírez-Cruz, CICE-BCubed: A New"
    " Evaluation Measure for Overlapping Clustering Algorithms, CIARP 2013.",
    "Moreno and Dias 2015": "J. G. Moreno and G. Dias, Adapted B-CUBED Metrics to Unbalanced"
    " Datasets, SIGIR 2015.",
    "Collins and Dent 1988": "L. M. Collins and C. W. Dent, Omega: A General Formulation of the Rand Index"
    " of Cluster Recovery Suitable for Non-disjoint Solutions, Multivariate Behavioral Research 23, 1988.",
    "Lancichinetti et al. 2009": "A. Lancichinetti, S. Fortunato and J. Kertész, Detecting the overlapping"
    " and hierarchical community structure in complex networks, New Journal of Physics 11, 2009.",
    "McDaid et al. 2011": "A. F. McDaid, D. Greene and N. Hurley, Normalized Mutual Information to evaluate"
    " overlapping community finding algorithms, arXiv:1110.2515, 2011.",
    "er-evaluation": "O. Binette, er-evaluation, a Python package for entity resolution.",
}
