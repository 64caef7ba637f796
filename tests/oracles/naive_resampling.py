"""The naive twin of standard errors of scores that are no means over items: components drawn again, and scored.

Components are found by search from raw labels, and a sample is how often each is drawn. Scores are written from their
definitions with loops over the clusters of every copy. It shares no code with the package.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import permutations


class Component(dict):
    """The cells of a component: (true cluster, predicted cluster) -> items."""

    def sizes(self, side: int) -> Counter:
        found: Counter = Counter()
        for pair, n in self.items():
            found[pair[side]] += n
        return found


def components(true: Sequence[Hashable], pred: Sequence[Hashable]) -> list[Component]:
    """Return the components of two labelings, by search."""
    cells = Counter(zip(true, pred, strict=True))
    mates = defaultdict(set)
    for t, p in cells:
        mates["true", t].add(("pred", p))
        mates["pred", p].add(("true", t))
    number: dict = {}
    found: list[Component] = []
    for start in mates:
        if start in number:
            continue
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in number:
                number[node] = len(found)
                waiting += mates[node]
        found.append(Component())
    for (t, p), n in cells.items():
        found[number["true", t]][t, p] = n
    return found


class Figures(dict):
    """What the scores of one component are counted from."""


def figures(own: Component) -> Figures:
    true, pred = own.sizes(0), own.sizes(1)
    n = sum(own.values())
    found = Figures(n=n, cells=len(own), true_sizes=true.values(), pred_sizes=pred.values(), table=own)
    found["together"] = sum(k * (k - 1) / 2 for k in own.values())
    found["in_true"], found["in_pred"] = (
        sum(k * (k - 1) / 2 for k in side.values()) for side in (true, pred)
    )
    found["of_cells"] = [(k, true[t], pred[p]) for (t, p), k in own.items()]
    found["largest_pred"] = sum(max(k for (_, p), k in own.items() if p == each) for each in pred)
    found["largest_true"] = sum(max(k for (t, _), k in own.items() if t == each) for each in true)
    found["best_f"] = sum(
        size * max(2 * k / (size + pred[p]) for (t, p), k in own.items() if t == each)
        for each, size in true.items()
    )
    found["closest_pred"] = sum(
        max(k / (size + true[t] - k) for (t, p), k in own.items() if p == each) for each, size in pred.items()
    )
    found["same"] = sum(k == true[t] == pred[p] for (t, p), k in own.items())
    found["precision_by_true"] = sum(
        sum(k * k / pred[p] for (t, p), k in own.items() if t == each) / size for each, size in true.items()
    )
    found["alone"] = sum(k == true[t] == pred[p] == 1 for (t, p), k in own.items())
    found["lea"] = sum(k * (k - 1) / (pred[p] - 1) for (_, p), k in own.items() if pred[p] > 1)
    found["paired"] = best_pairing(own)
    return found


def best_pairing(own: Component) -> float:
    """Return the most items in cells of which no two share a cluster: by trying all, else by the largest first."""
    rows, columns = list(own.sizes(0)), list(own.sizes(1))
    if len(rows) > len(columns):
        return best_pairing(Component({(p, t): n for (t, p), n in own.items()}))
    if math.perm(len(columns), len(rows)) > 5000:
        from scipy.optimize import linear_sum_assignment

        table = [[-own.get((t, p), 0) for p in columns] for t in rows]
        return -sum(table[i][j] for i, j in zip(*linear_sum_assignment(table), strict=True))
    return max(
        sum(own.get(pair, 0) for pair in zip(rows, some, strict=True))
        for some in permutations(columns, len(rows))
    )


def entropy(sizes_of: list[tuple[float, Iterable[int]]], n: float) -> float:
    return -sum(times * (size / n) * math.log2(size / n) for times, sizes in sizes_of for size in sizes)


def scores(drawn: Sequence[tuple[float, Figures]]) -> dict[str, float]:
    """Return the scores of a sample: how often each component is drawn, and its figures."""
    drawn = [(times, own) for times, own in drawn if times]

    def total(value: Callable[[Figures], float]) -> float:
        return sum(times * value(own) for times, own in drawn)

    n = total(lambda own: own["n"])
    tp = total(lambda own: own["together"])
    fp, fn = (total(lambda own, side=side: own[side]) - tp for side in ("in_pred", "in_true"))
    tn = n * (n - 1) / 2 - tp - fp - fn
    n_true, n_pred = (total(lambda own, side=side: len(own[side])) for side in ("true_sizes", "pred_sizes"))
    h_true, h_pred = (
        entropy([(c, own[side]) for c, own in drawn], n) for side in ("true_sizes", "pred_sizes")
    )
    true_given_pred = total(lambda own: sum(-k / n * math.log2(k / p) for k, _, p in own["of_cells"]))
    pred_given_true = total(lambda own: sum(-k / n * math.log2(k / t) for k, t, _ in own["of_cells"]))
    h, c = 1 - true_given_pred / h_true, 1 - pred_given_true / h_pred
    purity, inverse = (
        total(lambda own, side=side: own[side]) / n for side in ("largest_pred", "largest_true")
    )
    right = n - total(lambda own: own["cells"])
    same = total(lambda own: own["same"])
    index, by_chance = tp, (tp + fp) * (tp + fn) / (n * (n - 1) / 2)
    return {
        "pair_tp": tp,
        "pair_precision": tp / (tp + fp),
        "pair_f1": 2 * tp / (2 * tp + fp + fn),
        "rand": (tp + tn) / (tp + fp + fn + tn),
        "adjusted_rand": (index - by_chance) / ((tp + fp + tp + fn) / 2 - by_chance),
        "pair_fowlkes_mallows": math.sqrt(tp / (tp + fp) * tp / (tp + fn)),
        "mirkin": 2 * (fp + fn),
        "homogeneity": h,
        "completeness": c,
        "v_measure": 2 * h * c / (h + c),
        "nmi": 2 * (h_true - true_given_pred) / (h_true + h_pred),
        "mutual_info": h_true - true_given_pred,
        "variation_of_information": true_given_pred + pred_given_true,
        "purity": purity,
        "purity_f1": 2 * purity * inverse / (purity + inverse),
        "class_f1": total(lambda own: own["best_f"]) / n,
        "closest_cluster_precision": total(lambda own: own["closest_pred"]) / n_pred,
        "cluster_f1": 2 * same / (n_true + n_pred),
        "matching_accuracy": total(lambda own: own["paired"]) / n,
        "talburt_wang": math.sqrt(n_true * n_pred) / total(lambda own: own["cells"]),
        "basic_merge_distance": 2 * total(lambda own: own["cells"]) - n_true - n_pred,
        "muc_f1": 2 * right / (n - n_true + n - n_pred),
        "lea_precision": (total(lambda own: own["lea"] + own["alone"])) / n,
        "bcubed_precision_by_true_cluster": total(lambda own: own["precision_by_true"]) / n_true,
        "accuracy": accuracy(drawn, n),
    }


def accuracy(drawn: Sequence[tuple[float, Figures]], n: float) -> float:
    """Return the mean over items of (tp + tn) / n, where an item differs from fp + fn others."""
    wrong = sum(times * sum(k * ((t - k) + (p - k)) for k, t, p in own["of_cells"]) for times, own in drawn)
    return 1 - wrong / (n * n)


def errors_by_deletion(every: Sequence[Figures]) -> dict[str, float]:
    """Return the jackknife: the scores without each component in turn."""
    n, of_alike, found = len(every), {}, []
    for out, own in enumerate(every):
        alike = repr({name: value for name, value in own.items() if name != "table"})  # most are of one item
        if alike not in of_alike:
            of_alike[alike] = scores([(1, own) for k, own in enumerate(every) if k != out])
        found.append(of_alike[alike])
    return {name: math.sqrt(_squares([each[name] for each in found]) * (n - 1) / n) for name in found[0]}


def errors_by_shares(every: Sequence[Figures], step: float = 1e-4) -> dict[str, float]:
    """Return what scores move by where a component counts a little more, and a little less, than once."""
    n, found = len(every), []
    for k in range(n):
        more, less = (scores([(1 + (j == k) * d, own) for j, own in enumerate(every)]) for d in (step, -step))
        found.append({name: (more[name] - less[name]) / (2 * step) for name in more})
    return {name: math.sqrt(_squares([each[name] for each in found]) * n / (n - 1)) for name in found[0]}


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
