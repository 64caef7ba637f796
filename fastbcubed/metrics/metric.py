"""The declaration of a score: name, range, direction, definition and computation."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from fastbcubed.errors import MetricError, arg
from fastbcubed.runtime.arguments import number
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.cells.three_way import ItemSets

Formula = Callable[[Floats, Floats, Floats, Floats], Floats]
Combine = Callable[[Mapping[str, Any], float], Any]
#: Differences and standard errors up to this size, relative to their scores (or to 1), are due to rounding.
ROUNDED = 1e-12
#: Sums that count the items of both sides, including those that the other side lacks.
OF_MENTIONS = frozenset({"entities", "links", "pairing of mentions", "pairing of entities"})
#: Sums over all cells by name; the fields of each are arguments of formulas.
Sums = Mapping[str, Iterable[Any]]
LIKE_SKLEARN = "The function of the same name in scikit-learn returns the same values but takes no weights."


class Page(NamedTuple):
    """Extra documentation of a function beyond that of its score, and its own example if it differs."""

    example: str = ""
    note: str = ""


@dataclass(frozen=True)
class Metric:
    """A score, computed by exactly one of `formula`, `combine`, `finalize`, `of_sets` and `score`."""

    name: str
    family: str  # the file it is defined in; "overlap" has two
    low: float
    high: float
    best: Literal["higher", "lower", "neither"]
    summary: str  # one sentence for people
    definition: str  # the formula as plain text
    source: str  # short reference: a key of REFERENCES, or "fastbcubed"
    formula: Formula | None = None  # of an item's confusion matrix; the score is the weighted mean over items
    combine: Combine | None = None  # from the means of `needs`, and beta
    slopes: Combine | None = None  # the derivatives of `combine` by these means
    # from the fields of `sums` over all cells, numbers or arrays over clusterings; faster than a given `formula`
    finalize: Callable[..., Any] | None = None
    sums: tuple[str, ...] = ()
    # a score of an item's clusters in truth, baseline and experiment
    of_sets: Callable[[ItemSets], Floats] | None = None
    formula_of_beta: Callable[[float], Formula] | None = None  # where `formula` depends on it
    matrix: Callable[[Any], tuple[Floats, Floats, Floats]] | None = (
        None  # its own tp, fp, fn of a cover's cells
    )
    options: Mapping[str, str] | None = None  # the variant of its definition that is computed
    needs: tuple[Metric, ...] = ()  # the scores whose means `combine` gets
    uses_tn: bool = False
    leave_one_out: bool = False  # the formula gets the matrix without the item itself
    unweighted_only: bool = False
    weights_inside: bool = False  # not a mean over items, so weighting="outer" is not defined
    labelled_only: bool = False  # needs the true cluster of every item in a predicted cluster
    on_covers: bool = False  # also defined where clusters overlap
    covers_only: bool = False  # defined only where clusters overlap
    pairs_clusters: bool = False  # needs a search, which may be given up
    # the factors of linked and of true pairs in the denominator; None unless it is a share of these, of which few are
    # between independent units, unlike of all pairs
    share_of: tuple[float, float] | None = None
    experimental: bool = False
    alias_of: str | None = None
    saved: Literal["", "mean", "other"] = ""  # loaded without its function: whether it is a mean over items
    note: str = ""  # the meaning of the letters in the definition
    use: str = field(default="", repr=False)  # a sentence on when to use it
    caution: str = field(default="", repr=False)  # a sentence or two on when not to
    worked: str = field(default="", repr=False)  # the arithmetic of true clusters ab, cd and predicted abc, d
    example: str = field(default="", repr=False)  # the doctest of its function in `fastbcubed.metrics`
    also: Mapping[str, Page] = field(default_factory=dict, repr=False)  # further functions of it, by name
    score: InitVar[Callable[[Any, Any], float] | None] = (
        None  # a function of all cells and a pool of threads, instead of sums
    )
    overall_only: bool = field(
        init=False, repr=False
    )  # defined for all items only, not for slices or clusters
    takes_three: bool = field(init=False, repr=False)  # judges a change by a truth, from three clusterings

    def __post_init__(self, score: Callable[[Any, Any], float] | None) -> None:
        if score is not None:
            object.__setattr__(self, "finalize", score)
            object.__setattr__(self, "sums", ("cells",))
        object.__setattr__(self, "overall_only", self.finalize is not None and self.formula is None)
        three = any(metric.of_sets is not None for metric in (self, *self.needs))
        object.__setattr__(self, "takes_three", three)

    def of_sums(self, sums: Sums) -> Any:
        """Return the score computed from sums over all cells."""
        assert self.finalize is not None
        return self.finalize(*(field for name in self.sums for field in sums[name]))

    @property
    def of_mentions(self) -> bool:
        """Whether the score counts the mentions of both sides; runs are then not restricted to common items."""
        return not OF_MENTIONS.isdisjoint(self.sums)

    @property
    def names_matrix(self) -> bool:
        """Whether the definition contains entries of an item's confusion matrix, which then need an explanation."""
        return re.search(r"\b(tp|fp|fn|tn)\b", self.definition) is not None

    @property
    def item_name(self) -> str | None:
        """The name of the column with this score of each item; None for a score that items do not have.

        The column of mean_f1 is item_f1, and that of precision is precision.
        """
        return self.name.replace("mean_", "item_") if self.formula or self.of_sets else None

    def at(self, beta: float) -> Metric:
        """Return this score with its formula for `beta`, or the score itself if it does not depend on beta."""
        if self.formula_of_beta is None:
            return self
        return replace(self, formula=self.formula_of_beta(beta))

    def undefined(
        self,
        *,
        weighted: bool,
        weighting: str,
        outside: bool,
        overlapping: bool = False,
        cells_alone: bool = False,
    ) -> str | None:
        """Return why the score is undefined for this input, with advice; None if it is defined."""
        if self.takes_three:
            return "it judges a change against a truth; use fb.diff(baseline, experiment, truth=truth)"
        by_item = self.family == "pairs" or any(metric.leave_one_out for metric in (self, *self.needs))
        if cells_alone and weighted and weighting == "pointwise" and by_item:
            return (
                "with weights, it needs the weight of each item in addition to the cells, which Spark distributes; "
                f"evaluate tables that one machine can read with {arg('engine', 'disk')} or "
                f"{arg('engine', 'memory')}, or pass no weights"
            )
        if overlapping and not (self.on_covers or self.covers_only):
            return f"it is not defined where clusters may overlap; pass partitions, without {arg('overlapping', True)}"
        if self.covers_only and not overlapping:
            return f"it compares overlapping clusterings; pass {arg('overlapping', True)} to evaluate or contingency"
        if self.unweighted_only and weighted:
            how = "in the mean" if weighting == "outer" else "in the clusters and in the mean"
            return f"it lets all items count equally, but they have weights {how}; pass no weights"
        if self.weights_inside and weighted and weighting == "outer":
            return (
                'it is not a mean over items, so weights in the mean alone (weighting="outer") do not apply'
                f" in it; pass {arg('weighting', 'pointwise')}, or no weights"
            )
        if outside and (self.uses_tn or self.labelled_only):
            what = "true negatives" if self.uses_tn else "the true cluster of every item"
            policies = f"{arg('unmatched', 'drop')} or {arg('unmatched', 'singleton')}"
            return f"it needs {what}, which {arg('unmatched', 'outside')} leaves open; pass {policies}"
        return None

    def not_defined(self, reason: str) -> MetricError:
        """Return the error raised if a requested score is not defined for the input."""
        return MetricError(f"{self.name} is not defined here: {reason}, or leave it out.")

    def without_negatives(self) -> MetricError:
        """Return the error for a user's own formula that failed because it was given no true negatives."""
        taking = replace(self, uses_tn=True)
        if self.family == "own":  # it is given true negatives unless the policy leaves them open
            reason = taking.undefined(weighted=False, weighting="pointwise", outside=True)
        else:
            reason = f"its formula takes true negatives; declare it with {arg('uses_tn', True)}"
        return taking.not_defined(str(reason))


REFERENCES = {
    "van Staden 2024": "S. van Staden, Pointwise Metrics for Clustering Evaluation, arXiv:2405.10421, 2024.",
    "van Staden and Grubb 2024": "S. van Staden and A. Grubb, ABCDE: Application-Based Cluster Diff Evals,"
    " arXiv:2407.21430, 2024.",
    "van Staden 2024 (index)": "S. van Staden, Decomposing the Jaccard Distance and the Jaccard Index in ABCDE,"
    " arXiv:2409.18522, 2024.",
    "van Staden 2024 (quality)": "S. van Staden, More Clustering Quality Metrics for ABCDE, arXiv:2409.13376, 2024.",
    "Bagga and Baldwin 1998": "A. Bagga and B. Baldwin, Algorithms for Scoring Coreference Chains,"
    " LREC Workshop on Linguistic Coreference, 1998.",
    "Amigó et al. 2009": "E. Amigó, J. Gonzalo, J. Artiles and F. Verdejo, A comparison of"
    " extrinsic clustering evaluation metrics based on formal constraints, Information Retrieval"
    " 12, 2009.",
    "Gates et al. 2019": "A. J. Gates, I. B. Wood, W. P. Hetrick and Y.-Y. Ahn, Element-centric clustering"
    " comparison unifies overlaps and hierarchy, Scientific Reports 9, 2019.",
    "Rand 1971": "W. M. Rand, Objective Criteria for the Evaluation of Clustering Methods, Journal of"
    " the American Statistical Association 66, 1971.",
    "Hubert and Arabie 1985": "L. Hubert and P. Arabie, Comparing Partitions, Journal of Classification"
    " 2, 1985.",
    "Fowlkes and Mallows 1983": "E. B. Fowlkes and C. L. Mallows, A Method for Comparing Two"
    " Hierarchical Clusterings, Journal of the American Statistical Association 78, 1983.",
    "Mirkin 1996": "B. Mirkin, Mathematical Classification and Clustering, Kluwer, 1996.",
    "Bakus et al. 2002": "J. Bakus, M. F. Hussin and M. Kamel, A SOM-Based Document Clustering Using"
    " Phrases, ICONIP 2002.",
    "Meila 2003": "M. Meila, Comparing Clusterings by the Variation of Information, COLT 2003.",
    "Rosenberg and Hirschberg 2007": "A. Rosenberg and J. Hirschberg, V-Measure: A Conditional"
    " Entropy-Based External Cluster Evaluation Measure, EMNLP-CoNLL 2007.",
    "Strehl and Ghosh 2002": "A. Strehl and J. Ghosh, Cluster Ensembles: A Knowledge Reuse Framework for"
    " Combining Multiple Partitions, Journal of Machine Learning Research 3, 2002.",
    "Vinh et al. 2010": "N. X. Vinh, J. Epps and J. Bailey, Information Theoretic Measures for"
    " Clusterings Comparison, Journal of Machine Learning Research 11, 2010.",
    "Dom 2001": "B. E. Dom, An Information-Theoretic External Cluster-Validity Measure, IBM Research"
    " Report RJ 10219, 2001.",
    "Pantel and Lin 2002": "P. Pantel and D. Lin, Document Clustering with Committees, SIGIR 2002.",
    "Menestrina et al. 2010": "D. Menestrina, S. E. Whang and H. Garcia-Molina, Evaluating Entity"
    " Resolution Results, VLDB Endowment 3, 2010.",
    "van Heusden et al. 2022": "R. van Heusden, J. Kamps and M. Marx, BCubed Revisited: Elements"
    " Like Me, ICTIR 2022.",
    "Rosales-Méndez and Ramírez-Cruz 2013": "H. Rosales-Méndez and Y. Ramírez-Cruz, CICE-BCubed: A New"
    " Evaluation Measure for Overlapping Clustering Algorithms, CIARP 2013.",
    "Moreno and Dias 2015": "J. G. Moreno and G. Dias, Adapted B-CUBED Metrics to Unbalanced"
    " Datasets, SIGIR 2015.",
    "Zhao and Karypis 2001": "Y. Zhao and G. Karypis, Criterion Functions for Document Clustering:"
    " Experiments and Analysis, University of Minnesota, Technical Report 01-40, 2001.",
    "Larsen and Aone 1999": "B. Larsen and C. Aone, Fast and Effective Text Mining Using Linear-time"
    " Document Clustering, KDD 1999.",
    "Barnes 2015": "M. Barnes, A Practitioner's Guide to Evaluating Entity Resolution Results,"
    " arXiv:1509.04238, 2015.",
    "Maidasani et al. 2012": "H. Maidasani, G. Namata, B. Huang and L. Getoor, Entity Resolution"
    " Evaluation Measures, University of Maryland, 2012.",
    "Talburt et al. 2007": "J. Talburt, R. Wang, K. Hess and E. Kuo, An Algebraic Approach to Data Quality"
    " Metrics for Entity Resolution over Large Datasets, Information Quality Management, 2007.",
    "van Dongen 2000": "S. van Dongen, Performance Criteria for Graph Clustering and Markov Cluster"
    " Experiments, CWI report INS-R0012, 2000.",
    "Meila and Heckerman 2001": "M. Meila and D. Heckerman, An Experimental Comparison of Model-Based"
    " Clustering Methods, Machine Learning 42, 2001.",
    "Vilain et al. 1995": "M. Vilain, J. Burger, J. Aberdeen, D. Connolly and L. Hirschman, A"
    " Model-Theoretic Coreference Scoring Scheme, MUC-6, 1995.",
    "Luo 2005": "X. Luo, On Coreference Resolution Performance Metrics, HLT-EMNLP 2005.",
    "Luo et al. 2014": "X. Luo, S. Pradhan, M. Recasens and E. Hovy, An Extension of BLANC to System"
    " Mentions, ACL 2014.",
    "Pradhan et al. 2012": "S. Pradhan, A. Moschitti, N. Xue, O. Uryupina and Y. Zhang, CoNLL-2012 Shared Task:"
    " Modeling Multilingual Unrestricted Coreference in OntoNotes, CoNLL 2012.",
    "Moosavi and Strube 2016": "N. S. Moosavi and M. Strube, Which Coreference Evaluation Metric Do You"
    " Trust? A Proposal for a Link-based Entity Aware Metric, ACL 2016.",
    "Collins and Dent 1988": "L. M. Collins and C. W. Dent, Omega: A General Formulation of the Rand Index"
    " of Cluster Recovery Suitable for Non-disjoint Solutions, Multivariate Behavioral Research 23, 1988.",
    "Lancichinetti et al. 2009": "A. Lancichinetti, S. Fortunato and J. Kertész, Detecting the overlapping"
    " and hierarchical community structure in complex networks, New Journal of Physics 11, 2009.",
    "McDaid et al. 2011": "A. F. McDaid, D. Greene and N. Hurley, Normalized Mutual Information to evaluate"
    " overlapping community finding algorithms, arXiv:1110.2515, 2011.",
    "er-evaluation": "O. Binette, er-evaluation, a Python package for entity resolution.",
}


Function = TypeVar("Function", bound=Callable[..., Any])


class Family:
    """The scores of a family, in the order of their declaration.

    Fields of `Metric` given to the family are defaults of all its scores. An F1 takes as `three` the example of the
    function that returns precision, recall and their F.
    """

    def __init__(self, name: str, **shared: Any) -> None:
        self.name = name
        self._shared = shared
        self._metrics: dict[str, Metric] = {}

    def __getitem__(self, name: str) -> Metric:
        return self._metrics[name]

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics.values())

    def mean_over_items(self, formula: str, **about: Any) -> Callable[[Function], Function]:
        """Declare the mean over items of a function (tp, fp, fn, tn) that works element by element."""

        def declare(function: Function) -> Function:
            self._add(function, about, definition=f"mean over items of {formula}", formula=function)
            return function

        return declare

    def mean_over_three(self, formula: str, **about: Any) -> Callable[[Function], Function]:
        """Declare the mean over items of a function of an item's clusters in truth, baseline and experiment."""

        def declare(function: Function) -> Function:
            self._add(function, about, definition=f"mean over items of {formula}", of_sets=function)
            return function

        return declare

    def of_means(
        self, definition: str, *needs: Metric, slopes: Callable[..., Any] | None = None, **about: Any
    ) -> Callable[[Function], Function]:
        """Declare a function of the means of the scores `needs`, in this order, and of beta.

        `slopes` takes the same arguments, and returns the derivative by each mean.
        """
        names = tuple(metric.name for metric in needs)

        def declare(function: Function) -> Function:
            how: dict[str, Any] = {"combine": partial(_combine, function, names), "needs": needs}
            how["slopes"] = None if slopes is None else partial(_combine, slopes, names)
            self._add(function, about, definition=definition, **how)
            return function

        return declare

    def of_sums(
        self, definition: str, *, of: str | tuple[str, ...], **about: Any
    ) -> Callable[[Function], Function]:
        """Declare a function of the fields of sums over all cells, which `metrics.sums` computes by name."""
        sums = (of,) if isinstance(of, str) else of

        def declare(function: Function) -> Function:
            self._add(function, about, definition=definition, finalize=function, sums=sums)
            return function

        return declare

    def alias(self, name: str, metric: Metric, **about: Any) -> None:
        """Declare another name of a score."""
        own = {"example": "", "also": {}, "alias_of": metric.name, **_with_pages(name, about)}
        self._keep(replace(metric, name=name, family=self.name, **own))

    def _add(self, function: Callable[..., Any], about: dict[str, Any], **how: Any) -> None:
        """Add a score named after its function, with the first paragraph of the function's docstring as summary."""
        summary = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
        known = {"summary": summary, **self._shared, **how, **about}
        name = known.pop("name", function.__name__)
        self._keep(Metric(name, self.name, **_with_pages(name, known)))

    def _keep(self, metric: Metric) -> None:
        if metric.name in self._metrics:
            raise ValueError(f"{metric.name} is declared twice")
        self._metrics[metric.name] = metric


def _with_pages(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return a score's fields with the documentation of the function that returns three scores, if it has one."""
    three = about.pop("three", "")
    pages = {f"{name.removesuffix('f1')}precision_recall_fscore": Page(three)} if three else {}
    return {**about, "also": {**about.get("also", {}), **pages}}


def _combine(
    function: Callable[..., Any], names: tuple[str, ...], means: Mapping[str, Any], beta: float
) -> Any:
    return function(*(means[name] for name in names), beta)


def rate(part: Floats | float, whole: Floats | float, empty: float = 1.0) -> Floats:
    """Return part / whole, or `empty` where whole is 0, since nothing there could have gone wrong."""
    shares: Floats = np.full(np.shape(whole), empty)
    np.divide(part, whole, out=shares, where=np.not_equal(whole, 0))
    return shares[()]  # a scalar for scalars


def beta_of(given: Any) -> float:
    """Return beta, a number of any type, as a float; raise OptionError if beta is not a number.

    >>> beta_of(np.float32(0.5)), beta_of(10**400)
    (0.5, inf)
    """
    return number(given, "beta", "a number from 0 (precision alone) up", lambda found: found >= 0)


def weight_of_precision(beta: float) -> float:
    """Return alpha = 1 / (1 + beta**2), the weight of precision in F.

    >>> weight_of_precision(2.0), weight_of_precision(0.0), weight_of_precision(float("inf"))
    (0.2, 1.0, 0.0)
    """
    found = beta_of(beta)
    return 1.0 / (1.0 + found * found)


def f_measure(precision: Floats | float, recall: Floats | float, alpha: float = 0.5) -> Floats | float:
    """Return 1 / (alpha / precision + (1 - alpha) / recall), element by element.

    The result is 0 where precision or recall is 0, except that alpha = 1 gives precision and alpha = 0 gives recall,
    even if the other is 0. A missing value (NaN) remains missing.

    >>> float(f_measure(0.5, 0.25, weight_of_precision(2.0)))  # 5/18
    0.2777777777777778
    """
    if alpha in (0.0, 1.0):
        return precision if alpha else recall
    below = alpha * recall + (1.0 - alpha) * precision
    return rate(precision * recall, below, empty=0.0)


def gain_of_f1(lost: tuple[float, float], precision: Floats, recall: Floats) -> Floats:
    """Return the gain in F1 from gains in precision and recall, to full precision even if it is tiny.

    `lost` is (1 - precision, 1 - recall) before the gains.
    """
    p, r = 1 - lost[0], 1 - lost[1]
    above = p * p * recall + r * r * precision + precision * recall * (p + r)
    gain: Floats = 2 * above / ((p + r) * ((p + r) + (precision + recall)))
    return gain


def slopes_of_f1(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of F1 by precision and by recall.

    >>> [round(float(slope), 6) for slope in slopes_of_f1(0.5, 0.25, 2.0)]  # 2 (1/4)^2 / (3/4)^2, 2 (1/2)^2 / (3/4)^2
    [0.222222, 0.888889]
    """
    return _slopes(p, r, 0.5)


def slopes_of_fbeta(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of F by precision and by recall."""
    return _slopes(p, r, weight_of_precision(beta))


def _slopes(p: Floats | float, r: Floats | float, alpha: float) -> tuple[Any, Any]:
    below = alpha * r + (1.0 - alpha) * p
    return alpha * rate(r, below) ** 2, (1.0 - alpha) * rate(p, below) ** 2


def rounding(score: Any, least: float = 1.0) -> Any:
    """Return the largest difference from a score that may be due to rounding; scores below `least` count as `least`.

    >>> float(rounding(0.25)), float(rounding(-100.0)), float(rounding(0.25, least=0.0))
    (1e-12, 1e-10, 2.5e-13)
    """
    return ROUNDED * np.clip(np.abs(score), least, np.finfo(np.float64).max)  # keeps infinite scores finite


def without_rounding(value: Any, score: Any = 1.0) -> Any:
    """Return differences or standard errors of scores, with 0 instead of those that may be due to rounding.

    >>> float(without_rounding(5.6e-17)), float(without_rounding(1e-9)), float(without_rounding(1e-9, 1e6))
    (0.0, 1e-09, 0.0)
    """
    return np.where(np.abs(value) <= rounding(score), 0.0, value)[()]


#: Comparisons with a bound, and the direction in which rounding relaxes or tightens the bound.
SIGNS: dict[str, tuple[Callable[[Any, float], Any], int]] = {
    ">=": (operator.ge, -1), "<=": (operator.le, 1), ">": (operator.gt, 1), "<": (operator.lt, -1),
}  # fmt: skip


def meets(values: Any, sign: str, bound: float) -> Any:
    """Return whether scores meet a bound; a score that differs from it only by rounding counts as equal.

    >>> score = 0.43999999999999995
    >>> bool(meets(score, ">=", 0.44)), bool(meets(score, "<", 0.44)), bool(meets(11, ">", 10))
    (True, False, True)
    """
    compare, side = SIGNS[sign]
    return compare(values, bound + side * rounding(bound))


def directed(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the scores that have a direction: higher or lower is better."""
    return [metric for metric in metrics if metric.best != "neither"]


def lead_score(metrics: Sequence[Metric]) -> str | None:
    """Return the name of the score by which runs are ranked: F1 if present, else the first that has a direction."""
    known = [metric.name for metric in directed(metrics)]
    return "f1" if "f1" in known else next(iter(known), None)
