"""The naive twin of the pointwise, BCubed and ELM scores: sets, loops over items, exact fractions.

It restates METRICS.md sections 0 to 3 and shares no code with the package. Every rational score
is a `Fraction`; scores with a square root are floats worked out from exact parts.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

Item = Cluster = Hashable
BY_CLUSTER = re.compile(r"(.+)_by_(true|pred)_cluster")
F_OF_MEANS = re.compile(r"(|bcubed_|adapted_bcubed_|elm_)(f1|fbeta)")
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Alone:
    """Label of the cluster that holds one unmatched item, under the policy `singleton`."""

    item: Item


def f_measure(p, r, alpha):
    """F_alpha = 1 / (alpha/P + (1 - alpha)/R); the ends first, then 0 if P or R is 0 (0.1, 0.2)."""
    if alpha in (0, 1):
        return p if alpha == 1 else r
    return 1 / (alpha / p + (1 - alpha) / r) if p and r else Fraction(0)


def rate(part, whole):
    """part / whole; 1 where nothing could have gone wrong (0.1, rule 2)."""
    return Fraction(part) / whole if whole else Fraction(1)


def root(x):
    """Return the square root of a fraction, with 64 bits or more before rounding to a float."""
    return float(Fraction(math.isqrt(x.numerator * x.denominator << 128), x.denominator << 64))


def mcc(tp, fp, fn, tn):
    if fp == fn == 0:
        return 1.0
    above = tp * tn - fp * fn
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return math.copysign(root(above**2 / below), above) if below else 0.0


def pointwise_ari(tp, fp, fn, tn):
    if fp == fn == 0:
        return Fraction(1)
    return 2 * (tp * tn - fp * fn) / ((tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))


WITHOUT_TN = {
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "over_merge_rate": lambda tp, fp, fn, tn: fp / (tp + fp),
    "under_merge_rate": lambda tp, fp, fn, tn: fn / (tp + fn),
    "jaccard_index": lambda tp, fp, fn, tn: tp / (tp + fp + fn),
    "jaccard_distance": lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn),
    "symmetric_difference": lambda tp, fp, fn, tn: fp + fn,
    "pointwise_fowlkes_mallows": lambda tp, fp, fn, tn: root(tp / (tp + fp) * tp / (tp + fn)),
}
WITH_TN = {
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    "specificity": lambda tp, fp, fn, tn: rate(tn, tn + fp),
    "npv": lambda tp, fp, fn, tn: rate(tn, tn + fn),
    "balanced_accuracy": lambda tp, fp, fn, tn: (rate(tp, tp + fn) + rate(tn, tn + fp)) / 2,
    "informedness": lambda tp, fp, fn, tn: rate(tp, tp + fn) + rate(tn, tn + fp) - 1,
    "markedness": lambda tp, fp, fn, tn: rate(tp, tp + fp) + rate(tn, tn + fn) - 1,
    "mcc": mcc,
    "pointwise_ari": pointwise_ari,
}


@dataclass
class Naive:
    """One evaluation. `truth` and `prediction` are as given; `true` and `pred`: scored items."""

    truth: dict[Item, Cluster]
    prediction: dict[Item, Cluster]
    true: dict[Item, Cluster]
    pred: dict[Item, Cluster]
    outside: dict[Item, Cluster]  # prediction-only items that stay in their predicted cluster
    weight: dict[Item, Fraction]
    weighting: str
    alpha: Fraction
    policy: dict[str, str]

    @property
    def items(self) -> list[Item]:
        return list(self.true)

    # -- one item: its clusters, its four sets, its scores ----------------------------------------

    def true_mates(self, e) -> frozenset:
        """Return the true cluster of e, with e."""
        return frozenset(x for x in self.true if self.true[x] == self.true[e])

    def pred_mates(self, e) -> frozenset:
        """Return the predicted cluster of e, with e and with the mates outside the truth."""
        everyone = self.pred | self.outside
        return frozenset(x for x in everyone if everyone[x] == self.pred[e])

    def sets(self, e) -> dict[str, frozenset | None]:
        true, pred = self.true_mates(e), self.pred_mates(e)
        tn = frozenset(self.true) - true - pred
        tn = None if self.policy["prediction"] == "outside" else tn
        return {"tp": true & pred, "fp": pred - true, "fn": true - pred, "tn": tn}

    def size(self, items) -> Fraction:
        """Return what a set counts for inside a matrix: its weight, or (outer) its items."""
        if self.weighting == "outer":
            return Fraction(len(items))
        return sum((self.weight[x] for x in items), Fraction(0))

    def matrix(self, e) -> tuple:
        return tuple(None if s is None else self.size(s) for s in self.sets(e).values())

    def _element_centric(self, e):
        """One minus half the distance of where walks from e go that start anew with 1 - alpha = 1/10 (Gates et al.)."""
        alpha, walks = Fraction(9, 10), []
        for mates in (self.true_mates(e), self.pred_mates(e)):
            affinity = {x: alpha * self.size([x]) / self.size(mates) for x in mates}
            walks.append(affinity | {e: affinity[e] + 1 - alpha})
        reached = walks[0].keys() | walks[1].keys()
        distance = sum(abs(walks[0].get(x, 0) - walks[1].get(x, 0)) for x in reached)
        return 1 - distance / (2 * alpha)

    def score(self, name, e):
        if name in WITHOUT_TN:
            return WITHOUT_TN[name](*self.matrix(e))
        if name in WITH_TN:
            if self.matrix(e)[3] is None:
                raise ValueError(f"{name} needs true negatives, which 'outside' does not have")
            return WITH_TN[name](*self.matrix(e))
        if f := re.fullmatch("(|bcubed_)item_(f1|fbeta)", name):
            p, r = self.score(f[1] + "precision", e), self.score(f[1] + "recall", e)
            return f_measure(p, r, HALF if f[2] == "f1" else self.alpha)
        if b := re.fullmatch("(|adapted_)bcubed_(precision|recall)", name):
            mates = self.pred_mates(e) if b[2] == "precision" else self.true_mates(e)
            mean = self._average_correctness(e, mates)
            return mean**2 if b[1] else mean  # adapted (2.4): two mates drawn with repetition
        if name == "element_centric":
            return self._element_centric(e)
        if m := re.fullmatch("elm_(precision|recall|item_f1|item_fbeta)", name):
            alpha = {"precision": 1, "recall": 0, "item_f1": HALF, "item_fbeta": self.alpha}[m[1]]
            return self._elm(e, alpha)
        raise ValueError(f"unknown score of an item: {name}")

    def _average_correctness(self, e, mates):
        """Average over mates e' of Correctness(e, e'): 1 iff same true and same predicted (2.1)."""
        total = Fraction(0)
        for other in mates:
            if other in self.outside:  # known to be in another true cluster
                continue
            if self.true[other] == self.true[e] and self.pred[other] == self.pred[e]:
                total += self.size([other])
        return total / self.size(mates)

    def _elm(self, e, alpha):
        """TP' / (TP' + alpha FP + (1 - alpha) FN), where e is left out of every set (3.1, 3.3)."""
        true, pred = self.true_mates(e) - {e}, self.pred_mates(e) - {e}
        tp, fp, fn = map(self.size, (true & pred, pred - true, true - pred))
        return rate(tp, tp + alpha * fp + (1 - alpha) * fn)

    # -- many items -------------------------------------------------------------------------------

    def mean(self, name, subset: Iterable[Item] | None = None):
        """Return the lifted score; an F of means; an average by cluster; a chance score."""
        subset = None if subset is None else set(subset)
        by = BY_CLUSTER.fullmatch(name)
        against_chance = re.fullmatch("(chance|adjusted)_bcubed_(precision|recall)", name)
        if subset is not None and (by or against_chance):
            raise ValueError(f"{name} is defined over all items only")
        if against_chance:
            return self._against_chance(*against_chance.groups())
        groups = [self.items if subset is None else subset]
        if by:
            name, side = by.groups()
            groups = self.clusters(side).values()
        if f := F_OF_MEANS.fullmatch(name):
            stem, which = f.groups()
            suffix = f"_by_{side}_cluster" if by else ""
            p = self.mean(f"{stem}precision{suffix}", subset)
            r = self.mean(f"{stem}recall{suffix}", subset)
            return f_measure(p, r, HALF if which == "f1" else self.alpha)
        name = re.sub(r"(^|_)mean_", r"\1item_", name)
        means = [self._lift(lambda e: self.score(name, e), group) for group in groups]
        return sum(means) / len(means)

    def lift(self, f: Callable, subset: Iterable[Item] | None = None):
        return self._lift(lambda e: f(*self.matrix(e)), self.items if subset is None else subset)

    def _lift(self, score, subset):
        """Weighted mean of score(e) over the subset, added up exactly."""
        subset = set(subset)
        if not subset <= set(self.true):
            raise ValueError("the subset has items that are not scored")
        scores = {e: score(e) for e in subset}
        whole = sum(self.weight[e] for e in subset)
        if not whole:
            raise ValueError("an empty subset, or one without weight, has no mean")
        mean = sum(self.weight[e] * Fraction(scores[e]) for e in subset) / whole
        return float(mean) if any(isinstance(s, float) for s in scores.values()) else mean

    def loss(self, which, group):
        """Return the share of a group in what all items lose of precision or recall, the rates of METRICS 1."""
        rate = {"precision_loss": "over_merge_rate", "recall_loss": "under_merge_rate"}[which]
        lost = sum((self.weight[e] * self.score(rate, e) for e in group), Fraction(0))
        return lost / sum(self.weight[e] for e in self.true)

    def outcome(self, side, group):
        """Return what became of a cluster, given its scored items; whole clusters of items outside are not known."""
        group = frozenset(group)
        if side == "true":
            parts = {self.pred_mates(e) for e in group}
            in_parts, with_others = len(parts) > 1, any(part - group for part in parts)
            return (
                ("split and merged" if with_others else "split")
                if in_parts
                else "merged"
                if with_others
                else "exact"
            )
        parts = {self.true_mates(e) for e in group}
        pure = all(self.pred_mates(e) <= self.true_mates(e) for e in group)
        strangers = any(self.pred_mates(e) - group for e in group)
        whole = all(part <= group for part in parts) and not strangers
        return ("exact" if whole else "fragment") if pure else "union" if whole else "mixed"

    def _against_chance(self, kind, which):
        """Expected BCubed when the items are shuffled, and the score less that (2.5)."""
        if len({self.weight[e] for e in self.true}) > 1 or self.policy["prediction"] == "outside":
            raise ValueError(f"{kind}_bcubed_{which} needs equal weights and no items outside")
        own, other = (self.pred, self.true) if which == "precision" else (self.true, self.pred)
        pairs = [(x, y) for x in self.true for y in self.true if x != y]
        together = Fraction(sum(other[x] == other[y] for x, y in pairs), len(pairs) or 1)
        expected = Fraction(0)
        for e in self.true:  # e is right for itself; another mate, with the chance of a random pair
            mates = sum(own[x] == own[e] for x in self.true)
            expected += (1 + (mates - 1) * together) / mates / len(self.true)
        if kind == "chance":
            return expected
        if expected == 1:
            return Fraction(all(self.true_mates(e) == self.pred_mates(e) for e in self.true))
        return (self.mean(f"bcubed_{which}") - expected) / (1 - expected)

    # -- figures of each side ---------------------------------------------------------------------

    def clusters(self, side) -> dict[Cluster, list[Item]]:
        """Return the scored items of each cluster; side is "true" or "pred"."""
        clusters = {}
        for e, cluster in {"true": self.true, "pred": self.pred}[side].items():
            clusters.setdefault(cluster, []).append(e)
        return clusters

    @property
    def summary(self) -> dict[str, dict[str, int]]:
        exact = {e for e in self.true if self.true_mates(e) == self.pred_mates(e)}
        summary = {}
        for side in ("true", "pred"):
            clusters = self.clusters(side).values()
            summary[side] = {
                "n_items": len(self.true),
                "n_clusters": len(clusters),
                "n_singletons": sum(len(cluster) == 1 for cluster in clusters),
                "largest": max(len(cluster) for cluster in clusters),
                "n_exact": sum(exact.issuperset(cluster) for cluster in clusters),
            }
        return summary

    @property
    def coverage(self) -> dict:
        """Return counts and weights by side (0.3, 1.3); None where a dropped item has no weight."""
        common, truth_only, prediction_only = split(self.truth, self.prediction)
        groups = {"common": common, "truth_only": truth_only, "prediction_only": prediction_only}
        cover = {f"n_{name}": len(group) for name, group in groups.items()}
        for name, group in groups.items():
            known = all(e in self.weight for e in group)
            cover[f"w_{name}"] = sum(map(self.weight.get, group), Fraction(0)) if known else None
        parts = cover["w_common"], cover["w_truth_only"]
        known = None not in parts and sum(parts)
        cover["truth_coverage"] = parts[0] / sum(parts) if known else None
        if self.policy["prediction"] == "drop":
            cover |= self._bounds(prediction_only)
        return cover

    def _bounds(self, unlabelled):
        """Bounds of the precision with complete labels: every unlabelled mate wrong, or right."""
        mates = {e: [x for x in unlabelled if self.prediction[x] == self.pred[e]] for e in self.true}
        share = self._lift(lambda e: int(bool(mates[e])), self.true)
        bounds = {"precision_lower": None, "precision_upper": None, "mates_unlabelled": share}
        needed = set().union(*mates.values()) if self.weighting == "pointwise" else set()
        if needed <= set(self.weight):
            for name, right in [("precision_lower", 0), ("precision_upper", 1)]:

                def precision(e, right=right):
                    (tp, fp, _, _), u = self.matrix(e), self.size(mates[e])
                    return (tp + right * u) / (tp + fp + u)

                bounds[name] = self._lift(precision, self.true)
        return bounds


def split(truth, prediction):
    """Return the items both sides have, those of the truth alone, those of the prediction alone."""
    common = [e for e in truth if e in prediction]
    truth_only = [e for e in truth if e not in prediction]
    return common, truth_only, [e for e in prediction if e not in truth]


def read_policy(unmatched):
    if unmatched == "outside":
        unmatched = {"prediction": "outside"}
    elif isinstance(unmatched, str):
        unmatched = {"truth": unmatched, "prediction": unmatched}
    elif not set(unmatched) <= {"truth", "prediction"}:
        raise ValueError(f"unmatched names a side that does not exist: {unmatched}")
    prediction = unmatched.get("prediction", "drop")
    truth = unmatched.get("truth", "singleton" if prediction == "outside" else "drop")
    if truth not in ("drop", "raise", "singleton"):
        raise ValueError(f"no policy {truth!r} for truth-only items")
    if prediction not in ("drop", "raise", "singleton", "outside"):
        raise ValueError(f"no policy {prediction!r} for prediction-only items")
    return {"truth": truth, "prediction": prediction}


def read_weights(weights, items, weighting):
    if weights is None:
        return {e: Fraction(1) for e in items}
    exact = {}
    for e in items:
        if e in weights:
            if isinstance(weights[e], float) and not math.isfinite(weights[e]):
                raise ValueError(f"the weight of {e!r} is not finite")
            exact[e] = Fraction(weights[e])
            if exact[e] < 0 or (exact[e] == 0 and weighting != "outer"):
                raise ValueError(f"the weight of {e!r} is not positive")
    return exact


def evaluate(
    truth: Mapping[Item, Cluster],
    prediction: Mapping[Item, Cluster],
    weights: Mapping[Item, int | Fraction | float] | None = None,
    *,
    unmatched: str | Mapping[str, str] = "drop",
    weighting: str = "pointwise",
    beta=1,
) -> Naive:
    """Match the two sides by item, as METRICS 0.3 says, ready to be scored."""
    if weighting not in ("pointwise", "outer"):
        raise ValueError(f"no weighting {weighting!r}")
    if not beta >= 0:
        raise ValueError("beta must not be negative")
    policy = read_policy(unmatched)
    common, truth_only, prediction_only = split(truth, prediction)
    if not common:
        raise ValueError("the truth and the prediction have no common item")
    for side, lonely in [("truth", truth_only), ("prediction", prediction_only)]:
        if policy[side] == "raise" and lonely:
            raise ValueError(f"items of the {side} alone: {lonely}")
    true, pred, outside = {e: truth[e] for e in common}, {e: prediction[e] for e in common}, {}
    if policy["truth"] == "singleton":
        true |= {e: truth[e] for e in truth_only}
        pred |= {e: Alone(e) for e in truth_only}
    if policy["prediction"] == "singleton":
        true |= {e: Alone(e) for e in prediction_only}
        pred |= {e: prediction[e] for e in prediction_only}
    if policy["prediction"] == "outside":
        outside = {e: prediction[e] for e in prediction_only}
    weight = read_weights(weights, common + truth_only + prediction_only, weighting)
    if missing := [e for e in true | outside if e not in weight]:
        raise ValueError(f"items without a weight: {missing}")
    if not any(weight[e] for e in true):
        raise ValueError("all scored items have weight zero")
    alpha = Fraction(0) if beta == math.inf else 1 / (1 + Fraction(beta) ** 2)
    truth, prediction = dict(truth), dict(prediction)
    return Naive(truth, prediction, true, pred, outside, weight, weighting, alpha, policy)
