"""The naive twin of estimates from sampled true clusters: METRICS.md section 12 record by record, in fractions.

A draw is a true cluster, as a set of items, with its weight p; a cluster drawn twice is in the list twice. `prediction`
is a dict item -> cluster of all items. It shares no code with the package.
"""

import math
from fractions import Fraction as Fr

from naive import f_measure


def mean(values):
    values = list(values)
    return sum(values, Fr(0)) / len(values)


def completed(draws, prediction):
    """Return the prediction with items of the sample that it lacks, each alone."""
    lacking = {e for cluster, _ in draws for e in cluster} - prediction.keys()
    return prediction | {e: ("alone", e) for e in lacking}


class Shown:
    """What a sampled cluster shows, by the averages of METRICS 12 over its records r."""

    def __init__(self, cluster, weight, prediction):
        whole = completed([(cluster, weight)], prediction)
        mates = {r: {e for e in whole if whole[e] == whole[r]} for r in cluster}
        self.p, self.size = Fr(weight), len(cluster)
        self.absent = sum(r not in prediction for r in cluster)
        self.miss = mean(Fr(len(cluster - mates[r])) for r in cluster)
        self.extra = mean(Fr(len(mates[r] - cluster)) for r in cluster)
        self.relmiss = mean(Fr(len(cluster - mates[r]), len(cluster)) for r in cluster)
        self.relextra = mean(Fr(len(mates[r] - cluster), len(mates[r])) for r in cluster)
        parts = {whole[r]: mates[r] for r in cluster}.values()
        #: of each predicted cluster that it meets: its items there, and those of that cluster
        self.parts = [(len(cluster & part), len(part)) for part in parts]
        self.hit = int(all(mates[r] == cluster for r in cluster))
        #: of each record: the items that are with it on both sides, in the prediction alone, in the truth alone
        self.matrices = [
            (len(cluster & mates[r]), len(mates[r] - cluster), len(cluster - mates[r])) for r in cluster
        ]


def terms(name, c, n, m_pred, beta):
    """Return N_c and D_c of a score, as the table of METRICS 12 has them."""
    b2 = Fr(beta) ** 2
    if name.startswith("pair_"):
        above = c.p * c.size * (c.size - 1 - c.miss)
        below = {
            "pair_precision": c.size - 1 + c.extra - c.miss,
            "pair_recall": c.size - 1,
            "pair_f1": c.size - 1 + (c.extra - c.miss) / 2,
            "pair_fbeta": c.size - 1 + (c.extra - c.miss) / (1 + b2),
        }
        return above, c.p * c.size * below[name]
    # Items that the prediction lacks are clusters of it, too: M |c| is M (|c| - absent) + n absent.
    clusters = m_pred * (c.size - c.absent) + n * c.absent
    if name == "cluster_precision":
        return c.p * n * c.hit, c.p * clusters
    if name == "cluster_recall":
        return c.p * c.hit, c.p
    if name in ("cluster_f1", "cluster_fbeta"):
        b2 = b2 if name == "cluster_fbeta" else Fr(1)
        return c.p * n * (1 + b2) / m_pred * c.hit, c.p * (b2 * n / m_pred + Fr(clusters, m_pred))
    if name.endswith("_by_true_cluster"):
        return c.p * (1 - (c.relextra if "precision" in name else c.relmiss)), c.p
    if name == "inverse_purity":
        return c.p * max(n_both for n_both, _ in c.parts), c.p * c.size
    if name == "class_f1":
        return c.p * c.size * max(Fr(2 * n_both, c.size + b) for n_both, b in c.parts), c.p * c.size
    if name == "closest_cluster_recall":
        return c.p * max(Fr(n_both, c.size + b - n_both) for n_both, b in c.parts), c.p
    if name.startswith("muc_"):
        # links of the prediction are n - M for n items; those that it lacks are alone and have none
        joined, of_pred = c.size - len(c.parts), Fr((c.size - c.absent) * (n - m_pred), n)
        below = {"muc_precision": of_pred, "muc_recall": c.size - 1, "muc_f1": (of_pred + c.size - 1) / 2}
        return c.p * joined, c.p * below[name]
    if name.startswith("lea_"):
        sizes = [(both, b if name == "lea_precision" else c.size, b) for both, b in c.parts]
        rights = [
            Fr(both * (both - 1), size - 1) if size > 1 else Fr(b == c.size == 1) for both, size, b in sizes
        ]
        return c.p * sum(rights, Fr(0)), c.p * c.size
    if name == "matching_rate":
        return c.p * c.size * (c.size > 1), c.p * c.size
    if name == "mean_cluster_size":
        return c.p * c.size, c.p
    of_item = {
        "precision": lambda tp, fp, fn: Fr(tp, tp + fp),
        "recall": lambda tp, fp, fn: Fr(tp, tp + fn),
        "jaccard_distance": lambda tp, fp, fn: Fr(fp + fn, tp + fp + fn),
        "mean_f1": lambda tp, fp, fn: Fr(2 * tp, 2 * tp + fp + fn),
        "mean_fbeta": lambda tp, fp, fn: (1 + b2) * tp / ((1 + b2) * tp + fp + b2 * fn),
        "elm_precision": lambda tp, fp, fn: Fr(tp - 1, tp - 1 + fp) if tp - 1 + fp else Fr(1),
        "elm_recall": lambda tp, fp, fn: Fr(tp - 1, tp - 1 + fn) if tp - 1 + fn else Fr(1),
    }[name]
    return c.p * c.size * mean(of_item(*matrix) for matrix in c.matrices), c.p * c.size


def ratio(pairs):
    """Return estimate, std and plain ratio from N_c and D_c of each draw; NaN where METRICS 12 says so."""
    m, n_mean, d_mean = len(pairs), mean(n for n, _ in pairs), mean(d for _, d in pairs)
    if d_mean == 0:
        return math.nan, math.nan, math.nan
    if n_mean == 0:
        return Fr(0), math.nan, Fr(0)
    plain = n_mean / d_mean
    if m == 1:
        return plain, math.nan, plain
    adjusted = plain * (1 + mean(d * (n / n_mean - d / d_mean) for n, d in pairs) / ((m - 1) * d_mean))
    square = sum((d / d_mean - n / n_mean) ** 2 for n, d in pairs) / (m * (m - 1))
    return adjusted, float(plain) * math.sqrt(square), plain


#: Scores that are the F of two others, which have the same denominators.
F_OF = {
    "f1": ("precision", "recall"),
    "fbeta": ("precision", "recall"),
    "elm_f1": ("elm_precision", "elm_recall"),
    "lea_f1": ("lea_precision", "lea_recall"),
    "bcubed_f1_by_true_cluster": ("bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"),
    "bcubed_fbeta_by_true_cluster": ("bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"),
}


def shown_by(draws, prediction):
    """Return what each draw shows."""
    return [Shown(frozenset(cluster), weight, prediction) for cluster, weight in draws]


def estimate(name, draws, prediction, beta=1):
    """Return estimate, std and plain ratio of a score; the first two are None for an F of means."""
    return estimate_of(name, shown_by(draws, prediction), prediction, beta)


def estimate_of(name, shown, prediction, beta):
    """Return the same from what the draws show."""
    n, m_pred = len(prediction), len(set(prediction.values()))
    if name in F_OF:
        alpha = 1 / (1 + Fr(beta) ** 2) if "beta" in name else Fr(1, 2)
        p, r = (ratio([terms(each, c, n, m_pred, beta) for c in shown])[2] for each in F_OF[name])
        return None, None, f_measure(p, r, alpha)
    return ratio([terms(name, c, n, m_pred, beta) for c in shown])


def difference(name, draws, before, after, beta=1):
    """Return how the plain ratio of a score changes, and its std: that of what each draw moves in both, paired."""
    moved, plain = [], []
    for prediction in (before, after):
        n, m_pred = len(prediction), len(set(prediction.values()))
        pairs = [terms(name, c, n, m_pred, beta) for c in shown_by(draws, prediction)]
        n_mean, d_mean = mean(top for top, _ in pairs), mean(below for _, below in pairs)
        plain.append(n_mean / d_mean)
        moved.append([(top - plain[-1] * below) / d_mean for top, below in pairs])
    m = len(draws)
    squares = sum((b - a) ** 2 for a, b in zip(*moved, strict=True))
    return plain[1] - plain[0], math.sqrt(squares / (m * (m - 1)))


def jackknife(name, draws, prediction, beta=1):
    """Return the estimate and std that leaving out one draw at a time gives."""
    m, shown = len(draws), shown_by(draws, prediction)
    whole = float(estimate_of(name, shown, prediction, beta)[2])
    less = [float(estimate_of(name, shown[:k] + shown[k + 1 :], prediction, beta)[2]) for k in range(m)]
    middle = math.fsum(less) / m
    square = math.fsum((each - middle) ** 2 for each in less) * (m - 1) / m
    return m * whole - (m - 1) * middle, math.sqrt(square)
